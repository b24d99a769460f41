"""`reef off`: stop reef, and show that plain agents are as they were."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef.cli import child, output
from reef.cli.down import stop
from reef.cli.group import JsonOption, command, single
from reef.cli.look import OUT, counted
from reef.cli.scope import person_only
from reef.paths import Paths

app = single()
_SHOWN = 12
_NAMED = 3


@command(app, examples=("reef off", "reef off --prove"))
def off(
    prove: Annotated[
        bool, typer.Option("--prove", help="Print checksums of the agents' own folders, before and after.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Turn reef off, and show that plain agents are as they were.

    It stops the daemon. Nothing else is to be turned back: reef runs agents in homes of its own and never writes to the
    folders that they have without it, so `codex`, `claude` or `pi` without `reef-` go on as they are. `reef up`, or a
    `reef-` command, turns it on again.

    With `--prove` the checksums of those folders are printed: as they were when reef was first installed for the agent,
    at the last start of its `reef-` command, before this command, and now.
    """
    person_only("turn reef off")
    paths = Paths.from_environ()
    before = _places() if prove else []
    said = stop(paths, now=False)
    if prove:
        then = {(row["agent"], row["place"]): row["now"] for row in before}
        rows = [row | {"before": then.get((row["agent"], row["place"]))} for row in _places()]
    if json:
        output.json_value({"daemon": said} | ({"places": rows} if prove else {}))
        return
    output.data(said)
    if prove:
        _tell(rows)
    else:
        output.data("agents that are started without reef were never changed; reef off --prove shows it")


def _places() -> list[dict[str, Any]]:
    return [line["place"] for line in child.lines("reef.doctor", "--own")]


def _tell(rows: list[dict[str, Any]]) -> None:
    cells = []
    for row in rows:
        if row["there"]:
            sums = [row["installed"], row["started"], row["before"], row["now"]]
            shown = [value[:_SHOWN] if value else OUT.symbol("–") for value in sums]
        else:
            shown = [OUT.symbol("–")] * 3 + ["not there"]
        cells.append([OUT.line(row["agent"]), OUT.line(row["place"]), f"{row['files']:,}", *shown])
    columns = ["agent", "place", "files", "first installed", "last started", "before", "now"]
    for line in OUT.table(columns, cells):
        output.data(line)
    if any(row["before"] != row["now"] for row in rows):
        output.data("a folder changed while this command ran: another program writes to it")
    for row in rows:
        if row["there"] and row["changed"]:
            some = ", ".join(OUT.line(name or row["place"]) for name in row["changed"][:_NAMED])
            more = f" and {len(row['changed']) - _NAMED} more" if len(row["changed"]) > _NAMED else ""
            what = counted(len(row["changed"]), "file")
            output.data(f"{OUT.line(row['place'])}: {what} changed since reef looked last: {some}{more}")
    changed = any(row["there"] and row["changed"] for row in rows)
    reason = "the plain agent writes there, and so does --alongside" if changed else "nothing there was changed"
    output.data(f"reef itself writes to none of these places; {reason}")
