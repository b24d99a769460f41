"""One daemon a home: the exclusive lock, the discovery file, and what a second start says.

The lock is the kernel's and ends with the process, so a stale file never keeps a home closed and never gets another
program killed. The discovery file is written when the daemon answers and removed when it stops.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from reef import __version__
from reef.config import Resolved
from reef.discovery import is_ours, read_discovery
from reef.errors import Conflict, Failed
from reef.ids import utc_now
from reef.paths import Paths, ensure_private, write_atomic

Json = dict[str, Any]
_MOVABLE = ("default", "profile")


class Lock:
    """The right to be this home's daemon, held until the process ends."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Take the lock; False when another process has it."""
        ensure_private(self._paths.state)
        handle = os.open(self._paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        file = os.fdopen(handle, "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def describe(self, host: str, port: int, facts: Json) -> Json:
        """What the discovery file is going to say of this process at this address."""
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        shown = f"[{shown}]" if ":" in shown else shown
        return {
            "pid": os.getpid(),
            "port": port,
            "host": host,
            "url": f"http://{shown}:{port}",
            "version": __version__,
            "started_at": utc_now(),
            "facts": facts,
        }

    def announce(self, description: Json) -> None:
        """Write the discovery file: from now on clients find this daemon."""
        write_atomic(self._paths.discovery, json.dumps(description, indent=1).encode())

    def release(self) -> None:
        """Remove the discovery file and give the lock back."""
        if self._file is not None:
            self._paths.discovery.unlink(missing_ok=True)
            self._file.close()
            self._file = None


@dataclass(frozen=True)
class PortWish:
    """The port that the settings ask for."""

    port: int
    movable: bool
    """Whether the next free port will do: only when nobody set this one."""


def port_wish(resolved: Resolved) -> PortWish:
    """The port of these settings; one that comes from a default or a recipe's profile may move."""
    origin = resolved.origins.get("reef.port", "default")
    return PortWish(resolved.settings.reef.port, origin.split(" ")[0] in _MOVABLE)


def serving_facts(resolved: Resolved, engine: str | None = None) -> Json:
    """What makes two daemons of one home different: `{recipe, upstream, model, port}`; the key of a URL is left out.

    `engine` is the name of the engine that was built, where settings that name none left the choice to reef.
    """
    inference = resolved.settings.inference
    wish = port_wish(resolved)
    embedded = "embedded" in (inference.backend, engine)
    upstream = "embedded" if embedded else _without_secrets(inference.upstream_url)
    return {
        "recipe": resolved.settings.recipe.implementation,
        "upstream": upstream,
        "model": inference.upstream_model,
        "port": None if wish.movable or wish.port == 0 else wish.port,
    }


def _without_secrets(url: str | None) -> str | None:
    if url is None:
        return None
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def differences(running: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Each fact in which `wanted` is not what runs, as `recipe (running: basic, asked for: reefine)`."""
    facts = running.get("facts") or {}
    found = []
    for name in ("recipe", "upstream", "model", "port"):
        asked = wanted.get(name)
        has = running.get("port") if name == "port" else facts.get(name)
        # A port that nobody named may be any, and what answers when nothing is named is the embedded model.
        if asked == has or (asked is None and (name == "port" or has == "embedded")):
            continue
        found.append(f"{name} (running: {has or 'none named'}, asked for: {asked or 'none named'})")
    return found


def acquire_or_find(lock: Lock, paths: Paths, wait_s: float) -> Json | None:
    """Take the lock and return None, or return the discovery facts of the daemon that has it.

    Waits up to `wait_s` seconds for one that is still starting, or is about to end. Raises Failed when the holder
    neither answers nor ends.
    """
    deadline = time.monotonic() + wait_s
    while not lock.acquire():
        found = read_discovery(paths)
        if found is not None and is_ours(found, paths):
            return found
        if time.monotonic() > deadline:
            raise Failed("another process holds this home's lock but does not answer", "reef down --now && reef up")
        time.sleep(0.1)
    return None


def check_same(running: Json, wanted: Json) -> None:
    """Raises Conflict when the daemon that runs serves with other settings than wanted."""
    differ = differences(running, wanted)
    if differ:
        message = f"the daemon already runs at {running['url']} with another {'; another '.join(differ)}"
        raise Conflict(message, "reef down && reef up")
