"""Giving the terminal back as it was, whatever an agent left it in."""

from __future__ import annotations

import os
import signal
import termios
from contextlib import suppress
from typing import Any

# Mouse, focus and bracketed paste off; keyboard protocols off; scroll region and synchronized output off; then back to
# the main screen, where the keyboard protocol has a state of its own; cursor, colours, keypad and wrapping as usual.
RESET = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1004l\x1b[?2004l"
    b"\x1b[<u\x1b[=0;1u\x1b[>4;0m\x1b[?2026l\x1b[r"
    b"\x1b[?1049l\x1b[=0;1u\x1b[?25h\x1b[0m\x1b[?1l\x1b>\x1b[?7h"
)


class Terminal:
    """The controlling terminal's state before an agent ran; does nothing where there is no terminal."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._before: list[Any] | None = None
        with suppress(OSError):
            self._file = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        if self._file is not None:
            with suppress(termios.error):
                self._before = termios.tcgetattr(self._file)

    @property
    def is_foreground(self) -> bool:
        """Whether this process is in the group that the terminal signals: an interrupt then reaches the agent too."""
        if self._file is None:
            return False
        try:
            return os.tcgetpgrp(self._file) == os.getpgrp()
        except OSError:
            return False

    def restore(self, killed: bool) -> None:
        """Put back the saved settings; after an agent that could not clean up itself, switch its modes off as well."""
        if self._file is None or self._before is None or not self.is_foreground:
            return
        with suppress(OSError, termios.error):
            left_changed = termios.tcgetattr(self._file) != self._before
            if killed or left_changed:
                _write(self._file, RESET)
            if left_changed:
                termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def close(self) -> None:
        """Let go of the terminal."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _write(file: int, data: bytes) -> None:
    # A terminal that this process may no longer write to must not stop it: SIGTTOU is left out of account here.
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        signal.signal(signal.SIGTTOU, before)
