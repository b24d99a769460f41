"""`reef tui`: the full-screen view, imported only here."""

from __future__ import annotations

import sys

import typer

from reef.cli.group import ScenarioOption, command, single
from reef.errors import UsageError

app = single()


@command(app, examples=("reef tui", "reef tui --scenario coding"))
def tui(scenario_name: ScenarioOption = None) -> None:
    """Open the full-screen view.

    Traces, asks and versions, live. `?` shows the keys, `q` leaves; the daemon goes on. Everything in it has a plain
    command with --json.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("reef tui needs a terminal", "reef status")
    from reef.tui.app import run

    raise typer.Exit(run(scenario_name) or 0)
