"""Records as rows of a list and as the facts above a conversation."""

from __future__ import annotations

from typing import Any

from reef.text import short_id
from reef.tui import cells, figures
from reef.tui.lines import Cell, Column, Line, Row, Span
from reef.tui.views import words

Json = dict[str, Any]

COLUMNS = (
    Column("when", "when", 6),
    Column("agent", "agent", 7, least=50),
    Column("scenario", "scenario", 10, least=92),
    Column("session", "call", 0),
    Column("tokens", "tokens", 7, right=True, least=78),
    Column("time", "time", 6, right=True, least=44),
    Column("you", "you", 4, right=True, least=30),
    Column("version", "version", 7, least=60),
)

STATES: dict[str, tuple[str, str, str]] = {
    "open": ("…", "running", "agent"),
    "complete": ("✓", "complete", "good"),
    "partial": ("✂", "broke off", "failed"),
    "failed": ("✗", "failed", "failed"),
    "cancelled": ("✗", "cancelled", "dim"),
    "interrupted": ("✗", "interrupted", "failed"),
}
"""State of a record to symbol, word and role."""

_CUT_REASONS = ("length", "max_tokens", "max_output_tokens")


def row(record: Json) -> Row:
    """A record as a row."""
    return Row(str(record["agent_record_id"]), int(record["sequence"]), record)


def agent(record: Json) -> str:
    """Who made the call: `step` for a step's own model calls, else the agent's name, else `you` or `program`."""
    if record.get("source") == "step":
        return "step"
    if record.get("adapter"):
        return cells.line(record["adapter"], 20)
    source = record.get("source")
    return "you" if source == "person" else cells.line(source or "program", 20)


def present(found: Row) -> dict[str, Cell]:
    """The cells of a record's row."""
    record = found.data
    score = record.get("score")
    role = "dim" if record.get("side_call") else ""
    return {
        "when": Cell(figures.when(record.get("started_at")), "dim"),
        "agent": Cell(agent(record), role),
        "scenario": Cell(cells.line(record.get("scenario") or "", 20), "dim"),
        "session": headline(record),
        "tokens": Cell(figures.count(total_tokens(record)), "dim"),
        "time": Cell(figures.took(record.get("duration_ms")), "dim"),
        "you": Cell(figures.score(score), score_role(score)),
        "version": Cell(version(record), "dim"),
    }


def score_role(score: object) -> str:
    """The role of a score: good ones stand out, bad ones want a look."""
    return "good" if isinstance(score, int | float) and score > 0 else "accent"


def headline(record: Json) -> Cell:
    """The one line that stands for a call: what was said, after the word for a state that is not plain `complete`."""
    said = cells.line(record.get("preview") or "", 200)
    if record.get("side_call"):
        return Cell(said, "dim", ("side call  ", "faint"))
    if record.get("prompt_cut"):
        return Cell(said, "", ("✂ prompt cut  ", "accent"))
    symbol, word, role = state(record)
    if word == "complete":
        return Cell(said or "(no text)", "" if said else "dim")
    return Cell(said, "dim" if role == "dim" else "", (f"{symbol} {word}  ", role))


def state(record: Json) -> tuple[str, str, str]:
    """Symbol, word and role of a record's state; a reply that ended at a token limit is `cut`."""
    name = str(record.get("state") or "")
    if name == "complete" and record.get("finish_reason") in _CUT_REASONS:
        return "✂", "cut", "accent"
    return STATES.get(name, ("…", cells.line(name or "unknown", 20), "dim"))


def total_tokens(record: Json) -> int | None:
    """Prompt and completion tokens together; None when neither is known."""
    parts = [record.get("prompt_tokens"), record.get("completion_tokens")]
    known = [part for part in parts if isinstance(part, int)]
    return sum(known) if known else None


def version(record: Json) -> str:
    """The version that answered, `v14`; empty when none did."""
    number = record.get("version")
    return f"v{number}" if isinstance(number, int) else ""


def receipt(record: Json) -> str:
    """The short receipt."""
    return short_id(cells.line(record.get("agent_record_id") or "", 40))


