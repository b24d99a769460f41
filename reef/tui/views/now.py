"""The first place: what needs the person, what is served, and what runs."""

from __future__ import annotations

from typing import Any

from reef.tui import cells, figures
from reef.tui.lines import Block, Cell, Column, Line, Row, Span
from reef.tui.views import records

Json = dict[str, Any]

COLUMNS = (
    Column("at", "when", 8),
    Column("agent", "agent", 7, least=44),
    Column("session", "call", 0),
    Column("you", "you", 4, right=True, least=56),
    Column("time", "time", 6, right=True, least=36),
)


def present(found: Row) -> dict[str, Cell]:
    """The cells of a call in the live list: its time to the second."""
    record = found.data
    at = figures.hour(record.get("started_at")) if ":" in figures.when(record.get("started_at")) else ""
    shown = records.present(found)
    return shown | {"at": Cell(at or figures.when(record.get("started_at")), "dim")}


def blocks(status: Json, detail: str, down: bool) -> list[Block]:
    """The page: needs you, served, engine, agents, records."""
    found: list[Block] = []
    if down:
        found.append(Block("down", None, _down(detail)))
    found += _needs_you(status)
    found += _scenarios(status)
    found.append(Block("running", Line.of(("REEF", "heading")), lambda: _running(status, down), ticks=True))
    return found


def _down(detail: str) -> list[Line]:
    return [
        Line.of(("○ the daemon is down", "failed")),
        Line.of((cells.line(detail, 300), "dim")),
        Line.of(("u", "key"), (" starts it; until then you read the file", "dim")),
        Line(),
    ]


def _needs_you(status: Json) -> list[Block]:
    items = [item for item in status.get("needs_you") or () if isinstance(item, dict)]
    head = Line.of(("NEEDS YOU", "heading"))
    if not items:
        return [Block("needs", head, [Line.of(("nothing", "dim")), Line()])]
    found = []
    for number, item in enumerate(items):
        found.append(
            Block(f"needs-{number}", head if not number else None, [_need(item)], copy=str(item.get("version")))
        )
    found.append(Block("needs-end", None, [Line()]))
    return found


def _need(item: Json) -> Line:
    scenario = cells.line(item.get("scenario") or "", 40)
    if item.get("kind") == "pending_version":
        return Line.of(("▲ ", "accent"), f"v{item.get('version')} pending", (f"  {scenario}", "dim"), hang=2)
    said = cells.line(str(item.get("kind") or "").replace("_", " "), 60)
    return Line.of(("▲ ", "accent"), said, (f"  {scenario}", "dim"), hang=2)


def _scenarios(status: Json) -> list[Block]:
    lines: list[Line] = []
    for scenario in status.get("scenarios") or ():
        if not isinstance(scenario, dict):
            continue
        head = scenario.get("head")
        spans: list[Span] = [
            (cells.fit(cells.line(scenario.get("name") or "", 40), 12) + " ", ""),
            (f"v{head}" if head else "–", "strong"),
        ]
        details = [cells.line(scenario.get("recipe") or "", 20)]
        if isinstance(scenario.get("records"), int):
            details.append(figures.many(scenario["records"], "call"))
        if scenario.get("asks_open"):
            details.append(figures.many(int(scenario["asks_open"]), "open ask"))
        if scenario.get("running_step"):
            details.append(f"step {scenario['running_step']} runs")
        spans.append(("  " + " · ".join(part for part in details if part), "dim"))
        lines.append(Line(tuple(spans), hang=13))
    if not lines:
        lines = [Line.of(("no scenario yet", "dim"))]
    return [Block("scenarios", Line.of(("SERVED", "heading")), [*lines, Line()])]


def _running(status: Json, down: bool) -> list[Line]:
    lines: list[Line] = []
    if not down:
        lines.append(
            _pair("daemon", f"● up {figures.ago(status.get('started_at'))} · {cells.line(status.get('url') or '', 60)}")
        )
        engine = _table(status.get("engine"))
        lines.append(_pair("engine", engine_text(engine)))
        if engine.get("detail") and engine.get("state") != "ready":
            lines.append(_pair("", cells.line(engine["detail"], 300)))
    agents = [
        f"{cells.line(agent.get('name') or '', 20)} {cells.line(agent.get('version') or '', 20)}".strip()
        if agent.get("installed")
        else f"{cells.line(agent.get('name') or '', 20)} –"
        for agent in status.get("agents") or ()
        if isinstance(agent, dict)
    ]
    if agents:
        lines.append(_pair("agents", " · ".join(agents)))
    kept = _table(status.get("records"))
    if kept:
        parts = [f"{kept.get('count', 0):,}"]
        if kept.get("bytes"):
            parts.append(figures.size(kept["bytes"]))
        if kept.get("last_at"):
            parts.append(f"last {figures.ago(kept['last_at'])} ago")
        if kept.get("lost"):
            parts.append(f"{kept['lost']} not recorded")
        lines.append(_pair("records", " · ".join(parts)))
    return lines


def _table(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _pair(name: str, text: str) -> Line:
    return Line.of((f"{name:<8}", "dim"), text, hang=8)


def engine_text(engine: Json) -> str:
    """The engine in one line: name, model, and the word for a state that is not `ready`."""
    name = cells.line(engine.get("name") or "no engine", 30)
    model = cells.line(engine.get("model") or "", 40)
    state = str(engine.get("state") or "")
    text = f"{name} {model}".strip() if model and model != name else name
    return text if state in ("ready", "") else f"{text} · {cells.line(state, 20)}"
