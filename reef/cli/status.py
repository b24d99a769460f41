"""`reef status`: one screen that says how things are and what needs the person."""

from __future__ import annotations

from reef.cli.group import JsonOption, command, single
from reef.cli.standing import show

app = single()


@command(app, examples=("reef status", "reef status --json | jq -r .engine.state"))
def status(json: JsonOption = False) -> None:
    """Show the daemon, the engine, the scenarios and what needs you.

    It needs no key and shows counts and states, never text. It does not start the daemon: while that is down it ends
    with 3.
    """
    show(json)
