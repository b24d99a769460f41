"""`reef reports`: what was said of records, by whom, and how often somebody thought again."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, LimitOption, ScenarioOption, command, noun
from reef.cli.look import OUT, counted
from reef.cli.metadata import metadata_object
from reef.cli.receipts import whole, whole_report
from reef.cli.scope import daemon, person_only, read
from reef.errors import UsageError
from reef.paths import Paths

app = noun(
    "List, show or revise reports. A report is feedback on receipts; `reef report`, `good` and `bad` make one.",
    "reef reports list -n 10",
    "reef reports show REPORT",
)
_SOURCES = ("person", "program", "agent")
_BY = {"person": "you", "program": "a program", "agent": "an agent"}
Json = dict[str, Any]


@command(app, "list", examples=("reef reports list --source person", "reef reports list --receipt 9f3c --json"))
def list_reports(
    limit: LimitOption = 20,
    receipt: Annotated[
        str | None, typer.Option("--receipt", "-r", metavar="RECEIPT", help="Only reports on this record.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="WHO", help="Only those of a `person`, a `program` or an `agent`.")
    ] = None,
    before: Annotated[int | None, typer.Option("--before", metavar="SEQUENCE", help="Only older ones.")] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """List the newest reports.

    Of every scenario, or of the one that --scenario names. What an agent says of its own answers stands apart and never
    counts as yours. `--before` with the last sequence of a list gives the next page.
    """
    person_only("list reports")
    if source is not None and source not in _SOURCES:
        raise UsageError(f"{source!r} is not one of {', '.join(_SOURCES)}", "reef reports list --source person")
    paths = Paths.from_environ()
    record = whole(paths, receipt) if receipt else None
    rows: list[Json] = read(
        paths,
        lambda client: client.reports(scenario_name, record, source, limit, before)["reports"],
        lambda reader: reader.reports(scenario_name, limit, record=record, source=source, before=before),
        scenario_name,
    )
    if json:
        output.json_value(rows)
        return
    if not rows:
        output.say("no reports yet, rate an answer: reef good")
        return
    heads = ["when", "report", "scenario", "by", "score", "on", "words"]
    for line in OUT.table(heads, [_row(row) for row in rows], right=(4,)):
        output.data(line)


@command(
    app,
    "show",
    examples=("reef reports show 3e0c", "reef reports show 3e0c --json | jq '.revisions'"),
)
def show(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="Id, or a beginning that only one has.")],
    json: JsonOption = False,
) -> None:
    """Show one report and every value it had.

    The last one counts. One that was undone is shown as such, and a report that was taken back counts nowhere.
    """
    person_only("read reports")
    paths = Paths.from_environ()
    id = whole_report(paths, report)
    row = read(paths, lambda client: client.shown_report(id), lambda reader: reader.report(id))
    if json:
        output.json_value(row)
        return
    for line in _facts(row):
        output.data(line)


@command(
    app,
    "revise",
    examples=(
        "reef reports revise 3e0c --score 0",
        'reef reports revise 3e0c --feedback "it broke later" --json',
    ),
)
def revise(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="Id, or a beginning that only one has.")],
    score: Annotated[float | None, typer.Option("--score", metavar="NUMBER", help="A finite number.")] = None,
    feedback: Annotated[str | None, typer.Option("--feedback", "-f", metavar="TEXT", help="Words.")] = None,
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="JSON", help="An object that the recipe reads.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Change what a report says.

    What is not named stays as it is. The new value counts from now on, once, and the earlier one stays readable in
    `reef reports show`. In an agent's session only that session's own reports can be changed.
    """
    given = {"score": score, "feedback": feedback, "metadata": metadata_object(metadata)}
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes or (score is not None and not math.isfinite(score)):
        raise UsageError(
            "a revision needs a finite score, feedback or metadata", f"reef reports revise {report} --score 1"
        )
    paths = Paths.from_environ()
    id = whole_report(paths, report)
    with daemon(paths) as client:
        done = client.revise_report(id, changes)
    if json:
        output.json_value(done)
        return
    output.data(f"report {OUT.id(id)} is at revision {done['revision']}")


def _row(row: Json) -> list[str]:
    return [
        OUT.when(row.get("revised_at") or row["created_at"]),
        OUT.id(row["id"]),
        OUT.line(row["scenario"], 16),
        _BY.get(row["source"], OUT.line(row["source"])),
        OUT.symbol("–") if row["score"] is None else f"{row['score']:g}",
        _on(row),
        OUT.joined(_standing(row), _words(row["feedback"])),
    ]


def _facts(row: Json) -> list[str]:
    facts = [
        ("report", [row["id"], OUT.line(row["scenario"]), OUT.when(row["created_at"])]),
        ("by", [_BY.get(row["source"], OUT.line(row["source"])), _standing(row)]),
        ("says", _said(row)),
        (
            "on",
            [OUT.joined(*row["references"][:8]), f"{len(row['references'])} in all" if row["references"][8:] else None],
        ),
    ]
    if row["consumed_by"]:
        facts.append(("used", [f"step {row['consumed_by']} has learned from it"]))
    for one in row["revisions"]:
        undone = OUT.paint("undone", "dim") if one["undone_at"] else None
        label = "first" if one["number"] == 0 else f"change {one['number']}"
        facts.append((label, [OUT.when(one["at"]), _BY.get(one["source"], ""), *_said(one), undone]))
    return [f"{label:<9} {OUT.joined(*parts)}" for label, parts in facts]


def _said(value: Json) -> list[str | None]:
    score = None if value["score"] is None else f"score {value['score']:g}"
    return [score, _words(value["feedback"]), "with metadata" if value["metadata"] else None]


def _words(feedback: object) -> str | None:
    if isinstance(feedback, dict):
        feedback = feedback.get("note") or feedback.get("text") or "an object"
    return f'"{OUT.line(feedback, 100)}"' if isinstance(feedback, str) and feedback else None


def _on(row: Json) -> str:
    if row["scope"] == "scenario":
        return "the scenario"
    return OUT.id(row["references"][0]) if row["scope"] == "receipt" else counted(len(row["references"]), "record")


def _standing(row: Json) -> str | None:
    revised = sum(one["number"] > 0 and not one["undone_at"] for one in row["revisions"])
    if row["withdrawn_at"]:
        return OUT.paint("taken back", "dim")
    return f"revised {'once' if revised == 1 else f'{revised} times'}" if revised else None
