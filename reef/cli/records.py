"""`reef records`: every exchange, with the exact bytes of its request and reply."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef.cli import output, records_export, records_forget, records_search
from reef.cli.group import JsonOption, LimitOption, ScenarioOption, command, noun
from reef.cli.look import OUT, count, size, span
from reef.cli.narrowing import (
    CutOption,
    FailedOption,
    ModelOption,
    ScoreOption,
    SessionOption,
    SinceOption,
    narrowed,
)
from reef.cli.receipts import whole
from reef.cli.scope import person_only, read
from reef.errors import NotFound, UsageError
from reef.paths import Paths

app = noun(
    "List records, or show one with its request and reply. A record is one exchange with a model.",
    "reef records list -n 10",
    "reef records show RECEIPT --request",
)
_HEADS = ("when", "receipt", "scenario", "model", "tokens", "time", "state", "you", "request")
_WIDE = 100
_STYLES = {"failed": "failed", "interrupted": "failed", "cancelled": "dim", "partial": "needs"}


@command(app, "list", examples=("reef records list --since 2d --failed", "reef records list --score '<0' --json"))
def list_records(
    limit: LimitOption = 20,
    session: SessionOption = None,
    model: ModelOption = None,
    score: ScoreOption = None,
    since: SinceOption = None,
    failed: FailedOption = False,
    cut: CutOption = False,
    text: Annotated[
        str | None,
        typer.Option("--text", "-t", metavar="TEXT", help="Only with this in a first line, model or session."),
    ] = None,
    before: Annotated[int | None, typer.Option("--before", metavar="SEQUENCE", help="Only older ones.")] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """List the newest records.

    Of every scenario, or of the one that --scenario names. `--before` with the last sequence of a list gives the next
    page. The list holds the first line of each request: `reef records search` looks in all of it, `reef records show`
    has the rest.
    """
    person_only("read records")
    wanted = narrowed(scenario_name, session, model, score, since, failed, cut)
    rows = read(
        Paths.from_environ(),
        lambda client: client.records(limit=limit, before=before, q=text, **wanted)["records"],
        lambda reader: reader.records(limit=limit, before=before, text=text, **wanted),
        scenario_name,
    )
    if json:
        output.json_value(rows)
        return
    if not rows:
        narrow = text or before is not None or any(value for name, value in wanted.items() if name != "scenario")
        output.say(
            "no record is like that"
            if narrow
            else "no records yet, make a call through reef: reef status names the address"
        )
        return
    left_out = {"scenario"} if scenario_name else set()
    # On 80 columns these two would leave no room for the request.
    left_out |= {"model", "time"} if OUT.columns < _WIDE else set()
    heads = [head for head in _HEADS if head not in left_out]
    cells = [[cell for head, cell in zip(_HEADS, _row(row), strict=True) if head not in left_out] for row in rows]
    right = [at for at, head in enumerate(heads) if head in ("tokens", "time", "you")]
    for line in OUT.table(heads, cells, right):
        output.data(line)


@command(
    app,
    "show",
    examples=("reef records show 9f3c", "reef records show 9f3c --request | jq '.messages[-1]'"),
)
def show(
    receipt: Annotated[str, typer.Argument(metavar="RECEIPT", help="Whole, or a beginning that only one record has.")],
    request: Annotated[bool, typer.Option("--request", help="The exact bytes of the request.")] = False,
    response: Annotated[bool, typer.Option("--response", help="The exact bytes of the reply.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The reply as it was streamed, where that is kept.")] = False,
    json: JsonOption = False,
) -> None:
    """Show one record, or the exact bytes of its request or reply.

    On a terminal control characters are shown as pictures; into a file or a pipe the bytes go as they were stored. A
    credential that was cut out before storage reads `[redacted:kind]`.
    """
    person_only("read records")
    parts = [name for name, wanted in (("request", request), ("response", response), ("raw", raw)) if wanted]
    if len(parts) > 1 or (parts and json):
        raise UsageError("--request, --response, --raw and --json are one at a time", "reef records show --help")
    paths = Paths.from_environ()
    found = whole(paths, receipt)
    if parts:
        output.show_bytes(
            read(
                paths, lambda client: client.record_body(found, parts[0]), lambda reader: _body(reader, found, parts[0])
            )
        )
        return
    row = read(paths, lambda client: client.record(found), lambda reader: reader.record(found))
    if json:
        output.json_value(row)
        return
    for line in _facts(row):
        output.data(line)


command(app, "search", examples=records_search.EXAMPLES)(records_search.search)
command(app, "forget", examples=records_forget.FORGET_EXAMPLES)(records_forget.forget)
command(app, "prune", examples=records_forget.PRUNE_EXAMPLES)(records_forget.prune)
command(app, "export", examples=records_export.EXAMPLES)(records_export.export)


def _body(reader: Any, receipt: str, part: str) -> bytes:
    reading = {"request": reader.request_bytes, "response": reader.response_bytes, "raw": reader.raw_bytes}
    found: bytes | None = reading[part](receipt)
    if found is None:
        pruned = reader.record(receipt)["pruned_at"]
        why = f"; body pruned on {pruned[:10]}" if pruned else ""
        named = {"raw": "raw stream", "response": "reply"}.get(part, part)
        raise NotFound(f"this record has no {named}{why}", f"reef records show {receipt}")
    return found


def _row(row: dict[str, Any]) -> list[str]:
    score = OUT.symbol("–") if row.get("score") is None else f"{row['score']:g}"
    tokens = (row.get("prompt_tokens") or 0) + (row.get("completion_tokens") or 0)
    state = (
        OUT.paint(OUT.line(row["state"]), _STYLES[row["state"]]) if row["state"] in _STYLES else OUT.line(row["state"])
    )
    return [
        OUT.when(row["started_at"]),
        OUT.id(row["agent_record_id"]),
        OUT.line(row["scenario"], 16),
        OUT.line(row.get("model"), 24),
        count(tokens) if tokens else OUT.symbol("–"),
        _duration(row),
        state,
        score,
        _marked(row),
    ]


def _marked(row: dict[str, Any]) -> str:
    """The first line of the request; what no person asked for, and what likely did not reach the model, says so."""
    mark = "step: " if row["source"] == "step" else "side call: " if row.get("side_call") else ""
    mark += "prompt cut: " if row.get("prompt_cut") else ""
    return mark + OUT.line(row.get("preview"))


def _duration(row: dict[str, Any]) -> str:
    return OUT.symbol("–") if row.get("duration_ms") is None else span(row["duration_ms"] / 1000)


def _facts(row: dict[str, Any]) -> list[str]:
    version = f"v{row['version']}" if row.get("version") else None
    tokens = f"{count(row.get('prompt_tokens'))} in, {count(row.get('completion_tokens'))} out"
    words = {name: OUT.line(row.get(name), 100) for name in ("adapter", "engine", "model", "load_id", "finish_reason")}
    facts = [
        ("record", [row["agent_record_id"], OUT.line(row["state"]), OUT.when(row["started_at"])]),
        ("scenario", [OUT.line(row["scenario"]), version, words["adapter"], f"by {OUT.line(row['source'])}"]),
        ("answered", [words["engine"], words["model"], words["load_id"]]),
        ("took", [_duration(row), tokens, words["finish_reason"]]),
        ("request", [size(row.get("request_bytes")), OUT.line(row.get("preview"), 100)]),
        ("reply", [size(row.get("response_bytes")), OUT.line(row.get("answer_preview"), 100)]),
    ]
    if row.get("origin"):
        facts.append(("origin", _origin(row)))
    if row.get("pruned_at"):
        facts.append(("bodies", ["body pruned", OUT.when(row["pruned_at"])]))
    facts += _what_reached_the_model(row)
    if row.get("follows"):
        earlier = row.get("follows_record") or "the earlier part of the conversation was not recorded"
        facts.append(("follows", [OUT.line(row["follows"], 100), earlier]))
    if row.get("error"):
        facts.append(("error", [OUT.paint(OUT.line(row["error"]), "failed")]))
    if row.get("redactions"):
        facts.append(("redacted", [f"{row['redactions']} times a credential, so it is not used for training"]))
    facts += [("report", _report(report)) for report in row.get("reports") or []]
    return [f"{label:<9} {OUT.joined(*parts)}" for label, parts in facts]


def _origin(row: dict[str, Any]) -> list[str | None]:
    """Where a record came from that reef did not serve."""
    _, _, agent = str(row["origin"]).partition(":")
    if not agent:
        return ["imported from a file of records"]
    lacks = ((row.get("notes") or {}).get("transcript") or {}).get("lacks") or []
    return [f"made from a transcript of {OUT.line(agent)}", OUT.line(f"without {', '.join(lacks)}") if lacks else None]


def _what_reached_the_model(row: dict[str, Any]) -> list[tuple[str, list[str | None]]]:
    facts: list[tuple[str, list[str | None]]] = []
    notes = row.get("notes") or {}
    if row.get("prompt_cut"):
        sent = f"about {count(row.get('expected_tokens'))} tokens sent, {count(row.get('prompt_tokens'))} counted"
        facts.append(("prompt", [OUT.paint("the server has likely cut it", "failed"), sent]))
    rules = notes.get("rules")
    if rules:
        told = f"{size(rules['bytes'])} of at most {size(rules['cap'])}"
        facts.append(("rules", [OUT.paint(told, "failed") if rules["bytes"] > rules["cap"] else told]))
    ways = notes.get("translated")
    if ways:
        left = [*ways.get("tools_left_out", ()), *ways.get("fields_left_out", ())]
        without = OUT.line(f"without {', '.join(left)}", 200) if left else None
        facts.append(("dialect", [f"{ways['from']} to {ways['to']}", without]))
    if len(row.get("attempts") or ()) > 1:
        facts.append(("tries", [str(len(row["attempts"])), OUT.line(row["attempts"][0].get("error"), 100)]))
    return facts


def _report(report: dict[str, Any]) -> list[str | None]:
    score = None if report.get("score") is None else f"score {report['score']:g}"
    note = report.get("feedback")
    several = len(report.get("references") or ())
    on = f"on {several} records together" if several > 1 else None
    revised = sum(one["number"] > 0 and not one["undone_at"] for one in report.get("revisions") or ())
    changed = f"revised {'once' if revised == 1 else f'{revised} times'}" if revised else None
    taken_back = OUT.paint("taken back", "dim") if report.get("withdrawn_at") else None
    words = OUT.line(note) if isinstance(note, str) else None
    return [OUT.line(report.get("source")), score, on, changed, taken_back, words]