def facts(record: Json) -> list[Line]:
    """The lines above a conversation: who answered, how long it took, how it ended."""
    symbol, word, role = state(record)
    parts: list[Span] = []
    for text in (
        cells.line(record.get("scenario") or "", 40),
        version(record),
        cells.line(record.get("model") or "", 40),
        receipt(record),
        figures.took(record.get("duration_ms")),
    ):
        if text and text != figures.NOTHING:
            parts += [(" · ", "faint"), (text, "dim")] if parts else [(text, "dim")]
    if word != "complete":
        parts += [(" · ", "faint"), (f"{symbol} {word}", role)]
    lines = [Line(tuple(parts))]
    counts = token_facts(record)
    if counts:
        lines.append(Line.of((counts, "dim")))
    if record.get("error"):
        lines.append(Line.of(("error  ", "failed"), cells.line(record["error"], 400), hang=7))
    if record.get("prompt_cut"):
        sent, counted = figures.count(record.get("expected_tokens")), figures.count(record.get("prompt_tokens"))
        told = f"the server has likely cut the prompt: about {sent} tokens sent, {counted} counted"
        lines.append(Line.of((told, "accent")))
    notes = record.get("notes") or {}
    rules = notes.get("rules") or {}
    if rules.get("bytes", 0) > rules.get("cap", 0):
        told = f"the rules have {figures.size(rules['bytes'])}, the agent reads {figures.size(rules['cap'])} of them"
        lines.append(Line.of((told, "accent")))
    if notes.get("translated"):
        lines.append(Line.of((_translated(notes["translated"]), "dim")))
    if record.get("earlier_note"):
        lines.append(Line.of((cells.line(record["earlier_note"], 200), "accent")))
    if record.get("redactions"):
        lines.append(Line.of((f"{figures.many(int(record['redactions']), 'key')} redacted · not trainable", "accent")))
    return lines


def _translated(ways: Json) -> str:
    left = [*ways.get("tools_left_out", ()), *ways.get("fields_left_out", ())]
    said = f"translated from {ways.get('from')} to {ways.get('to')}" + (f", without {', '.join(left)}" if left else "")
    return cells.line(said, 200)


def token_facts(record: Json) -> str:
    """`38 in · 3 out · first byte 0.4 s`; what is not known is left out."""
    parts = []
    if isinstance(record.get("prompt_tokens"), int):
        cached = record.get("cached_tokens")
        parts.append(
            f"{figures.count(record['prompt_tokens'])} in" + (f" ({figures.count(cached)} cached)" if cached else "")
        )
    if isinstance(record.get("completion_tokens"), int):
        parts.append(f"{figures.count(record['completion_tokens'])} out")
    if isinstance(record.get("first_byte_ms"), int | float):
        parts.append(f"first byte {figures.took(record['first_byte_ms'])}")
    return " · ".join(parts)


def report_lines(record: Json) -> list[Line]:
    """What the person, the agent and programs said about a call, and what came of it."""
    lines: list[Line] = []
    for report in record.get("reports") or ():
        score = report.get("score")
        word = {"person": "you", "agent": "the agent"}.get(str(report.get("source")), "a program")
        mark = figures.score(score) or "note"
        several = len(report.get("references") or ())
        on = f" on {several} calls together" if several > 1 else ""
        spans: list[Span] = [
            (f"{mark}  ", score_role(score)),
            (f"{word}{on}, {figures.when(report.get('revised_at') or report.get('created_at'))}", "dim"),
        ]
        note = note_of(report)
        if note:
            spans.append((f'  "{cells.line(note, 300)}"', ""))
        if report.get("withdrawn_at"):
            spans.append(("  taken back", "dim"))
        if revised := revised_of(report):
            spans.append((f"  {revised}", "dim"))
        lines.append(Line(tuple(spans), hang=2))
        if report.get("consumed_by"):
            lines.append(Line.of((f"  → in step {cells.line(report['consumed_by'], 20)}", "dim")))
    return lines


def revised_of(report: Json) -> str:
    """How often a report was revised and what it said first; empty for one that never was."""
    values = [value for value in report.get("revisions") or () if not value.get("undone_at")]
    if len(values) < 2:
        return ""
    times = "once" if len(values) == 2 else f"{len(values) - 1} times"
    first = figures.score(values[0].get("score"))
    return f"revised {times}" + (f", first {first}" if first else "")


def note_of(report: Json) -> str:
    """The words of a report."""
    feedback = report.get("feedback")
    if isinstance(feedback, dict):
        feedback = feedback.get("note") or feedback.get("text") or feedback.get("comment") or words.said(feedback)
    return feedback if isinstance(feedback, str) else ""
