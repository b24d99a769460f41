"""`reef asks`: what was asked for, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef import needs
from reef.cli import output, watch
from reef.cli.ask import finish
from reef.cli.group import JsonOption, ScenarioOption, command, noun
from reef.cli.look import OUT
from reef.cli.page import sections
from reef.cli.scope import daemon, person_only, read, scenario
from reef.errors import NotFound
from reef.ids import is_id
from reef.paths import Paths

app = noun(
    "List, show, watch or cancel asks. An ask says in plain words what should change.",
    "reef asks list",
    "reef asks show 3",
)

AskArgument = Annotated[str, typer.Argument(metavar="ASK", help="Number (`3` or `#3`) or id.")]


@command(app, "list", examples=("reef asks list", "reef asks list -s coding --json"))
def list_asks(scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """List the asks of a scenario.

    Newest first, with the state of each: queued, running, published, pending, rejected, skipped, failed or cancelled.
    """
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    found = read(paths, lambda client: client.asks(name)["asks"], lambda reader: reader.asks(name), name)
    rows = sorted(found, key=lambda row: row["number"], reverse=True)
    if json:
        output.json_value(rows)
        return
    if not rows:
        output.say('no asks yet, file one: reef ask "…"')
        return
    cells = [[f"#{row['number']}", OUT.when(row["created_at"]), _state(row), OUT.line(row["text"])] for row in rows]
    for line in OUT.table(["ask", "when", "state", "text"], cells, right=(0,)):
        output.data(line)


@command(app, "show", examples=("reef asks show 3", "reef asks show 3 --json"))
def show(ask: AskArgument, scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """Show one ask and what came of it.

    Its text, its state with the reason, the step that took it and the version that this made.
    """
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    row = _find(paths, name, ask)
    if json:
        output.json_value(row)
        return
    output.data(
        OUT.joined(f"ask #{row['number']}", f"scenario {row['scenario']}", _state(row), OUT.when(row["created_at"]))
    )
    for line in OUT.folded(f"  {OUT.line(row['text'])}"):
        output.data(line)
    for need in needs.of(row):
        output.data(f"needs  {needs.shown(need)}")
    if row.get("reason"):
        output.data(f"why    {OUT.line(row['reason'])}")
    if row.get("step"):
        output.data(f"step   {row['step']}   reef steps show {row['step']} -s {row['scenario']}")
    if row.get("version"):
        output.data(f"made   v{row['version']}   reef versions show v{row['version']} -s {row['scenario']}")
    sections(row, ("Activity", "Result"))


@command(app, "watch", examples=("reef asks watch 3", "reef asks watch 3 --timeout 600"))
def watch_ask(
    ask: AskArgument,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=1, help="How long to wait.")] = 1800,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Follow one ask until it is settled.

    The exit status is 0 when it was published or waits for your yes, 1 when it was rejected, skipped or failed, 2 when
    it was not settled in time. Ctrl-C stops the watching, not the step.
    """
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths, start=False) as client:
        ask_id = ask if is_id(ask) else client.ask(_number(ask), name)["id"]
        now, status = watch.follow(client, ask_id, timeout, name)
    finish(now, status, name, json)


@command(app, "cancel", examples=("reef asks cancel 3", "reef asks cancel 3 -s coding"))
def cancel(ask: AskArgument, scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """Cancel an ask that is not settled.

    One that waits is taken out of the queue; one that a step works on ends that step, which keeps its row.
    """
    person_only("cancel an ask")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths) as client:
        row = client.ask(ask if is_id(ask) else _number(ask), name)
        done = client.cancel_ask(row["id"])
    if json:
        output.json_value(done)
        return
    output.data(f"ask #{row['number']} cancelled")


def _find(paths: Paths, name: str, ask: str) -> dict[str, Any]:
    def from_database(reader: Any) -> dict[str, Any]:
        for row in reader.asks(name):
            if ask in (row["id"], str(row["number"]), f"#{row['number']}"):
                return dict(row)
        raise NotFound(f"scenario {name} has no ask {ask}", f"reef asks list -s {name}")

    reference = ask if is_id(ask) else _number(ask)
    return read(paths, lambda client: client.ask(reference, name), from_database, name)


def _number(text: str) -> str:
    number = text.removeprefix("#")
    if not number.isdecimal():
        raise NotFound(f"{text!r} is not the number or id of an ask", "reef asks list")
    return number


def _state(row: dict[str, Any]) -> str:
    version = f" v{row['version']}" if row.get("version") else ""
    return OUT.line(row["state"]) + version
