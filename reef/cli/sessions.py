"""`reef sessions`: the calls of one agent run, joined."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reef.cli import output
from reef.cli.group import JsonOption, LimitOption, ScenarioOption, command, noun
from reef.cli.look import OUT, count
from reef.cli.scope import read
from reef.paths import Paths

app = noun(
    "List the sessions of agents and programs. A session joins the calls of one run.",
    "reef sessions list",
    "reef sessions list --json",
)


@command(app, "list", examples=("reef sessions list --here", "reef sessions list -s coding -n 50 --json"))
def list_sessions(
    here: Annotated[bool, typer.Option("--here", help="Only sessions that were run in this directory.")] = False,
    limit: LimitOption = 20,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """List the newest sessions.

    Of every scenario, or of the one that --scenario names, with the number of calls and your latest rating.
    """
    cwd = str(Path.cwd()) if here else None
    rows = read(
        Paths.from_environ(),
        lambda client: client.sessions(cwd=cwd, scenario=scenario_name, limit=limit)["sessions"],
        lambda reader: reader.sessions(cwd=cwd, scenario=scenario_name, limit=limit),
        scenario_name,
    )
    if json:
        output.json_value(rows)
        return
    if not rows:
        output.say("no sessions yet, run an agent: reef-pi")
        return
    cells = []
    for row in rows:
        version = f"v{row['version']}" if row.get("version") else OUT.symbol("–")
        title = OUT.line(row.get("title") or row.get("last_preview"))
        when = OUT.when(row.get("last_at") or row.get("opened_at"))
        score = OUT.symbol("–") if row.get("score") is None else f"{row['score']:g}"
        cells.append(
            [
                when,
                OUT.line(row["scenario"]),
                OUT.line(row.get("adapter")),
                count(row.get("calls")),
                score,
                version,
                title,
            ]
        )
    for line in OUT.table(["when", "scenario", "agent", "calls", "you", "version", "session"], cells, right=(3, 4)):
        output.data(line)
