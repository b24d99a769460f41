"""The chain of versions with the attempts between them, and one of either as a page."""

from __future__ import annotations

from typing import Any

from reef.tui import cells, figures
from reef.tui.lines import Block, Cell, Column, Line, Row, paragraph
from reef.tui.views import asks, changes, words

Json = dict[str, Any]

COLUMNS = (
    Column("version", "version", 7),
    Column("when", "when", 6, least=46),
    Column("mark", "", 1, most=45),
    Column("what", "what", 0),
    Column("gate", "gate", 18, least=84),
    Column("state", "state", 11, least=46),
)


def rows(versions: list[Json], steps: list[Json]) -> list[Row]:
    """Versions, newest first, with the steps that led to none at their place in time."""
    found = [(str(v.get("created_at") or ""), Row(f"v{v['version']}", int(v["version"]), v)) for v in versions]
    published = {version.get("step") for version in versions}
    for step in steps:
        if step.get("version") is None and step.get("number") not in published:
            at = str(step.get("ended_at") or step.get("started_at") or "")
            found.append((at, Row(f"s{step['number']}", int(step["number"]), step)))
    return [row for _, row in sorted(found, key=lambda item: item[0], reverse=True)]


def is_version(row: Row) -> bool:
    """Whether a row is a version, not a step."""
    return "release_id" in row.data


def present(row: Row) -> dict[str, Cell]:
    """The cells of a version's or a step's row."""
    return _version_cells(row.data) if is_version(row) else _step_cells(row.data)


def is_pending(version: Json) -> bool:
    """Whether a version waits for the person's yes: only such a one can be promoted."""
    return bool(version.get("pending")) or version.get("state") == "pending"


def state(version: Json) -> tuple[str, str]:
    """Symbol with word, and role, of a version."""
    if version.get("current"):
        return "● served", "good"
    if is_pending(version):
        return "▲ needs you", "accent"
    if version.get("state") == "publishing":
        return "… publishing", "agent"
    if version.get("state") == "conflict":
        return "✗ conflict", "failed"
    if version.get("pinned"):
        return "■ pinned", "strong"
    return "", "dim"


def _version_cells(version: Json) -> dict[str, Cell]:
    word, role = state(version)
    old = "" if word else "dim"
    return {
        "version": Cell(f"v{version['version']}", "strong" if version.get("current") else old),
        "when": Cell(figures.when(version.get("created_at")), "dim"),
        "what": Cell(what(version), old),
        "gate": Cell(gate(version.get("evaluation")), "dim"),
        "state": Cell(word, role),
        "mark": Cell(word[:1], role),
    }


def _step_cells(step: Json) -> dict[str, Cell]:
    word, role = asks.state(step.get("state"))
    said = cells.line(step.get("summary") or "", 200)
    reason = cells.line(step.get("reason") or "", 200)
    return {
        "version": Cell(f"· s{step.get('number')}", "dim"),
        "when": Cell(figures.when(step.get("ended_at") or step.get("started_at")), "dim"),
        "what": Cell(": ".join(part for part in (said, reason) if part) or "a step", "dim"),
        "gate": Cell(gate(step.get("evaluation")), "dim"),
        "state": Cell(word.removeprefix("· "), role),
        "mark": Cell(word[:1].replace("·", " "), role),
    }


def what(version: Json) -> str:
    """What a version is in one line: its summary, and the asks it came from."""
    said = cells.line(version.get("summary") or "", 160)
    if not said:
        operation = str(version.get("operation") or "")
        said = "the base" if operation == "base" else cells.line(operation, 40)
    numbers = " ".join(f"#{ask['number']}" for ask in version.get("asks") or () if isinstance(ask, dict))
    return f"{said}  {numbers}" if numbers and numbers not in said else said


def gate(evaluation: Any) -> str:
    """A gate in a few words: `✓ admission, reach`, or the first group that did not pass."""
    groups = evaluation.get("groups") if isinstance(evaluation, dict) else None
    named = [group for group in groups or () if isinstance(group, dict)]
    if not named:
        return ""
    for group in named:
        if group.get("status") == "fail":
            return f"✗ {cells.line(group.get('name'), 14)}"
    passed = [cells.line(group.get("name"), 12) for group in named if group.get("status") == "pass"]
    return "✓ " + ", ".join(passed) if passed else "not checked"


def parent_number(version: Json, versions: list[Json]) -> int | None:
    """The number of the version before this one; None for the base."""
    parent = version.get("parent_release_id")
    return next((int(v["version"]) for v in versions if parent and v.get("release_id") == parent), None)


