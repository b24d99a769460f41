"""One question to the person, on the terminal itself and outside of the agent that has it otherwise.

The text is shown page by page, and only whoever has seen the last page can say yes. What was typed before the question
stood there is no answer, and what is pasted is none either.
"""

from __future__ import annotations

import os
import select
import termios
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from reef.errors import Refused
from reef.text import safe, width

_ALTERNATE, _MAIN = b"\x1b[?1049h", b"\x1b[?1049l"
# The keyboard protocol that an agent may have turned on is put aside and taken back, each screen keeps its own.
_PLAIN_KEYS, _AGENT_KEYS = b"\x1b[>0u", b"\x1b[<u"
_CLEAR = b"\x1b[0m\x1b[2J\x1b[H"
_NEXT = (b" ", b"\r", b"\n", b"f", b"j", b"\x1b[B", b"\x1b[6~")
_BACK = (b"b", b"k", b"\x1b[A", b"\x1b[5~")
_NO = (b"n", b"N", b"q", b"\x1b", b"\x03", b"\x04")
_MARGIN = 4
"""Rows that title, rule and question take."""


class Question:
    """Asks on the controlling terminal. `close` may be called from another thread: the open question is a no then."""

    def __init__(self) -> None:
        self._wake, self._waker = os.pipe()
        self._closed = False
        self._open = threading.Lock()

    def close(self) -> None:
        """End an open question, and every later one, with no; returns when the terminal is as it was before it."""
        self._closed = True
        os.write(self._waker, b".")
        with self._open:
            return

    def ask(self, title: str, lines: Sequence[str], question: str, own_screen: bool, paste: str) -> bool:
        """Whether the person says yes. `own_screen`: the agent draws on the alternate screen already.

        Raises Refused with the command `paste` when there is no terminal in whose foreground this process is.
        """
        with self._open:
            return self._ask(title, lines, question, own_screen, paste)

    def _ask(self, title: str, lines: Sequence[str], question: str, own_screen: bool, paste: str) -> bool:
        file = _terminal(paste)
        try:
            before = termios.tcgetattr(file)
            termios.tcsetattr(file, termios.TCSAFLUSH, _key_by_key(before))
            try:
                os.write(file, (b"" if own_screen else _ALTERNATE) + _PLAIN_KEYS)
                return self._pages(file, title, lines, question)
            finally:
                with suppress(OSError, termios.error):
                    os.write(file, _CLEAR + _AGENT_KEYS + (b"" if own_screen else _MAIN))
                    termios.tcsetattr(file, termios.TCSAFLUSH, before)
        finally:
            os.close(file)

    def _pages(self, file: int, title: str, lines: Sequence[str], question: str) -> bool:
        page = seen = 0
        while True:
            columns, rows = _size(file)
            shown = [part for line in lines for part in _folded(safe(line), columns)]
            height = max(1, rows - _MARGIN)
            last = max(0, (len(shown) - 1) // height)
            page = min(page, last)
            seen = max(seen, page)
            whole = seen >= last
            keys = "y = yes, n = no" if whole else f"space = more ({page + 1} of {last + 1}), n = no"
            text = [*_folded(safe(title), columns)[:1], "", *shown[page * height : (page + 1) * height], ""]
            os.write(file, _CLEAR + "\r\n".join([*text, f"{question} [{keys}] "]).encode("utf-8", "replace"))
            key = self._key(file)
            if key in _NO or not key:
                return False
            if key in (b"y", b"Y") and whole:
                return True
            page = min(page + 1, last) if key in _NEXT else max(page - 1, 0) if key in _BACK else page

    def _key(self, file: int) -> bytes:
        """One key, empty when the terminal or the question is gone."""
        if self._closed:
            return b""
        ready = select.select([file, self._wake], [], [])[0]
        if self._wake in ready:
            return b""
        try:
            return os.read(file, 1024)
        except OSError:
            return b""


def _terminal(paste: str) -> int:
    """The controlling terminal, opened."""
    try:
        file = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise Refused("there is no terminal on which the person could be asked", paste) from None
    if os.tcgetpgrp(file) != os.getpgrp():
        os.close(file)
        raise Refused("this session is in the background, where the person cannot be asked", paste)
    return file


def _key_by_key(before: list[Any]) -> list[Any]:
    """Settings under which every key arrives at once and unseen; none is a signal, which would reach the agent."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, cc = before
    characters = [*cc]
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    lflag &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
    return [iflag | termios.ICRNL, oflag | termios.OPOST, cflag, lflag, ispeed, ospeed, characters]


def _size(file: int) -> tuple[int, int]:
    size = os.get_terminal_size(file)
    return max(20, size.columns or 80), max(_MARGIN + 1, size.lines or 24)


def _folded(line: str, columns: int) -> list[str]:
    """A line as rows of at most `columns`, nothing of it left out."""
    rows, row, used = [], "", 0
    for char in line.replace("\t", "    ").replace("\n", " "):
        wide = width(char)
        if used + wide > columns:
            rows.append(row)
            row, used = "", 0
        row += char
        used += wide
    return [*rows, row]
