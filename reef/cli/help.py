"""`reef help`: the topics, and a command's own help."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

import reef.help
from reef import __version__
from reef.cli import output, table
from reef.cli.group import command, single
from reef.errors import NotFound

app = single()


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
        output.data(page(topic[0]).rstrip("\n"))
        if table.find(topic[0]) is not None:
            output.say(f"\nfor the command: reef {topic[0]} --help")
        return
    if table.find(topic[0]) is None:
        names = [*table.TOPICS, *(entry.name for entry in table.COMMANDS)]
        near = difflib.get_close_matches(topic[0], names, 1, 0.5)
        raise NotFound(f"there is no help on {topic[0]!r}", f"reef help {near[0]}" if near else "reef --help")
    from reef.cli.app import dispatch

    dispatch([*topic, "--help"])


def page(topic: str) -> str:
    """The text of one topic."""
    return (Path(reef.help.__file__).parent / f"{topic}.md").read_text(encoding="utf-8")
