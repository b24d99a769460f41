"""`reef why`: from a line that an agent reads, an entry or a version back to what led to it."""

from __future__ import annotations

import json as json_module
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, ScenarioOption, command, single
from reef.cli.look import ERR, OUT
from reef.cli.scope import daemon, person_only, scenario
from reef.errors import InvalidInput
from reef.paths import Paths

app = single()
_LINE = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]{0,8})\Z")
_VERSION = re.compile(r"v[1-9][0-9]{0,8}\Z")


@dataclass(frozen=True)
class _Place:
    """A line of a file, and the install that it belongs to where it is one."""

    file: str
    line: int
    scenario: str | None = None
    adapter: str | None = None
    version: int | None = None
    text: str | None = None
    """What the line says on disk."""


@command(app, examples=("reef why AGENTS.md:12", "reef why bugs", "reef why v4 --json"))
def why(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="`FILE:LINE`, the id of an entry, or a version.")],
    scenario_name: ScenarioOption = None,
    adapter: Annotated[str | None, typer.Option("--adapter", metavar="NAME", help="Agent that reads FILE.")] = None,
    version: Annotated[str | None, typer.Option("--version", metavar="V", help="Look at it as of this one.")] = None,
    json: JsonOption = False,
) -> None:
    """Show where a line, an entry or a version came from.

    FILE is a file of an installed tree, or its path in there. What follows is a chain: entry, version, step, ask or
    reports, and the calls behind them. `recorded` is what something stored says; `inferred` only follows from it.
    """
    person_only("read what led to a version")
    paths = Paths.from_environ()
    typed = _LINE.match(target)
    place = _placed(paths, typed["file"], int(typed["line"])) if typed else None
    name = scenario(paths, scenario_name or (place.scenario if place else None), quiet=json)
    wanted: dict[str, Any] = {"version": version}
    if place is not None:
        chosen = adapter or place.adapter
        there = place if place.adapter else _installed(paths, name, chosen, place)
        wanted |= {"file": place.file, "line": place.line, "adapter": chosen}
        wanted["version"] = version or (None if there.version is None else f"v{there.version}")
    elif _VERSION.match(target):
        wanted["version"] = target
    else:
        wanted["entry"] = target
    with daemon(paths, start=False) as client:
        found = client.why(name, **wanted)
    if place is not None and place.text is not None and place.text != found["links"][0]["text"]:
        raise InvalidInput(
            f"line {place.line} of {place.file} is not what v{found['version']} says: the file was changed on disk",
            f"reef versions install v{found['version']} -s {name}",
        )
    if json:
        output.json_value(found)
        return
    for line in OUT.table(["what", "which", "how it is known"], [_cells(link) for link in found["links"]]):
        output.data(line)


def _placed(paths: Paths, file: str, line: int) -> _Place:
    """What was typed as a file: one of an install, by its path on disk, or a path in the tree of any version."""
    path = Path(file).expanduser()
    if not path.exists():
        return _Place(file, line)
    resolved, root = path.resolve(), paths.harness.resolve()
    parts = resolved.relative_to(root).parts if resolved.is_relative_to(root) else ()
    if len(parts) < 4 or parts[2] not in ("tree", "home"):
        if not file.startswith(("/", "~", ".")):
            # A project may have a file of the same name as the agent's own.
            output.say(f"{ERR.line(file)} of the installed tree, not the one in this folder")
            return _Place(file, line)
        raise InvalidInput(
            f"{file} is no file that reef installed (those are below {paths.harness})", "reef why ID_OF_AN_ENTRY"
        )
    lines = resolved.read_text(encoding="utf-8", errors="replace").splitlines()
    text = lines[line - 1] if line <= len(lines) else None
    found = _Place("/".join(parts[3:]), line, parts[0], parts[1], None, text)
    return _installed(paths, parts[0], parts[1], found)


def _installed(paths: Paths, name: str, adapter: str | None, place: _Place) -> _Place:
    """`place` with the version that is installed there, when one is."""
    if adapter is None:
        return place
    try:
        facts = json_module.loads((paths.harness / name / adapter / "install.json").read_text(encoding="utf-8"))
        return _Place(place.file, place.line, name, adapter, int(facts["version"]), place.text)
    except (OSError, ValueError, KeyError, TypeError):
        return place


def _cells(link: dict[str, Any]) -> list[str]:
    return [str(link["kind"]), _which(link), f"{link['how']}: {OUT.line(link['why'])}"]


def _which(link: dict[str, Any]) -> str:
    kind = link["kind"]
    if kind == "line":
        return f'{OUT.line(link["file"])}:{link["line"]} "{OUT.line(link["text"], 60)}"'
    if kind == "entry":
        return f"{OUT.line(link['id'])} ({OUT.line(link['entry_kind'])})"
    if kind == "version":
        number = f"v{link['version']}" if link.get("version") else str(link["release_id"])[:12]
        return OUT.joined(number, OUT.when(link.get("created_at")), OUT.line(link.get("summary"), 60))
    if kind == "step":
        return OUT.joined(f"step {link['step']}", OUT.line(link.get("recipe")), OUT.line(link.get("reason"), 60))
    if kind == "ask":
        number = f"#{link['number']}" if link.get("number") else str(link["id"])
        return f'{number} "{OUT.line(link.get("text"), 60)}"'
    if kind == "report":
        said = OUT.line(link.get("feedback"), 60)
        return OUT.joined(OUT.id(link["id"]), f"score {link['score']}" if link.get("score") is not None else "", said)
    if kind == "call":
        shown = OUT.line(link.get("preview"), 60)
        return OUT.joined(OUT.id(link["receipt"]), f'"{shown}"' if shown else "")
    return OUT.line(link.get("operation"))
