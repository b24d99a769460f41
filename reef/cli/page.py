"""`reef page`: the page of a version or of an ask, in a browser."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import ScenarioOption, command, single
from reef.cli.look import OUT
from reef.cli.scope import daemon, person_only, scenario
from reef.ids import is_id, version_number
from reef.paths import Paths
from reef.text import safe

app = single()


@command(app, examples=("reef page v3", "reef page '#7' --print"))
def page(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A version (`v3` or `3`) or an ask (`#7` or its id).")],
    only_print: Annotated[bool, typer.Option("--print", help="Print the address and open nothing.")] = False,
    scenario_name: ScenarioOption = None,
) -> None:
    """Open the page of a version or of an ask.

    It says why there was a change, what changed, how it was judged and what it needs. The address holds a key that
    opens the pages of this scenario and nothing else. In a terminal: `reef versions show` and `reef asks show`.
    """
    person_only("open a page")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name)
    with daemon(paths, start=False) as client:
        if what.startswith("#") or is_id(what):
            path = client.ask(what.removeprefix("#"), name)["page_path"]
        else:
            path = client.version(name, version_number(what))["page_path"]
        output.data(f"{client.url}{path}")
    if not only_print and sys.stdout.isatty() and _has_screen():
        import webbrowser

        webbrowser.open(f"{client.url}{path}")


def sections(row: dict[str, Any], wanted: tuple[str, ...]) -> None:
    """Print sections of a page that the daemon sent with a version or an ask; none where it sent none."""
    for section in row.get("page") or []:
        if section["title"] in wanted:
            output.data(f"\n{OUT.paint(section['title'], 'strong')}")
            for line in section["lines"]:
                output.data(f"  {safe(str(line))}")


def _has_screen() -> bool:
    """Whether a browser would be a window: a browser in the terminal is not what was asked for."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
