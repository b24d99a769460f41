"""`reef restore`: put a backup in the place of what this home holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reef.cli import child, output
from reef.cli.group import JsonOption, YesOption, command, single
from reef.cli.look import ERR, OUT, counted
from reef.cli.scope import person_only
from reef.paths import Paths

app = single()


@command(app, examples=("reef restore ~/reef.backup", "reef restore ~/reef.backup --yes"))
def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `reef backup` wrote, or a folder that a restore kept.")
    ],
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Put a backup in the place of records, versions and settings.

    The daemon must be down. What was there is not deleted: it stays beside the new, in a folder with the date, and
    `reef restore FOLDER` goes back to it. A backup of a newer reef is refused, one of an older reef is brought up to
    date at the next start. Everything is checked before anything is moved, and an interruption is finished later.
    """
    person_only("restore a backup")
    found = child.worked("reef.records.restore", str(file), "--look")["backup"]
    if Paths.from_environ().database.exists():
        held = f" with {counted(found['records'], 'record')}" if "records" in found else ""
        output.agree(
            ERR.line(f"put the state of {found['made_at']}{held} in the place of what is here?"),
            yes,
            f"reef restore {file} --yes",
            why="this home holds records, so ",
        )
    restored = child.worked("reef.records.restore", str(file))["restored"]
    if json:
        output.json_value(restored)
        return
    output.data(OUT.line(f"restored {file}"))
    if restored["kept"]:
        output.say(ERR.line(f"what was here before is kept in {restored['kept']}"))
        output.say(ERR.line(f"to go back: reef down && reef restore {restored['kept']}"))
    for key in restored["left_out"]:
        output.say(ERR.line(f"set again, for it was not in the backup: {key}"))
    output.say("next: reef up")
