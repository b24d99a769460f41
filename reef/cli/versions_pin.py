"""`reef versions pin` and `unpin`: the version that stays installed while newer ones are served."""

from __future__ import annotations

from typing import Annotated

import typer

from reef.cli import installing, output
from reef.cli.group import JsonOption, ScenarioOption
from reef.cli.look import ERR, OUT
from reef.cli.scope import daemon, head_of, person_only, scenario, versions_of
from reef.cli.version_rows import Json, existing
from reef.client import Client
from reef.errors import NotFound
from reef.paths import Paths
from reef.pinned import pinned

PinnedArgument = Annotated[
    str | None, typer.Argument(metavar="VERSION", help="`v3`; else the installed one, else the head.")
]
ForAgent = Annotated[
    str | None, typer.Option("--adapter", metavar="NAME", help="For this agent alone; else for every agent.")
]


def pin(
    version: PinnedArgument = None, adapter: ForAgent = None, scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Keep one version installed while newer ones are served.

    `reef versions install` and `reef-pi update` without a number bring the pinned version, and no other is installed
    until `reef versions unpin`. Where another version is installed now, the pinned one takes its place. To look at
    another for one session: `reef versions try`.
    """
    person_only("pin a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths) as client:
        rows = versions_of(client, name)
        number = existing(rows, name, version) if version else _here(client, name, adapter) or head_of(rows)
        if number is None:
            raise NotFound(f"scenario {name} has no version yet", "reef versions list")
        done = client.pin(name, number, adapter)
        installed = [
            installing.run(client.install_harness(name, agent, number), f"v{number}")
            for agent in _others(client, name, number, done["pins"])
        ]
    if json:
        output.json_value(done | {"installed": installed})
        return
    output.data(OUT.joined(f"pinned v{number}", f"scenario {name}", f"for {OUT.line(adapter) or 'every agent'}"))
    for one in installed:
        installing.tell(one)
    output.say(f"{ERR.paint('undo', 'dim')}   reef versions unpin -s {name}")


def unpin(adapter: ForAgent = None, scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """Let the installed version follow the head again.

    Nothing is installed by this: the next `reef versions install` or `reef-pi update` brings the head. Without
    --adapter every pin of the scenario is taken away.
    """
    person_only("unpin a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths) as client:
        done = client.unpin(name, adapter)
        head = head_of(versions_of(client, name))
    if json:
        output.json_value(done)
        return
    output.data(OUT.joined(f"unpinned scenario {name}", f"v{head} is served"))
    output.say(f"{ERR.paint('next', 'dim')}   reef versions install -s {name}")


def _here(client: Client, name: str, adapter: str | None) -> int | None:
    """The version that is installed for the agent."""
    agent = installing.adapter_of(client, name, adapter)
    return next((number for known, number in _installed(client, name) if known == agent), None)


def _others(client: Client, name: str, number: int, pins: list[Json]) -> list[str]:
    """The agents that the pin is for and that have another version now."""
    return [agent for agent, has in _installed(client, name) if pinned(pins, agent) == number and has != number]


def _installed(client: Client, name: str) -> list[tuple[str, int]]:
    return [
        (row["name"], place["version"])
        for row in client.adapters()["adapters"]
        for place in row["scenarios"]
        if place["name"] == name
    ]
