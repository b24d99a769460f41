"""Everything that reaches the person or the program that reads along; the one place that writes.

Three forms: lines for a person, the answer alone for `-p`, events as JSON lines for `--json`. Text of the model, of
tools and of files passes `reef.text.safe`.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable
from typing import Any, Literal

from reef.errors import ReefError
from reef.native.tools import Result
from reef.text import one_line, safe

Form = Literal["lines", "answer", "json"]
PROMPT = "> "
_COLUMNS = 100


class Screen:
    """Writes in one form."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._open = False
        """Whether the last thing written is a text without its line end."""
        self._asking = False
        self._waiting: list[str] = []
        self._lock = threading.Lock()

    def event(self, kind: str, **facts: Any) -> None:
        """One event, for a program."""
        if self.form == "json":
            self._write(json.dumps({"type": kind, **facts}) + "\n")

    def text(self, piece: str) -> None:
        """A piece of the answer, as it comes."""
        if self.form == "json":
            self.event("text", text=piece)
            return
        self._write(safe(piece))
        self._open = not piece.endswith("\n")

    def end_text(self) -> None:
        """The answer, or a part of it, is over."""
        if self._open:
            self._write("\n")
        self._open = False

    def tool(self, name: str, arguments: Any) -> None:
        """The model calls a tool."""
        self.event("tool", name=name, arguments=arguments)
        if self.form != "json":
            self.end_text()
            self._beside(f"· {name} {one_line(_brief(arguments), _COLUMNS)}".rstrip())

    def result(self, name: str, result: Result) -> None:
        """What became of the call."""
        self.event("result", name=name, text=result.text, failed=result.failed)
        if self.form == "lines" or (self.form == "answer" and result.failed):
            last = result.text.rstrip().rpartition("\n")[2]
            self._beside(f"  {'failed: ' if result.failed else ''}{one_line(last, _COLUMNS)}")

    def note(self, text: str) -> None:
        """Something worth knowing that is no answer."""
        self.event("note", text=text)
        if self.form != "json":
            self.end_text()
            self._beside(safe(text))

    def notes(self, texts: Iterable[str]) -> None:
        """Each of them as `note`."""
        for text in texts:
            self.note(text)

    def tell(self, text: str) -> None:
        """The answer of a command that makes no model call."""
        if self.form == "json":
            self.event("told", text=text)
        else:
            self._write(safe(text) + "\n")

    def error(self, error: ReefError, prefix: str = "error") -> None:
        """Why something ended."""
        self.event("error", message=error.message, hint=error.hint)
        if self.form != "json":
            self.end_text()
            hint = f"\nhint: {safe(error.hint)}" if error.hint else ""
            self._aside(f"{prefix}: {safe(error.message)}{hint}\n")

    def ask(self) -> str:
        """The person's next line. Raises EOFError, KeyboardInterrupt."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._asking = True
        self.notes(waiting)
        try:
            return input(PROMPT)
        finally:
            with self._lock:
                self._asking = False

    def arrived(self, text: str) -> None:
        """Something that came by itself, from another thread: at once beside the prompt, else when the turn is over."""
        with self._lock:
            if not self._asking:
                self._waiting.append(text)
                return
            self._write(f"\r\x1b[K{safe(text)}\n{PROMPT}{_typed()}")

    def leftover(self) -> None:
        """Tell what has arrived and was not told, before the end."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        self.notes(waiting)

    def _beside(self, line: str) -> None:
        """One line that is not part of the answer."""
        if self.form == "lines":
            self._write(line + "\n")
        else:
            self._aside(line + "\n")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def _aside(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _typed() -> str:
    """What the person has typed so far."""
    module = sys.modules.get("readline")
    return safe(module.get_line_buffer()) if module is not None else ""


def _brief(arguments: Any) -> str:
    """The one argument that says most, else all of them."""
    if isinstance(arguments, dict):
        for name in ("command", "path", "task"):
            if isinstance(arguments.get(name), str):
                return str(arguments[name])
        return json.dumps(arguments, ensure_ascii=False) if arguments else ""
    return str(arguments)
