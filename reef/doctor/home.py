"""The home around the store: room on the disk, settings, modes of folders and files, other people on the machine."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from reef import config
from reef.doctor.check import Check, counted, size
from reef.errors import ReefError
from reef.paths import Paths

LEAST_BYTES = 100 * 1024 * 1024
COMFORTABLE_BYTES = 1024 * 1024 * 1024
_PRIVATE = ("person.key", "token", "daemon.json", "daemon.log", "last-serve.json")
_NO_LOGIN = ("nologin", "false", "sync", "halt", "shutdown")
_FIRST_PERSON = 500
"""Accounts of people begin here on macOS, and at 1000 elsewhere."""


def check(paths: Paths) -> Iterator[Check]:
    """Every check of the home."""
    settings, found = read_settings(paths)
    yield found
    yield room(paths, shutil.disk_usage(_existing(paths.data)).free)
    yield modes(paths)
    tokens = bool(settings and (settings.tokens or settings.reef.token))
    yield accounts(sys.platform, tokens, ((entry.pw_name, entry.pw_uid, entry.pw_shell) for entry in pwd.getpwall()))


def read_settings(paths: Paths) -> tuple[config.Settings | None, Check]:
    """The settings of the next start, where they can be read."""
    try:
        resolved = config.load(paths=paths)
    except ReefError as error:
        return None, Check("settings", "bad", error.message, error.hint)
    read = ", then ".join(str(file) for file in resolved.files) or "none, so all is as by default"
    return resolved.settings, Check("settings", "ok", f"the settings can be read: {read}")


def room(paths: Paths, free: int) -> Check:
    """Whether the disk has what the next calls and the next upgrade, which copies the store first, will take."""
    held = paths.database.stat().st_size if paths.database.is_file() else 0
    needed = max(COMFORTABLE_BYTES, held)
    if free < LEAST_BYTES:
        sentence = f"only {size(free)} are free at {paths.data}: calls are answered but may go unrecorded"
        return Check("disk", "bad", sentence, "reef disk")
    if free < needed:
        sentence = f"{size(free)} are free at {paths.data}; an upgrade copies the store first and wants {size(needed)}"
        return Check("disk", "warn", sentence, "reef disk")
    return Check("disk", "ok", f"{size(free)} are free at {paths.data}")


def modes(paths: Paths) -> Check:
    """Whether only this user can read what is private, and owns it."""
    folders = [place for place in (paths.config, paths.data, paths.state, paths.cache) if place.exists()]
    files = [paths.config_file, *sorted(paths.data.glob("reef.db*")), *(paths.state / name for name in _PRIVATE)]
    open_folders = [place for place in folders if _mode(place) & 0o077]
    open_files = [place for place in files if place.is_file() and _mode(place) & 0o077]
    strange = [place for place in (*folders, *files) if place.exists() and place.stat().st_uid != os.getuid()]
    if strange:
        return Check("modes", "bad", f"{strange[0]} belongs to another user", f"ls -ld {strange[0]}")
    # What lies in a folder that nobody else can enter is closed to them, whatever its own mode.
    if open_folders:
        return Check(
            "modes",
            "bad",
            f"others can look into {_named(open_folders)}",
            f"chmod 700 {' '.join(map(str, open_folders))}",
        )
    if open_files:
        return Check(
            "modes", "warn", f"{_named(open_files)} could be read by others", f"chmod 600 {_typed(open_files)}"
        )
    return Check("modes", "ok", "folders are 0700 and files 0600: only you can read them")


def accounts(platform: str, has_token: bool, entries: Iterable[tuple[str, int, str]]) -> Check:
    """Whether other people of this machine could use the daemon: where no connection can be traced to its user."""
    if platform.startswith("linux"):
        return Check("accounts", "ok", "connections of other accounts of this machine are refused")
    people = sorted(
        name for name, uid, shell in entries
        if uid >= _FIRST_PERSON and uid not in (os.getuid(), 65534) and Path(shell).name not in _NO_LOGIN
    )  # fmt: skip
    if people and not has_token:
        sentence = (
            f"{counted(len(people), 'other account')} of this machine can use the daemon ({', '.join(people[:5])})"
        )
        return Check("accounts", "warn", sentence, "reef down && reef up --reef.token auto")
    return Check("accounts", "ok", "a token is needed" if people else "no other person has an account on this machine")


def _existing(place: Path) -> Path:
    return next(folder for folder in (place, *place.parents) if folder.exists())


def _mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


def _named(places: list[Path]) -> str:
    return str(places[0]) if len(places) == 1 else f"{places[0]} and {len(places) - 1} more"


def _typed(places: list[Path]) -> str:
    return " ".join(str(place) for place in places)
