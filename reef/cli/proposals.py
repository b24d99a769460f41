"""`reef proposals`: changes that agents wrote in their sessions, and what came of them."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, ScenarioOption, command, noun
from reef.cli.look import OUT
from reef.cli.scope import person_only, read, scenario
from reef.errors import NotFound
from reef.paths import Paths
from reef.text import safe

app = noun(
    "List or show changes that agents proposed. Each waits in an inbox until a step of its own takes it.",
    "reef proposals list",
    "reef proposals show 2",
)

Row = dict[str, Any]


@command(app, "list", examples=("reef proposals list", "reef proposals list -s coding --json"))
def list_proposals(scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """List the changes that agents proposed in their sessions.

    Newest first. One that waits is in the inbox, which holds eight; any other has the state of the step that took it.
    """
    rows, _ = _rows(scenario_name, json)
    if json:
        output.json_value(rows)
        return
    if not rows:
        output.say("no agent has proposed anything")
        return
    cells = [[f"#{row['number']}", OUT.when(row["created_at"]), _state(row), OUT.line(row["reason"])] for row in rows]
    for line in OUT.table(["proposal", "when", "state", "why"], cells, right=(0,)):
        output.data(line)


@command(app, "show", examples=("reef proposals show 2", "reef proposals show 2 --json"))
def show(
    proposal: Annotated[str, typer.Argument(metavar="PROPOSAL", help="Number (`2` or `#2`) or id.")],
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Show one proposal, its change and what came of it.

    The agent's own words, each entry that it would create, change or remove, and the step that took it.
    """
    rows, name = _rows(scenario_name, json)
    wanted = proposal.removeprefix("#")
    row = next((row for row in rows if wanted in (row["id"], str(row["number"]))), None)
    if row is None:
        raise NotFound(f"scenario {name} has no proposal {proposal[:40]}", f"reef proposals list -s {name}")
    if json:
        output.json_value(row)
        return
    output.data(OUT.joined(f"proposal #{row['number']}", f"scenario {name}", _state(row), OUT.when(row["created_at"])))
    for line in OUT.folded(f"  {OUT.line(row['reason'], 2000)}"):
        output.data(line)
    if row.get("outcome"):
        output.data(f"why    {OUT.line(row['outcome'], 400)}")
    if row.get("step"):
        output.data(f"step   {row['step']}   reef steps show {row['step']} -s {name}")
    for mutation in row["mutations"]:
        named = f"{mutation.get('op')} {mutation.get('kind') or ''} {mutation.get('id')}"
        output.data(f"\n{OUT.paint(OUT.line(named), 'strong')}")
        config = mutation.get("config") or {}
        text = config.get("text")
        shown = text if isinstance(text, str) else json_text.dumps(config, ensure_ascii=False, indent=2)
        for line in safe(shown).splitlines() if mutation.get("op") != "remove" else ():
            output.data(f"  {line}")


def _rows(scenario_name: str | None, json: bool) -> tuple[list[Row], str]:
    person_only("read what agents proposed")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    rows = read(paths, lambda client: client.proposals(name)["proposals"], lambda reader: reader.proposals(name), name)
    return rows, name


def _state(row: Row) -> str:
    version = f" v{row['version']}" if row.get("version") else ""
    return OUT.line(row["state"]) + version
