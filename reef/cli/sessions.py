"""`reef sessions`: the calls of one agent run, joined."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reef.cli import output, talk
from reef.cli.group import JsonOption, LimitOption, ScenarioOption, command, noun
from reef.cli.look import OUT, count
from reef.cli.scope import person_only, read
from reef.paths import Paths

app = noun(
    "List sessions, or show one as a conversation. A session joins the calls of one run of an agent or a program.",
    "reef sessions list",
    "reef sessions show KEY",
)


@command(app, "list", examples=("reef sessions list --here", "reef sessions list -s coding -n 50 --json"))
def list_sessions(
    here: Annotated[bool, typer.Option("--here", help="Only sessions that were run in this directory.")] = False,
    steps: Annotated[bool, typer.Option("--steps", help="The sessions of steps instead.")] = False,
    limit: LimitOption = 20,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """List the newest sessions.

    Of every scenario, or of the one that --scenario names, with the number of calls and your latest rating: those that
    an agent was started for, and those that only the calls of a program name.
    """
    wanted: dict[str, Any] = {"scenario": scenario_name, "limit": limit, "kind": "step" if steps else "agent"}
    wanted |= {"cwd": str(Path.cwd())} if here else {}
    rows = read(
        Paths.from_environ(),
        lambda client: client.sessions(**wanted)["sessions"],
        lambda reader: reader.sessions(**wanted),
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
                OUT.id(row["id"]) if row["id"] else OUT.line(row["key"], 16),
                OUT.line(row["scenario"]),
                OUT.line(row.get("adapter")),
                count(row.get("calls")),
                score,
                version,
                title,
            ]
        )
    for line in OUT.table(
        ["when", "session", "scenario", "agent", "calls", "you", "version", "last asked"], cells, right=(4, 5)
    ):
        output.data(line)


@command(app, "show", examples=("reef sessions show 9f3c2a…", "reef sessions show my-run -s coding --json"))
def show(
    name: Annotated[str, typer.Argument(metavar="SESSION", help="Its id or its key; see `reef sessions list --json`.")],
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Show a session as one conversation.

    Every message once, each tool call on one line with the end of its result, and your ratings beside the answers.
    `reef records show RECEIPT` has the exact bytes of one call.
    """
    person_only("read records")
    paths = Paths.from_environ()
    found: dict[str, Any] = read(
        paths,
        lambda client: client.session(name, scenario_name),
        lambda reader: reader.talk(name, scenario_name),
        scenario_name,
    )
    if json:
        output.json_value(found)
        return
    for line in talk.lines(found):
        output.data(line)
