"""`reef disk`: what takes how much, and what it may grow to."""

from __future__ import annotations

from reef.cli import child, output
from reef.cli.group import JsonOption, command, single
from reef.cli.look import OUT, size

app = single()


@command(app, examples=("reef disk", "reef disk --json | jq '.shares[] | select(.size > 1e9)'"))
def disk(json: JsonOption = False) -> None:
    """Show what takes how much of the disk.

    Bodies, the search index, events, versions, agents, models, logs and copies, each with its limit where it has one
    in bytes. It works with and without a daemon and changes nothing.
    """
    found = child.worked("reef.doctor.disk")["disk"]
    if json:
        output.json_value(found)
        return
    cells = []
    for share in found["shares"]:
        limit = size(share["limit"]) if share["limit"] else OUT.symbol("–")
        cells.append([share["name"], size(share["size"]), limit, OUT.line(share["about"])])
    cells.append(["all", size(found["total"]), OUT.symbol("–"), f"{size(found['free'])} free on this disk"])
    for line in OUT.table(["what", "size", "limit", "about"], cells, right=(1, 2)):
        output.data(line)
