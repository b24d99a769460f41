"""The one module of the command line that prints: stdout is data, stderr is talk.

It imports nothing at the top but builtins, because `reef --help` goes through here. Text that a model, an agent or a
file made must have passed `reef.text` before it comes here; `show_bytes` does that itself.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TextIO

    from reef.errors import ReefError

_QUIET_S = 5.0
_OBEYED = (0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x2028, 0x2029)


def prepare() -> None:
    """Make both streams unable to fail on a character that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def data(text: str = "") -> None:
    """One line (or several) of the answer itself, on stdout."""
    sys.stdout.write(text + "\n")


def say(text: str = "") -> None:
    """One line of talk, on stderr: progress, notices, what to do next."""
    _talk(text + "\n")


def json_value(value: Any) -> None:
    """One JSON value on stdout: exact, and free of characters that a terminal would obey."""
    import json

    text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None, allow_nan=False)
    escaped = text.translate({code: f"\\u{code:04x}" for code in _OBEYED})
    data(escaped.encode("utf-8", "backslashreplace").decode("utf-8"))


def show_bytes(body: bytes) -> None:
    """Exact bytes on stdout; on a terminal, text whose control characters are shown and not sent."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
        return
    from reef.text import safe

    text = body.decode("utf-8", "replace")
    shown = safe(text)
    data(shown.rstrip("\n"))
    if shown != text:
        say("control characters are shown as pictures; send the output to a file for the exact bytes")


def problem(error: ReefError, as_json: bool) -> None:
    """An error as people read it, `error:` and `hint:`, or as one JSON object; always on stderr."""
    if as_json:
        import json

        _talk(json.dumps(error.to_json()) + "\n")
        return
    from reef.cli.look import ERR
    from reef.text import safe

    _talk(f"{ERR.paint('error:', 'failed')} {safe(error.message)}\n")
    if error.hint:
        _talk(f"\n{ERR.paint('hint:', 'hint')} {safe(error.hint)}\n")


def traceback_text(text: str) -> None:
    """A traceback, for whoever set `REEF_DEBUG=1`."""
    from reef.text import safe

    _talk(safe(text))


def can_ask() -> bool:
    """Whether a person can be asked: both stdin and stderr are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, default: bool = False) -> bool:
    """Ask a yes-or-no question on the terminal. End of input means no."""
    while True:
        answer = _prompt(f"{question} [{'Y/n' if default else 'y/N'}] ")
        if answer is None:
            return False
        if answer.lower() in ("y", "yes"):
            return True
        if answer.lower() in ("n", "no"):
            return False
        if not answer:
            return default


def choose(question: str, count: int) -> int | None:
    """Ask for a number from 1 to `count`. Returns it, or None when the person gives none."""
    while True:
        answer = _prompt(f"{question} [{f'1-{count}' if count > 1 else '1'}, enter for none] ")
        if not answer:
            return None
        if answer.isdecimal() and 1 <= int(answer) <= count:
            return int(answer)


def letter(question: str, letters: str) -> str:
    """Ask for one of `letters`, the last of which stands for leaving; end of input is that one."""
    while True:
        answer = _prompt(f"{question} [{'/'.join(letters)}] ")
        if answer is None:
            return letters[-1]
        if answer and answer[0].lower() in letters:
            return answer[0].lower()


def agree(question: str, yes: bool, paste: str, otherwise: str = "nothing was changed", why: str = "") -> None:
    """Have the person's yes: given already, or asked for now. `paste` is the command that brings it along.

    Raises UsageError where nobody can be asked (`why` goes before), Failed with `otherwise` for a no.
    """
    from reef.errors import Failed, UsageError

    if yes:
        return
    if not can_ask():
        raise UsageError(f"{why}this needs your yes, and there is no terminal to ask on", paste)
    if not confirm(question):
        raise Failed(otherwise, paste)


def secret(question: str, paste: str) -> str:
    """A line that is typed unseen, empty for none. Raises UsageError with `paste` where nobody can be asked."""
    from reef.errors import UsageError

    if not can_ask():
        raise UsageError("this needs a value, and there is no terminal to ask on", paste)
    import getpass

    try:
        return getpass.getpass(question, stream=sys.stderr)
    except EOFError:
        return ""


def _prompt(question: str) -> str | None:
    _talk(question)
    answer = sys.stdin.readline()
    if not answer:
        _talk("\n")
        return None
    return answer.strip()


class Progress:
    """One line on stderr that changes on a terminal; elsewhere lines of their own, at most one in five seconds."""

    def __init__(self) -> None:
        self._shown = ""
        self._next = 0.0
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, text: str) -> None:
        """Show `text`, which must be safe and without newline, instead of what was shown before."""
        if text == self._shown:
            return
        if self.live:
            from reef.cli.look import ERR
            from reef.text import one_line

            _talk(f"\r\x1b[K{one_line(text, max(20, ERR.columns - 1))}")
        elif text and time.monotonic() >= self._next:
            self._next = time.monotonic() + _QUIET_S
            _talk(text + "\n")
        self._shown = text

    def keep(self, text: str) -> None:
        """Print `text` as a line that stays, above the changing one."""
        if self.live and self._shown:
            _talk("\r\x1b[K")
        from reef.cli.look import ERR

        _talk("\n".join(ERR.folded(text)) + "\n")
        shown, self._shown = self._shown, ""
        if self.live:
            self.show(shown)

    def clear(self) -> None:
        """Remove the changing line."""
        if self.live and self._shown:
            _talk("\r\x1b[K")
        self._shown = ""


def flush() -> None:
    """Hand over everything that was written. Raises BrokenPipeError when nobody reads stdout any more."""
    sys.stdout.flush()


def discard() -> None:
    """Point stdout at nothing, so that Python's own flush at exit has nothing to complain about."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)


def _talk(text: str) -> None:
    stream: TextIO = sys.stderr
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # Nobody listens to the talk; the data may still have a reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
