"""`reef backup`: everything that was recorded and learned in one file, without a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reef.cli import child, output
from reef.cli.group import JsonOption, command, single
from reef.cli.look import ERR, OUT, counted, size
from reef.cli.scope import person_only

app = single()


@command(app, examples=("reef backup ~/reef.backup", "reef backup /mnt/usb/reef.backup --force"))
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write.")],
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace FILE if it is there.")] = False,
    json: JsonOption = False,
) -> None:
    """Save records, versions and settings in one file.

    It holds the database, the versions with their large files, and the settings without comments and secrets: never
    the person key, a token or a provider's key. Agents and models are not in it, they can be installed again. The
    daemon may run and record meanwhile. The file is readable by you alone and appears whole or not at all.
    """
    person_only("save what was recorded")
    saved = child.worked("reef.records.backup", str(file), *(["--force"] if force else []))["saved"]
    if json:
        output.json_value(saved)
        return
    records = counted(saved["records"], "record")
    output.data(OUT.joined(f"saved {OUT.line(saved['file'])}", size(saved["bytes"]), records))
    for key in saved["left_out"]:
        output.say(ERR.line(f"left out: {key}, a secret or an address with one; set it again after a restore"))
