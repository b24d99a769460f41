"""`reef help`: the topics, and a command's own help."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated

import typer

import reef.help
from reef import __version__
from reef.cli import output, table
from reef.cli.group import command, single
from reef.cli.look import OUT
from reef.errors import UsageError

app = single()
_WRITTEN = 120
_LABELLED = re.compile(r" *\S+(?: \S+)? {2,}(?=\S)")


@command(app, examples=("reef help exit-codes", "reef help versions install"))
def help(
    topic: Annotated[list[str] | None, typer.Argument(metavar="TOPIC|COMMAND", help="`reef help` lists them.")] = None,
) -> None:
    """Show a help topic or a command's help.

    A topic is one page about how reef works; a command's help is what `--help` after it prints.
    """
    if not topic:
        output.data(table.top_help(__version__))
        return
    if topic[0] in table.TOPICS and len(topic) == 1:
        for line in joined(page(topic[0]).splitlines()) if OUT.columns < _WRITTEN else page(topic[0]).splitlines():
            for part in OUT.folded(line):
                output.data(part)
        if table.find(topic[0]) is not None:
            output.say(f"\nfor the command: reef {topic[0]} --help")
        return
    if table.find(topic[0]) is None:
        names = [*table.TOPICS, *(entry.name for entry in table.COMMANDS)]
        near = difflib.get_close_matches(topic[0], names, 1, 0.5)
        raise UsageError(f"there is no help on {topic[0]!r}", f"reef help {near[0]}" if near else "reef --help")
    from reef.cli.app import dispatch

    dispatch([*topic, "--help"])


def joined(lines: list[str]) -> list[str]:
    """The lines of a page with each paragraph and each entry of a list on one line, for a terminal to break anew."""
    found: list[str] = []
    hangs = 0
    for line in lines:
        blanks = len(line) - len(line.lstrip())
        label = _LABELLED.match(line)
        if found and found[-1] and line and blanks == hangs and (label is None or blanks > 0):
            found[-1] += f" {line.strip()}"
            continue
        found.append(line)
        # What continues an entry begins below its text; what continues a paragraph begins at the left.
        hangs = label.end() if label else 0 if blanks == 0 else -1
        if line.endswith(":") or line.isupper():
            hangs = -1
    return found


def page(topic: str) -> str:
    """The text of one topic."""
    return (Path(reef.help.__file__).parent / f"{topic}.md").read_text(encoding="utf-8")
