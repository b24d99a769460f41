"""Rows of versions as the commands over them use them: which one is meant, and how its state reads."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef.cli.look import OUT, Look
from reef.errors import NotFound
from reef.ids import spans, version_number

Json = dict[str, Any]
Rows = list[Json]

VersionArgument = Annotated[str, typer.Argument(metavar="VERSION", help="`v3` or `3`.")]
AdapterOption = Annotated[str | None, typer.Option("--adapter", metavar="NAME", help="The agent; else the scenario's.")]


def row_of(rows: Rows, number: int) -> Json:
    """The row of a version that is known to be there."""
    return next(found for found in rows if found["version"] == number)


def existing(rows: Rows, name: str, version: str) -> int:
    """The number of the version that was typed. Raises NotFound with those that there are."""
    number = version_number(version)
    if all(found["version"] != number for found in rows):
        there = spans("v", (found["version"] for found in rows)) or "none yet"
        raise NotFound(f"scenario {name} has no version v{number} (versions: {there})", f"reef versions list -s {name}")
    return number


def parent_of(rows: Rows, found: Json) -> Json | None:
    """The version before one; None for the base."""
    parent = found.get("parent_release_id")
    return next((other for other in rows if parent and other["release_id"] == parent), None)


def state(found: Json, look: Look = OUT) -> str:
    """Head, pending or what else a version is, and whether it is pinned."""
    if found.get("current"):
        told = look.paint(f"{look.symbol('●')} head", "good")
    elif found.get("pending"):
        told = look.paint(f"{look.symbol('▲')} pending", "needs")
    else:
        told = look.line(found.get("state"))
    return look.joined(told, "pinned" if found.get("pinned") else None)


def with_pins(rows: Rows, pins: Rows) -> Rows:
    """Rows as the database file gives them, with what the daemon adds: whether each is pinned."""
    kept = {pin["version"] for pin in pins}
    return [found | {"pinned": found["version"] in kept} for found in rows]
