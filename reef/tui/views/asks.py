"""Asks as rows, and an ask with its live activity as a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reef.tui import cells, figures
from reef.tui.lines import Block, Cell, Column, Line, Row, Span, paragraph
from reef.tui.views import words

Json = dict[str, Any]

COLUMNS = (
    Column("number", "ask", 4, right=True),
    Column("when", "when", 6, least=52),
    Column("mark", "", 1, most=51),
    Column("text", "what should change", 0),
    Column("state", "state", 13, least=52),
    Column("led", "led to", 6, least=60),
)
SCENARIO = Column("scenario", "scenario", 8)
COLUMNS_OF_ALL = (*COLUMNS[:2], SCENARIO, *COLUMNS[2:-1], Column("led", "led to", 6, least=84))
"""The columns while asks of several scenarios stand in one list: numbers count within a scenario."""

STATES: dict[str, tuple[str, str]] = {
    "queued": ("… queued", "dim"),
    "running": ("… running", "agent"),
    "proposing": ("… proposing", "agent"),
    "evaluating": ("… evaluating", "agent"),
    "settling": ("… settling", "agent"),
    "published": ("✓ published", "good"),
    "pending": ("▲ needs you", "accent"),
    "rejected": ("· rejected", "dim"),
    "skipped": ("· skipped", "dim"),
    "could_not_evaluate": ("✗ no verdict", "failed"),
    "failed": ("✗ failed", "failed"),
    "cancelled": ("· cancelled", "dim"),
}
"""State of an ask or a step to its symbol with its word, and its role."""

SETTLED = frozenset({"published", "pending", "rejected", "skipped", "failed", "cancelled", "could_not_evaluate"})
GROUPS = {
    "pass": ("✓", "passed", "good"),
    "fail": ("✗", "failed", "failed"),
    "invalid": ("?", "could not be checked", "accent"),
    "not run": ("–", "not run", "dim"),
}
"""Status of a gate's group to symbol, word and role."""


def row(ask: Json) -> Row:
    """An ask as a row."""
    return Row(str(ask["id"]), int(ask.get("number") or 0), ask)


def state(name: object) -> tuple[str, str]:
    """Symbol with word, and role, of a state."""
    return STATES.get(str(name), (cells.line(name, 13), "dim"))


def present(found: Row) -> dict[str, Cell]:
    """The cells of an ask's row."""
    ask = found.data
    word, role = state(ask.get("state"))
    return {
        "number": Cell(f"#{ask.get('number')}", "dim"),
        "when": Cell(figures.when(ask.get("created_at")), "dim"),
        "scenario": Cell(cells.line(ask.get("scenario") or "", 20), "dim"),
        "text": Cell(cells.line(ask.get("text") or "", 200)),
        "state": Cell(word, role),
        "mark": Cell(word[:1], role),
        "led": Cell(led_to(ask), "dim"),
    }


def led_to(ask: Json) -> str:
    """`→ v3`, else the step `s4`, else nothing."""
    if isinstance(ask.get("version"), int):
        return f"→ v{ask['version']}"
    return f"s{ask['step']}" if isinstance(ask.get("step"), int) else ""


@dataclass(frozen=True)
class Served:
    """What serves the scenario of an ask now, as far as the status told."""

    head: int | None = None
    engine: str = ""
    scenario: str = ""
    """Name to show with the ask; empty while only one scenario is listed."""


def price(engine: str) -> str:
    """What an ask will cost, before its step has run."""
    if engine == "embedded":
        return "costs nothing: the embedded model runs on this machine"
    return "price unknown until its step runs"


def blocks(ask: Json, progress: Json | None, served: Callable[[], Served] = Served) -> list[Block]:
    """The page of an ask: the words, where it stands, what happened, what the gate saw.

    `served` is asked again as time goes by, in the app's thread.
    """
    known = ask | {name: value for name, value in (progress or {}).items() if value is not None}
    word, role = state(known.get("state"))
    text = str(ask.get("text") or "")
    found = [
        Block("text", None, [*paragraph(cells.shown(text)), Line()], copy=text),
        Block("state", None, lambda: _standing(known, word, role, served()), copy=str(ask.get("id")), ticks=True),
    ]
    activity = known.get("activity")
    if isinstance(activity, list) and activity:
        found.append(Block("activity", Line.of(("ACTIVITY", "heading")), [*activity_lines(activity), Line()]))
    found += gate_blocks(known.get("evaluation"))
    return found


