"""What a person types after a slash: reef's own words, and the skills and commands of the installed version."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from reef.errors import InvalidInput, NotFound, ReefError
from reef.native.daemon import Daemon
from reef.native.deciding import ask_to_install, may_ask
from reef.native.harness import Harness
from reef.native.screen import Screen

Json = dict[str, Any]
_POLL_S = 1.0
_FOLLOW_S = 1800.0
_SKILL = "skill:"

OWN = {
    "reefine": "ask reef for a change in how this agent works: /reefine what should change",
    "versions": "list the versions of this harness; /versions vN install asks you to install one",
    "help": "list what can be typed",
    "exit": "leave",
}


class Commands:
    """Carries out what begins with a slash."""

    def __init__(self, daemon: Daemon, screen: Screen, live: bool) -> None:
        """`live`: a person stays in the session and sees what becomes of an ask."""
        self._daemon = daemon
        self._screen = screen
        self._live = live
        self._ended = threading.Event()

    def own(self, line: str, harness: Harness) -> bool:
        """Carry out a word of reef's own, without any model call. False when `line` is none. Raises ReefError."""
        word, _, rest = line.strip().partition(" ")
        run: dict[str, Callable[[], None]] = {
            "/reefine": lambda: self._reefine(rest.strip()),
            "/versions": lambda: self._versions(rest.split()),
            "/help": lambda: self._screen.tell(_help(harness)),
        }
        if word not in run:
            return False
        run[word]()
        return True

    def close(self) -> None:
        """Stop following asks."""
        self._ended.set()

    def _reefine(self, text: str) -> None:
        if not text:
            self._screen.tell("usage: /reefine what should change, in plain words")
            return
        filed = self._daemon.ask(text)
        self._screen.tell(f"reef: ask #{filed['number']} filed for scenario {filed['scenario']}")
        if not self._live:
            self._screen.tell(f"follow it with: reef asks watch {filed['number']} -s {filed['scenario']}")
            return
        args = (str(filed["agent_record_id"]), int(filed["number"]))
        threading.Thread(target=self._follow, args=args, daemon=True, name="ask").start()

    def _follow(self, ask_id: str, number: int) -> None:
        """Say what became of an ask, when it is settled."""
        until = time.monotonic() + _FOLLOW_S
        while time.monotonic() < until and not self._ended.wait(_POLL_S):
            try:
                now = self._daemon.progress(ask_id)
            except ReefError as error:
                self._screen.arrived(f"reef: ask #{number} cannot be followed: {error.message}")
                return
            if now.get("settled"):
                self._screen.arrived(_settled(number, now))
                return

    def _versions(self, words: list[str]) -> None:
        scenario, releases = self._daemon.releases()
        if not words:
            here = self._daemon.installed()[0]
            lines = [_line(row, here) for row in releases]
            self._screen.tell("\n".join([f"versions of scenario {scenario}", *lines]))
            return
        numbered = [word for word in words if word != "install"]
        wanted = numbered[0] if numbered else _head(releases)
        row = next((row for row in releases if wanted in (f"v{row['version']}", str(row["version"]))), None)
        if row is None:
            raise NotFound(f"scenario {scenario} has no version {wanted}", "/versions")
        if "install" not in words:
            self._screen.tell(f"in another terminal: reef versions show v{row['version']} -s {scenario}")
        elif not may_ask():
            elsewhere = f"reef versions install v{row['version']} -s {scenario}"
            self._screen.tell(f"a session decides nothing: in another terminal: {elsewhere}")
        else:
            self._install(int(row["version"]))

    def _install(self, version: int) -> None:
        """Have the person asked, outside of this session; the rules are read anew at the next turn anyway."""
        if ask_to_install(version, self._screen.note):
            self._screen.tell(f"reef: v{version} is installed; it is in use from the next turn on")
        else:
            self._screen.tell(f"reef: v{version} is not installed")


def expanded(line: str, harness: Harness) -> tuple[str, str | None]:
    """What goes to the model for a line, and a remark for the person: skills and commands with their whole text."""
    if not line.startswith("/"):
        return line, None
    word, _, words = line[1:].partition(" ")
    words = words.strip()
    if word.startswith(_SKILL) and word.removeprefix(_SKILL) in harness.skills:
        skill = harness.skills[word.removeprefix(_SKILL)]
        return f"{skill.body}\n\n{words}".strip(), None
    if word in harness.commands:
        text = harness.commands[word]
        unused = f"/{word} takes no words" if words and "$ARGUMENTS" not in text else None
        return text.replace("$ARGUMENTS", words), unused
    return line, None if "/" in word else f"there is no command /{word}; the line goes to the model as it is"


def check_words(text: str) -> str:
    """The words of a turn. Raises InvalidInput when there are none."""
    if not text.strip():
        raise InvalidInput("there is nothing to do: the prompt is empty", 'reef-native -p "what to do"')
    return text


def _settled(number: int, now: Json) -> str:
    version = f" v{now['version']}" if now.get("version") else ""
    reason = now.get("reason") or now.get("meaning") or ""
    take = f"/versions{version} install" if may_ask() else "`reef-native update` in another terminal"
    after = {
        "published": f"; install it with {take}",
        "pending": f"; see it and decide with {take}",
    }.get(str(now.get("state")), "")
    return f"reef: ask #{number} {now.get('state')}{version}: {reason}{after}"


def _line(row: Json, here: int) -> str:
    marks = [
        "served" if row.get("current") else "",
        "installed" if row["version"] == here else "",
        "needs your yes" if row.get("pending") else "",
    ]
    said = row.get("summary") or row.get("operation") or ""
    return f"v{row['version']}  {said}  {', '.join(mark for mark in marks if mark)}".rstrip()


def _head(releases: list[Json]) -> str:
    return next((f"v{row['version']}" for row in releases if row.get("current")), "v1")


def _help(harness: Harness) -> str:
    lines = [f"/{name}  {text}" for name, text in OWN.items()]
    lines += [f"/{name}" for name in harness.commands]
    lines += [f"/{_SKILL}{name}  {skill.description}" for name, skill in harness.skills.items()]
    return "\n".join(lines)
