"""Asking the person to install a version: through the wrapper, which shows the change and holds the key to decide."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from reef.errors import Failed, from_json
from reef.harness.confirming import CONFIRM_VARIABLE, ask_person

Json = dict[str, Any]


def may_ask() -> bool:
    """Whether there is a wrapper to ask."""
    return bool(os.environ.get(CONFIRM_VARIABLE))


def ask_to_install(version: int, say: Callable[[str], None]) -> bool:
    """Ask for an install of `version` and wait for the person; whether they said yes. `say` gets what takes time.

    Raises ReefError with the wrapper's own sentence.
    """
    for line in ask_person(os.environ[CONFIRM_VARIABLE], version):
        if "progress" in line:
            say(str(line["progress"]))
        elif "error" in line:
            raise from_json(409, line)
        elif "installed" in line or "declined" in line:
            return "installed" in line
    raise Failed("the wrapper ended before the question was answered", "reef versions install")
