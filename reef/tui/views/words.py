"""What recipes, proposers and asks wrote down as data, in words, never as Python prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reef import needs
from reef.ids import is_id
from reef.text import short_id
from reef.tui import cells
from reef.tui.lines import Line

MOST = 400
"""Columns of one value at most."""


def said(value: Any) -> str:
    """A value of JSON in words: lists with commas, tables as `name: value`, ids short; empty for what says nothing."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(part for part in map(said, value) if part)
    if isinstance(value, Mapping):
        return " · ".join(f"{_name(name)}: {text}" for name, inner in value.items() if (text := said(inner)))
    text = str(value)
    return short_id(text) if is_id(text) else cells.line(text, MOST)


def note_lines(notes: Any) -> list[Line]:
    """The notes of a step, one a line: sentences as they are, tables as name and value."""
    found: list[Line] = []
    for note in notes if isinstance(notes, list) else [notes]:
        if isinstance(note, Mapping):
            for name, inner in note.items():
                if text := said(inner):
                    found.append(Line.of((f"{_name(name)}  ", "dim"), cells.line(text, MOST), hang=2))
        elif text := said(note):
            found.append(Line.of((cells.line(text, MOST), "dim"), hang=2))
    return found


def need_lines(requires: Any, lead: str = "needs  ") -> list[Line]:
    """What an ask or a version requires of this machine and of the person, one a line."""
    rows = requires if isinstance(requires, list) else []
    texts = [needs.shown(need) if isinstance(need, Mapping) else said(need) for need in rows]
    return [Line.of((lead, "dim"), cells.line(text, MOST), hang=len(lead)) for text in texts if text]


def _name(name: Any) -> str:
    return cells.line(str(name).replace("_", " "), 40)