def meaning(known: Json, head: int | None) -> str:
    """What its state means for the person now: a version that was replaced is no longer `served now`."""
    version = known.get("version")
    if known.get("state") == "published" and isinstance(version, int) and head is not None and version != head:
        return f"it was published as v{version}; v{head} is served now"
    return str(known.get("meaning") or "")


def _standing(known: Json, word: str, role: str, served: Served) -> list[Line]:
    spans: list[Span] = [(word, role)]
    led = led_to(known)
    if led:
        spans.append((f"  {led}", ""))
    spans.append((f"  asked {figures.ago(known.get('created_at'))} ago", "dim"))
    if served.scenario:
        spans.append((f"  {cells.line(served.scenario, 40)}", "dim"))
    lines = [Line(tuple(spans))]
    for text, role in ((meaning(known, served.head), "dim"), (known.get("reason"), "")):
        if isinstance(text, str) and text.strip():
            lines += paragraph(cells.shown(text.strip()), role)
    if known.get("state") == "queued":
        lines.append(Line.of((price(served.engine), "dim")))
    return [*lines, *words.need_lines(known.get("requires")), Line()]


def activity_lines(activity: list[Any]) -> list[Line]:
    """What a step did, one thing a line."""
    lines = []
    for item in activity:
        if not isinstance(item, dict):
            continue
        failed = bool(item.get("failed"))
        spans: list[Span] = [
            (cells.fit(cells.line(item.get("kind") or "", 11), 11) + " ", "dim"),
            ("✗ " if failed else "", "failed"),
            (cells.line(item.get("text") or "", 500), "failed" if failed else ""),
            (f"  {figures.hour(item.get('at'))}", "faint"),
        ]
        lines.append(Line(tuple(spans), hang=12))
    return lines


def gate_blocks(evaluation: Any) -> list[Block]:
    """The groups of a gate, then what was not tested."""
    if not isinstance(evaluation, dict) or not isinstance(evaluation.get("groups"), list):
        return []
    groups = [group for group in evaluation["groups"] if isinstance(group, dict)]
    if not groups:
        return []
    policy = cells.line(evaluation.get("policy") or "", 40)
    head = Line.of(("GATE", "heading"), (f"  policy {policy}" if policy else "", "dim"))
    lines: list[Line] = []
    for group in groups:
        lines += _group(group)
    untested = [group for group in groups if group.get("status") in ("not run", "invalid")]
    if untested:
        names = ", ".join(cells.line(group.get("name") or "", 30) for group in untested)
        lines.append(Line.of(("not tested: ", "accent"), names, hang=2))
    return [Block("gate", head, [*lines, Line()], folded=False)]


def _group(group: Json) -> list[Line]:
    symbol, word, role = GROUPS.get(str(group.get("status")), ("?", cells.line(group.get("status"), 12), "dim"))
    seconds = group.get("seconds")
    took = figures.took(seconds * 1000) if isinstance(seconds, int | float) and seconds else ""
    spans: list[Span] = [
        (f"{symbol} ", role),
        (cells.fit(cells.line(group.get("name") or "", 10), 10) + " ", ""),
        (word if group.get("status") != "pass" else "", role),
        (" · " if group.get("status") != "pass" and group.get("detail") else "", "faint"),
        (cells.line(group.get("detail") or "", 400), "dim"),
        (f"  {took}" if took else "", "faint"),
    ]
    lines = [Line(tuple(span for span in spans if span[0]), hang=13)]
    for check in group.get("checks") or ():
        if isinstance(check, dict) and check.get("status") not in ("pass", None):
            said = f"{check.get('entry') or ''} {check.get('what') or ''}: {check.get('detail') or check.get('status')}"
            lines.append(Line.of(("    " + cells.line(said, 400), "dim"), hang=4))
    return lines
