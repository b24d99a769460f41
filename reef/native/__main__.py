"""The command line of the agent: `-p PROMPT` for one turn without a person, else line by line on a terminal."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from reef import __version__
from reef.errors import Interrupted, ReefError, UsageError
from reef.native.commands import Commands, check_words, expanded
from reef.native.daemon import Daemon
from reef.native.harness import read_harness
from reef.native.home import Home, read_home
from reef.native.model import Caller
from reef.native.screen import Screen
from reef.native.session import Session, by_id, last_here
from reef.native.turn import Turns

HELP = """reef-native: reef's own small coding agent

  reef-native                     talk to it, line by line
  reef-native "words"             the same, beginning with these words
  reef-native -p "words"          one turn without a person; what is piped in stands behind the words
      --continue, -c              go on with the last session of this directory
      --session ID                go on with this session
      --json                      what happens as JSON lines, one event each
      --version

In a session: /reefine, /versions, /help, /exit, /skill:NAME and the commands of the installed version.
Ctrl-C ends the turn, twice the program.
"""
TWICE_S = 2.0
_PIPED_MAX = 1 << 20


@dataclass
class Given:
    """The command line."""

    prompt: str | None = None
    alone: bool = False
    """One turn without a person."""
    go_on: bool = False
    session: str | None = None
    json: bool = False
    words: list[str] = field(default_factory=list)


def parse(argv: list[str]) -> Given:
    """Read the command line. Raises UsageError."""
    given, rest = Given(), list(argv)
    while rest:
        word = rest.pop(0)
        if word in ("-p", "--print"):
            given.alone = True
            given.prompt = rest.pop(0) if rest else None
        elif word in ("-c", "--continue"):
            given.go_on = True
        elif word == "--session":
            if not rest:
                raise UsageError("--session needs a session's id", "reef-native --help")
            given.session = rest.pop(0)
        elif word == "--json":
            given.json = given.alone = True
        elif word == "--":
            given.words += rest
            break
        elif word.startswith("-") and len(word) > 1:
            raise UsageError(f"there is no option {word[:64]}", "reef-native --help")
        else:
            given.words.append(word)
    if given.go_on and given.session:
        raise UsageError("--continue and --session name two sessions", "reef-native --help")
    return given


def main(argv: list[str]) -> int:
    """Run the agent. Returns the exit status."""
    if argv in (["--version"], ["-v"]):
        sys.stdout.write(f"{__version__}\n")
        return 0
    if argv in (["--help"], ["-h"]):
        sys.stdout.write(HELP)
        return 0
    screen = Screen("answer")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        given = parse(argv)
        piped = _piped()
        alone = given.alone or not _by_hand()
        screen.form = "json" if given.json else "answer" if alone else "lines"
        home = read_home()
        run = Run(home, given, screen)
        try:
            if not alone:
                return run.interactive(" ".join(given.words))
            parts = [given.prompt or "", " ".join(given.words), piped]
            return run.once("\n\n".join(part for part in parts if part))
        finally:
            run.close()
    except ReefError as error:
        screen.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        screen.end_text()
        screen.event("error", message="interrupted", hint=None)
        return Interrupted.exit_code
    except BrokenPipeError:
        # Whoever read the output has gone; Python would say so once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


class Run:
    """One run of the agent."""

    def __init__(self, home: Home, given: Given, screen: Screen) -> None:
        self._home = home
        self._screen = screen
        cwd = Path.cwd()
        if given.session is not None:
            self._session = by_id(home.sessions, given.session)
        elif given.go_on:
            self._session = last_here(home.sessions, cwd)
        else:
            self._session = Session.new(home.sessions, cwd)
        self._caller = Caller(home.model, self._session.id)
        self._turns = Turns(home, self._session, screen, self._caller, cwd)
        self._daemon = Daemon(home)
        self._commands = Commands(self._daemon, screen, live=screen.form == "lines")
        self._noticed: str | None = None

    def once(self, text: str) -> int:
        """One turn, then the end."""
        check_words(text)
        self._screen.event("session", id=self._session.id, cwd=self._session.cwd)
        if sys.stderr.isatty():
            # For a person who watches, never for a program that reads the output.
            self._notice()
        self._line(text)
        return 0

    def interactive(self, first: str) -> int:
        """Line after line until the person leaves."""
        if importlib.util.find_spec("readline") is not None:
            importlib.import_module("readline")
        self._screen.note(f"reef's own agent · {self._home.model.name} · {self._session.cwd} · /help")
        interrupted = -TWICE_S
        line = first
        while True:
            try:
                self._notice()
                line = line or self._screen.ask()
                if line.strip() in ("/exit", "/quit"):
                    return 0
                if line.strip():
                    # Twice means twice in a row.
                    interrupted = -TWICE_S
                    self._line(line)
            except EOFError:
                self._screen.tell("")
                return 0
            except ReefError as error:
                self._screen.error(error, "reef")
            except KeyboardInterrupt:
                self._screen.end_text()
                if time.monotonic() - interrupted < TWICE_S:
                    return Interrupted.exit_code
                interrupted = time.monotonic()
                self._screen.tell("\n(Ctrl-C again leaves)")
            line = ""

    def close(self) -> None:
        """Let go of the connection and of what is followed."""
        self._commands.close()
        self._screen.leftover()
        self._caller.close()

    def _line(self, line: str) -> None:
        harness = read_harness(self._home.folder)
        if self._commands.own(line, harness):
            return
        text, remark = expanded(line, harness)
        if remark:
            self._screen.note(remark)
        self._turns.take(text, harness)

    def _notice(self) -> None:
        """Say once that a newer version is served."""
        notice = self._daemon.notice()
        if notice is not None and notice != self._noticed:
            self._noticed = notice
            self._screen.note(notice)


def _by_hand() -> bool:
    """Whether a person types on standard input."""
    return sys.stdin is not None and sys.stdin.isatty()


def _piped() -> str:
    """What stands on standard input where it is no terminal."""
    if sys.stdin is None or _by_hand():
        return ""
    return sys.stdin.buffer.read(_PIPED_MAX).decode("utf-8", "replace").strip()


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
