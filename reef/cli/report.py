"""`reef report`: feedback on receipts, as the protocol has it."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, ScenarioOption, command, single
from reef.cli.look import OUT
from reef.cli.metadata import metadata_object
from reef.cli.receipts import whole
from reef.cli.scope import daemon, scenario
from reef.client import in_session
from reef.errors import UsageError
from reef.paths import Paths

app = single()


@command(
    app,
    examples=(
        'reef report 9f3c04b71d2e4c6f8a50b3d97e61c2e1 --score 1 --feedback "reproduced it first"',
        'reef report 9f3c 41d0 --score 0.5 --metadata \'{"task": {"name": "parser"}}\' --json',
    ),
)
def report(
    receipts: Annotated[list[str] | None, typer.Argument(metavar="RECEIPT", help="What the report is on.")] = None,
    score: Annotated[
        float | None, typer.Option("--score", metavar="NUMBER", help="A finite number; what it means is the recipe's.")
    ] = None,
    feedback: Annotated[str | None, typer.Option("--feedback", "-f", metavar="TEXT", help="Words.")] = None,
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="JSON", help="An object that the recipe reads.")
    ] = None,
    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the report; the same id again is the same report.")
    ] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Send a report on receipts: score, feedback, metadata.

    Several receipts in one report are one trajectory. A receipt may be cut to a beginning that only one record has; the
    scenario is that of the record. In an agent's session the report is stored as the agent's, which never counts as
    yours.
    """
    if score is None and feedback is None and metadata is None:
        raise UsageError("a report needs a score, feedback or metadata", "reef report RECEIPT --score 1")
    if score is not None and not math.isfinite(score):
        raise UsageError(f"the score {score} is not a finite number", "reef report RECEIPT --score 1")
    paths = Paths.from_environ()
    with daemon(paths) as client:
        body: dict[str, Any] = {"references": [whole(paths, receipt) for receipt in receipts or []]}
        if scenario_name is None and body["references"] and not in_session():
            name = str(client.record(body["references"][0])["scenario"])
        else:
            name = scenario(paths, scenario_name, quiet=json)
        given = {"score": score, "feedback": feedback, "metadata": metadata_object(metadata), "agent_record_id": id}
        body |= {key: value for key, value in given.items() if value is not None}
        stored = client.report(name, body)
    if json:
        output.json_value(stored)
        return
    shown = ", ".join(OUT.id(receipt) for receipt in body["references"]) or f"scenario {name}"
    output.data(f"report {OUT.id(stored['agent_record_id'])} stored on {shown}")
