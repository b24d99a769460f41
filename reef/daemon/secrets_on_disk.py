"""The secrets that a home makes for itself: the person key, and the token of `reef.token: auto`. Files of mode 0600.

Whatever is read here is held from then on: it stands in these files and nowhere else.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from reef.config import Settings
from reef.credentials import hold
from reef.discovery import read_secret
from reef.paths import Paths, write_atomic


def person_key(paths: Paths) -> str:
    """The person key of this home, made at the first start."""
    found = _kept(paths.person_key)
    hold(found)
    return found


def tokens(settings: Settings, paths: Paths) -> list[str]:
    """Every token that is accepted; `auto` is one of this home's own, in `token` in the state folder."""
    found = settings.tokens
    own = settings.reef.token
    if own is not None and own.get_secret_value() == "auto":
        found.append(_kept(paths.state / "token"))
    for token in found:
        hold(token)
    return found


def _kept(path: Path) -> str:
    if path.is_file():
        path.chmod(0o600)
        found = read_secret(path)
        if found:
            return found
    made = secrets.token_hex(32)
    write_atomic(path, made.encode("ascii") + b"\n")
    return made
