"""A person with one vendor's agent: a sealed home with files of their own, and what a scenario gives the agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.home import Home, linked
from tests.e2e.room import Room


@contextmanager
def at_home(
    tmp_path: Path, need_tool: Callable[[str], str], vendors: Path, own: Mapping[str, str] | None = None
) -> Iterator[Home]:
    """A home with the fetched agents in it; `own`: what the person's own agents keep there, path to text."""
    room = Room(need_tool("bwrap"))
    made = Home(tmp_path / "person", room)
    linked(vendors / "agents", made.data / "agents")
    for name, text in (own or {}).items():
        (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made.folder / name).write_text(text)
    yield made
    made.sh("reef down --now")
    room.close()


def serve(home: Home, agent: str) -> Home:
    """Start a daemon on the scripted upstream, with scenario `coding` installed for the agent."""
    url, _ = home.fake_upstream()
    upstream = f"--inference.upstream-url {url} --inference.upstream-model fake-model"
    home.ok(f"reef up --recipe reefine --harness.adapter {agent} {upstream}")
    home.ok(f"reef scenarios create coding && reef agents add {agent} -s coding")
    return home


def plant(home: Home, agent: str, entries: Iterable[Mapping[str, str]], seconds: float) -> None:
    """Have a step publish these entries, and install what it made."""
    (home.project / "ask").write_text(f"[[propose {json.dumps({'entries': [*entries], 'summary': 'planted'})}]]")
    home.ok(f'reef-{agent} evolve "$(cat ask)" --wait && reef-{agent} update', timeout=seconds)


def asked(home: Home, route: str) -> list[dict[str, Any]]:
    """The bodies of the requests that came to the upstream on a route."""
    entries = [json.loads(line) for line in home.upstream_log.read_text(encoding="utf-8").splitlines()]
    came = [entry for entry in entries if entry["event"] == "request" and entry["path"].startswith(route)]
    return [json.loads(entry["body"]) for entry in came]


def hashes(home: Home, *places: str) -> dict[str, str]:
    """The hash of every file at and below these places of the person's home, by its path in it."""
    tops = [home.folder / name for name in places]
    files = {file for top in tops for file in (top, *top.rglob("*")) if file.is_file()}
    return {str(file.relative_to(home.folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
