"""What the page of a version and the page of an ask say, as titles with lines: one source for terminal and browser.

The lines hold text of people, agents and models as it is; whoever shows them makes them safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reef import needs

Json = Mapping[str, Any]
Section = dict[str, Any]
"""`{"title": …, "lines": […]}`."""
_MOST_LINES = 2000
_NEIGHBOURS = 5


def of_version(
    version: Json,
    step: Json | None,
    asks: Sequence[Json],
    proposals: Sequence[Json],
    files: Sequence[Json],
    chain: Sequence[Json],
) -> list[Section]:
    """The sections of a version: why, design, what changed, review, result, setup, chain; none that is empty."""
    notes = (step or {}).get("notes") or {}
    return _filled(
        ("Why", _why(version, asks, proposals)),
        ("Design", _said(notes.get("design")) or _entries(step)),
        ("What changed", _changed(files)),
        ("Review", _said(notes.get("review"))),
        ("Result", _result(version.get("evaluation"), step)),
        ("Setup", _setup(version.get("requires"))),
        ("Chain", _chain(version, chain)),
    )


def of_ask(ask: Json, step: Json | None, meaning: str) -> list[Section]:
    """The sections of an ask: its words, how far it is, what its step does, what came of it."""
    state = [f"{ask['state']}: {meaning}"]
    if ask.get("reason"):
        state.append(str(ask["reason"]))
    if ask.get("step"):
        state.append(f"step {ask['step']}" + (f", v{ask['version']}" if ask.get("version") else ""))
    return _filled(
        ("Ask", str(ask["text"]).splitlines()),
        ("State", state),
        ("Activity", [_activity(item) for item in (step or {}).get("activity") or []]),
        ("Result", _result((step or {}).get("evaluation"), None)),
        ("Setup", _setup(ask.get("requires"))),
    )


def _filled(*sections: tuple[str, Sequence[str]]) -> list[Section]:
    found: list[Section] = []
    for title, lines in sections:
        shown = list(lines[:_MOST_LINES])
        if len(lines) > _MOST_LINES:
            shown.append(f"… {len(lines) - _MOST_LINES} more lines")
        if shown:
            found.append({"title": title, "lines": shown})
    return found


def _why(version: Json, asks: Sequence[Json], proposals: Sequence[Json]) -> list[str]:
    lines = [str(version.get("summary") or version.get("operation") or "")]
    for ask in asks:
        first, *rest = str(ask["text"]).splitlines() or [""]
        lines += [f"ask #{ask['number']} ({ask.get('source')}): {first}", *(f"  {line}" for line in rest)]
    lines += [f"proposal #{row['number']} of an agent: {' '.join(str(row['reason']).split())}" for row in proposals]
    return [line for line in lines if line]


def _said(value: Any) -> list[str]:
    """A note of a proposer, whatever shape it has."""
    if isinstance(value, str):
        return value.splitlines()
    if isinstance(value, Mapping):
        return [f"{name}: {' '.join(str(item).split())}" for name, item in value.items()]
    return [str(item) for item in value] if isinstance(value, list) else []


def _entries(step: Json | None) -> list[str]:
    changes = (step or {}).get("mutations") or []
    return [f"{item.get('op')} {item.get('kind') or ''} {item.get('id')}" for item in changes]


def _changed(files: Sequence[Json]) -> list[str]:
    lines: list[str] = []
    for file in files:
        lines.append(f"{file.get('path')}  {file.get('status')}")
        hunks = str(file.get("hunks") or "").splitlines()
        lines += [f"  {line}" for line in hunks if not line.startswith(("--- ", "+++ ", "\\"))]
    return lines


def _result(evaluation: Json | None, step: Json | None) -> list[str]:
    lines = []
    for group in (evaluation or {}).get("groups") or []:
        took = f", {group['seconds']:.0f} s" if isinstance(group.get("seconds"), int | float) else ""
        lines.append(f"{group.get('name')}: {group.get('status')}, {group.get('detail')}{took}")
    if step is not None:
        lines.append(f"step {step['number']}: {step['state']}" + (f", {step['reason']}" if step.get("reason") else ""))
    return lines


def _setup(requires: Any) -> list[str]:
    # Whether a need is met is a matter of the machine and not of the version; nothing is looked up for a page.
    found = []
    for need in requires or []:
        name = needs.variable(need) if need.get("kind") == "env" else need.get("name")
        more = need.get("prompt") or (need.get("check") if need.get("kind") != "env" else None)
        found.append(f"{need.get('kind')} {name}" + (f": {more}" if more else ""))
    return found


def _chain(version: Json, chain: Sequence[Json]) -> list[str]:
    near = [row for row in chain if abs(int(row["version"]) - int(version["version"])) <= _NEIGHBOURS]
    lines = []
    for row in near:
        here = "> " if row["version"] == version["version"] else "  "
        mark = "served" if row.get("current") else str(row.get("state"))
        lines.append(f"{here}v{row['version']}  {row.get('operation')}  {mark}  {row.get('summary') or ''}".rstrip())
    return lines


def _activity(item: Json) -> str:
    return f"{item.get('at')}  {item.get('kind')}  {item.get('text')}" + ("  (failed)" if item.get("failed") else "")