def head_of(versions: list[Json]) -> Json | None:
    """The version that is served now."""
    return next((version for version in versions if version.get("current")), None)


def blocks(version: Json, parent: int | None, files: list[Json] | None, whole: Json | None) -> list[Block]:
    """The page of a version: where it comes from, what it changed, what the gate saw and did not test."""
    word, role = state(version)
    number = version.get("version")
    title = Line.of((f"v{number}  ", "strong"), (f"{word}  " if word else "", role), (what(version), ""), hang=2)
    copied = str(version.get("release_id") or "")
    lines: list[Line] = []
    for ask in version.get("asks") or ():
        if isinstance(ask, dict):
            said = cells.line(ask.get("text") or "", 300)
            lines.append(Line.of((f"why  ask #{ask.get('number')}  ", "dim"), f'"{said}"', hang=5))
    if word.startswith("▲"):
        lines.append(Line.of(("waits for your yes; none of its code runs before", "accent")))
    lines += [*words.need_lines(version.get("requires")), Line()]
    found = [Block("facts", None, lambda: [title, _origin(version, parent), *lines], copy=copied, ticks=True)]
    step = (whole or {}).get("step_row")
    evaluation = version.get("evaluation") or (step or {}).get("evaluation")
    if files is not None:
        found += changes.blocks(files)
    elif whole is not None:
        found.append(Block("files", Line.of(("FILES", "heading")), ()))
        found += changes.file_blocks(whole.get("files") or {})
    found += asks.gate_blocks(evaluation)
    if isinstance(step, dict):
        found += _notes(step)
    return found


def _origin(version: Json, parent: int | None) -> Line:
    operation = cells.line(version.get("operation") or "", 20)
    parts = [operation or "version"]
    if parent is not None:
        parts.append(f"after v{parent}")
    if isinstance(version.get("step"), int):
        parts.append(f"step {version['step']}")
    parts.append(f"{figures.ago(version.get('created_at'))} ago")
    if version.get("pinned"):
        parts.append("pinned: it stays installed")
    names = [cells.line(c if isinstance(c, str) else c.get("name", ""), 20) for c in version.get("components") or ()]
    if names:
        parts.append(", ".join(names))
    return Line.of((" · ".join(parts), "dim"))


def step_blocks(step: Json) -> list[Block]:
    """The page of a step that led to no version: what was tried and why it was not taken."""
    word, role = asks.state(step.get("state"))
    title = Line.of((f"step {step.get('number')}  ", "strong"), (word, role))
    facts = [cells.line(step.get(name) or "", 30) for name in ("recipe", "proposer", "policy")]
    parts = [f"{name} {text}" for name, text in zip(("recipe", "proposer", "policy"), facts, strict=True) if text]

    def origin() -> Line:
        return Line.of((" · ".join([*parts, f"{figures.ago(step.get('started_at'))} ago"]), "dim"))

    lines: list[Line] = []
    for name in ("summary", "reason"):
        if isinstance(step.get(name), str) and step[name].strip():
            lines += paragraph(cells.shown(step[name].strip()))
    lines.append(Line())
    copied = str(step.get("number"))
    found = [Block("facts", None, lambda: [title, origin(), *lines], copy=copied, ticks=True)]
    tried = [mutation for mutation in step.get("mutations") or () if isinstance(mutation, dict)]
    if tried:
        body: list[Line] = []
        for mutation in tried:
            body += _mutation(mutation)
        found.append(Block("tried", Line.of(("TRIED", "heading")), [*body, Line()]))
    found += asks.gate_blocks(step.get("evaluation"))
    activity = step.get("activity")
    if isinstance(activity, list) and activity:
        done = [*asks.activity_lines(activity), Line()]
        found.append(Block("activity", Line.of(("ACTIVITY", "heading")), done, folded=False))
    return found + _notes(step)


def _mutation(mutation: Json) -> list[Line]:
    kind = cells.line(mutation.get("kind") or "entry", 20)
    title = f"{cells.line(mutation.get('op') or '', 10)} {kind} {cells.line(mutation.get('id') or '', 64)}"
    config = mutation.get("config")
    text = config.get("text") if isinstance(config, dict) else None
    lines = [Line.of((title, "strong"))]
    if isinstance(text, str):
        lines += [Line.of(("+ " + part, "added"), hang=2) for part in cells.shown(text.rstrip("\n")).split("\n")]
    return lines


def _notes(step: Json) -> list[Block]:
    lines = words.note_lines(step.get("notes"))
    return [Block("notes", Line.of(("NOTES", "heading")), [*lines, Line()])] if lines else []
