"""What a command works on: the scenario that is meant, the daemon, or the database while the daemon is down.

An agent's session is told apart here as well: what only the person may do is refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from reef.cli import output
from reef.cli.look import ERR
from reef.client import Client, current_scenario, in_session
from reef.errors import DaemonUnreachable, Forbidden
from reef.ids import scenario_name
from reef.paths import Paths
from reef.text import safe

if TYPE_CHECKING:
    from reef.records.reader import Reader

T = TypeVar("T")


def scenario(paths: Paths, explicit: str | None, quiet: bool = False) -> str:
    """The scenario a command means. Says on stderr which one and why when nobody typed it and it is not `default`."""
    name, origin = current_scenario(paths, explicit)
    scenario_name(name)
    if not quiet and origin not in ("default", "--scenario"):
        output.say(ERR.paint(f"scenario {safe(name)} ({origin})", "dim"))
    return name


def person_only(what: str) -> None:
    """Refuse, with exit 5, what an agent's session may not do; `what` is the deed, for example `promote a version`."""
    if in_session():
        raise Forbidden(f"an agent's session cannot {what}; the person does that in a shell of their own")


@contextmanager
def daemon(paths: Paths, start: bool | None = None) -> Iterator[Client]:
    """The daemon of this home; `start=False` for commands that only read."""
    with Client.connect(paths, start=start, told=_say_started) as client:
        yield client


def _say_started(parts: list[str]) -> None:
    output.say(ERR.paint(ERR.joined(*(safe(part) for part in parts)), "dim"))


def read(paths: Paths, online: Callable[[Client], T], offline: Callable[[Reader], T], within: str | None = None) -> T:
    """Ask the daemon, or the database itself while the daemon is down.

    `within` is a scenario that must exist. Raises DaemonUnreachable when there is neither, NotFound.
    """
    try:
        client = Client.connect(paths, start=False)
    except DaemonUnreachable:
        if in_session() or not paths.database.is_file():
            raise
        from reef.records.reader import Reader

        output.say(ERR.paint("the daemon is not running; this is read from the database", "dim"))
        reader = Reader(paths.database)
        try:
            if within is not None:
                reader.scenario(within)
            return offline(reader)
        finally:
            reader.close()
    with client:
        return online(client)


def versions_of(client: Client, name: str) -> list[dict[str, Any]]:
    """The versions of a scenario, newest first."""
    found: list[dict[str, Any]] = client.releases(name)["releases"]
    return sorted(found, key=lambda version: version["version"], reverse=True)


def head_of(versions: list[dict[str, Any]]) -> int | None:
    """The number of the version that is served; None before the first is published."""
    for version in versions:
        if version.get("current"):
            return int(version["version"])
    return None
