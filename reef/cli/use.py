"""`reef use`: which scenario commands mean when nothing else says so."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from reef.cli import output
from reef.cli.group import JsonOption, command, single
from reef.cli.scope import person_only, read
from reef.client import current_scenario
from reef.errors import NotFound
from reef.ids import scenario_name
from reef.paths import Paths, write_atomic
from reef.text import safe

app = single()


@command(app, examples=("reef use coding", "reef use --none"))
def use(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A scenario that exists.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Forget the choice.")] = False,
    json: JsonOption = False,
) -> None:
    """Choose the scenario that commands mean.

    `--scenario` and REEF_SCENARIO go before it; after it come the scenario of the last install on this machine and
    `default`. Without a name it says which one is meant now, and why.
    """
    paths = Paths.from_environ()
    if none or name is not None:
        person_only("choose the scenario of your commands")
    if none:
        paths.current_scenario.unlink(missing_ok=True)
    elif name is not None:
        scenario_name(name)
        known = read(
            paths, lambda client: _names(client.scenarios()), lambda reader: [row["name"] for row in reader.scenarios()]
        )
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            raise NotFound(
                f"there is no scenario {name!r}", f"reef use {near[0]}" if near else f"reef scenarios create {name}"
            )
        write_atomic(paths.current_scenario, f"{name}\n".encode())
    meant, origin = current_scenario(paths)
    if json:
        output.json_value({"scenario": meant, "origin": origin})
        return
    output.data(f"scenario {safe(meant)} ({origin})")


def _names(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [row["name"] for row in found["scenarios"]]
