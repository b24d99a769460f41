"""`reef doctor`: what is well, what to look at, and what is broken."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef.cli import child, output
from reef.cli.group import JsonOption, command, single
from reef.cli.look import OUT, counted
from reef.errors import Refused

app = single()
_SIGNS = {"ok": ("✓", "good"), "warn": ("▲", "needs"), "bad": ("✗", "failed")}
_LABEL = 10


@command(
    app, examples=("reef doctor", "reef doctor --json | jq '.[] | select(.state != \"ok\")'", "reef doctor --network")
)
def doctor(
    network: Annotated[
        bool, typer.Option("--network", help="List every address that reef would contact, and contact none.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check the record store, the disk, the settings and the daemon.

    Each check is ok, warn or bad, with one sentence and what to do. It works with and without a daemon, reads only and
    changes nothing. It ends with 0 when no check is bad, else with 5.
    """
    if network:
        _network(json)
        return
    found: list[dict[str, Any]] = []
    for line in child.lines("reef.doctor"):
        found.append(line["check"])
        if not json:
            _show(line["check"])
    if json:
        output.json_value(found)
    bad = [check["name"] for check in found if check["state"] == "bad"]
    if bad:
        raise Refused(f"{counted(len(bad), 'check')} found something broken: {', '.join(bad)}")


def _show(check: dict[str, Any]) -> None:
    sign, style = _SIGNS[check["state"]]
    state = OUT.paint(f"{OUT.symbol(sign)} {check['state']:<4}", style)
    for line in OUT.folded(f"{check['name']:<{_LABEL}}  {state}  {OUT.line(check['sentence'])}"):
        output.data(line)
    if check["hint"]:
        output.data(f"{'':<{_LABEL}}  {OUT.paint(OUT.line(check['hint']), 'hint')}")


def _network(json: bool) -> None:
    found = [line["address"] for line in child.lines("reef.doctor", "--network")]
    if json:
        output.json_value(found)
        return
    cells = [[OUT.line(row["address"]), OUT.line(row["when"]), OUT.line(row["why"])] for row in found]
    for line in OUT.table(["address", "when", "what for"], cells):
        output.data(line)
