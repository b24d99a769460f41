"""`reef steps`: every attempt, those that were turned down too."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, ScenarioOption, command, noun
from reef.cli.look import OUT, parse_time, span
from reef.cli.scope import daemon, person_only, read, scenario
from reef.cli.watch import evaluation_lines
from reef.paths import Paths

app = noun(
    "List, show or cancel steps. A step is one attempt: inputs, candidate, evaluation, decision.",
    "reef steps list",
    "reef steps show 3",
)

StepArgument = Annotated[int, typer.Argument(metavar="STEP", min=1, help="Number of the step in its scenario.")]


@command(app, "list", examples=("reef steps list", "reef steps list -s coding --json"))
def list_steps(scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """List every step of a scenario, rejected ones too.

    Newest first. A step that failed, was skipped or could not be evaluated keeps its row with the reason.
    """
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    found = read(paths, lambda client: client.steps(name)["steps"], lambda reader: reader.steps(name), name)
    rows = sorted(found, key=lambda row: row["number"], reverse=True)
    if json:
        output.json_value(rows)
        return
    if not rows:
        output.say('no steps yet, an ask starts one: reef ask "…"')
        return
    cells = []
    for row in rows:
        state = OUT.line(row["state"]) + (f" v{row['version']}" if row.get("version") else "")
        why = OUT.line(row.get("summary") or row.get("reason"))
        cells.append([str(row["number"]), OUT.when(row["started_at"]), OUT.line(row["recipe"]), _took(row), state, why])
    for line in OUT.table(["step", "when", "recipe", "time", "state", "what"], cells, right=(0, 3)):
        output.data(line)


@command(app, "show", examples=("reef steps show 3", "reef steps show 3 -s coding --json"))
def show(step: StepArgument, scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """Show one step: what it read, made and decided.

    The proposed entries, each check with its outcome, the policy that decided and the version that came of it.
    """
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    row = read(paths, lambda client: client.step(name, step), lambda reader: reader.step(name, step), name)
    if json:
        output.json_value(row)
        return
    for line in _facts(row):
        for part in OUT.folded(line):
            output.data(part)


@command(app, "cancel", examples=("reef steps cancel 3", "reef steps cancel 3 -s coding"))
def cancel(step: StepArgument, scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """Cancel a step that is running.

    Its processes end, its inputs are free again, and its row stays as cancelled. What is served does not change.
    """
    person_only("cancel a step")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths) as client:
        done = client.cancel_step(name, step)
    if json:
        output.json_value(done)
        return
    output.data(f"step {step} of scenario {name} cancelled")


def _took(row: dict[str, Any]) -> str:
    start, end = parse_time(str(row.get("started_at"))), parse_time(str(row.get("ended_at")))
    return span((end - start).total_seconds()) if start and end else OUT.symbol("–")


def _facts(row: dict[str, Any]) -> list[str]:
    proposer = f"proposer {OUT.line(row['proposer'])}" if row.get("proposer") else None
    named = OUT.joined(f"step {row['number']}", OUT.line(row["scenario"]), OUT.line(row["state"]))
    lines = [OUT.joined(named, OUT.when(row["started_at"]))]
    lines.append(f"recipe    {OUT.joined(OUT.line(row['recipe']), proposer, _took(row))}")
    for label, key in (("what", "summary"), ("why", "reason")):
        if row.get(key):
            lines.append(f"{label:<9} {OUT.line(row[key])}")
    for mutation in row.get("mutations") or []:
        words = [OUT.line(str(mutation.get(key) or "")) for key in ("op", "kind", "id")]
        lines.append(f"entry     {' '.join(word for word in words if word)}")
    lines += evaluation_lines(row.get("evaluation"))
    for item in row.get("activity") or []:
        lines.append(f"  {OUT.line(str(item.get('kind'))):<12} {OUT.line(str(item.get('text') or ''), 160)}")
    if row.get("version"):
        lines.append(f"made      v{row['version']}   reef versions show v{row['version']} -s {row['scenario']}")
    return lines
