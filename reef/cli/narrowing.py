"""What narrows a list of records or a search in them: the options, and what they are for the daemon and the reader."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef.cli.since import since as moment

SessionOption = Annotated[
    str | None, typer.Option("--session", metavar="KEY", help="Only calls of this session, by key or id.")
]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Only this model; NAME* for what begins so.")
]
ScoreOption = Annotated[
    str | None, typer.Option("--score", metavar="SCORE", help="Only what you rated so: 1, '<0', '>=0.5'.")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="AGE", help="Only calls since then: 2d, 3h, 2026-01-31.")
]
FailedOption = Annotated[bool, typer.Option("--failed", help="Only calls that failed.")]
CutOption = Annotated[bool, typer.Option("--cut", help="Only calls whose prompt the server likely cut.")]


def narrowed(
    scenario: str | None,
    session: str | None,
    model: str | None = None,
    score: str | None = None,
    since: str | None = None,
    failed: bool = False,
    cut: bool = False,
) -> dict[str, Any]:
    """The options that were given, as a query of `GET /reef/records` and as fields of a filter. Raises UsageError."""
    found = {"scenario": scenario, "session": session, "model": model, "score": score, "since": moment(since)}
    chosen: dict[str, Any] = {name: value for name, value in found.items() if value is not None}
    return chosen | ({"failed": 1} if failed else {}) | ({"cut": 1} if cut else {})
