"""`reef versions log` and `diff`: the history of a scenario, and what differs between two of its contents."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.difference import lines_of
from reef.cli.group import JsonOption, LimitOption, ScenarioOption
from reef.cli.look import OUT
from reef.cli.scope import daemon, person_only, read, scenario, versions_of
from reef.cli.version_rows import Json, Rows, existing, parent_of, with_pins
from reef.client import Client
from reef.errors import NotFound
from reef.paths import Paths

_OWN_NAMES = re.compile(r"s[1-9][0-9]{0,8}\Z|base\Z")
_DECIDED = {
    "base": "the base",
    "promote": "your yes",
    "rollback": "you went back",
    "upgrade": "reef's own entries were upgraded",
    "import": "you imported it",
}


def log(
    scenario_name: ScenarioOption = None,
    changes: Annotated[bool, typer.Option("--changes", "-p", help="Show what each version changed.")] = False,
    limit: LimitOption = 100,
    json: JsonOption = False,
) -> None:
    """Show the history of a scenario, one line a version.

    Newest first: the step that made it, the ask that this step took, and who or what decided. With -p every version is
    followed by what it changed.
    """
    if changes:
        person_only("read the files of a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    if changes:
        with daemon(paths, start=False) as client:
            rows = versions_of(client, name)
            shown = [found | {"changes": _changes(client, name, rows, found)} for found in rows[:limit]]
    else:
        shown = read(paths, lambda client: versions_of(client, name), lambda reader: _offline(reader, name), name)
        shown = shown[:limit]
    if json:
        output.json_value([found | {"decision": decision(found)} for found in shown])
        return
    if not shown:
        output.say(f"no version yet; v1 is made with the scenario: reef scenarios create {name}")
        return
    table = OUT.table(["version", "when", "step", "decision", "ask and change"], [_cells(found) for found in shown])
    output.data(table[0])
    for found, line in zip(shown, table[1:], strict=True):
        output.data(line)
        for part in lines_of({"files": found["changes"]}) if found.get("changes") else []:
            output.data(part)


def diff(
    old: Annotated[str | None, typer.Argument(metavar="A", help="`v1`, `s12`, `base`; else the one before B.")] = None,
    new: Annotated[str | None, typer.Argument(metavar="B", help="`v3`, `s12`, `base`; else the newest.")] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Show what differs between two versions, word by word.

    Each of the two is a version (`v3`), what a step made whether it was published or not (`s12`), or `base`. Without
    any it compares the newest with the one it was made from; with one it compares that with the newest. In a line that
    begins with `~`, `[-old-]` went and `{+new+}` came.
    """
    person_only("read the files of a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths, start=False) as client:
        first, second = _pair(versions_of(client, name), name, old, new)
        found = client.diff(name, first, second)
    if json:
        output.json_value(found)
        return
    output.data(f"{first} {OUT.symbol('→')} {second}")
    for line in lines_of(found):
        output.data(line)


def decision(found: Json) -> str:
    """Who or what let a version through, in a few words."""
    if found.get("pending"):
        return "waits for your yes"
    operation = str(found.get("operation"))
    if operation in _DECIDED:
        return _DECIDED[operation]
    evaluation = found.get("evaluation") or {}
    groups = [f"{group.get('name')} {group.get('status')}" for group in evaluation.get("groups") or []]
    return ", ".join(groups) or str(evaluation.get("policy") or operation)


def asks_of(found: Json) -> str:
    """The asks that a version came from: `#3 "what was asked"`."""
    return " ".join(f'#{ask["number"]} "{OUT.line(ask["text"], 60)}"' for ask in found.get("asks") or [])


def _cells(found: Json) -> list[str]:
    marks = OUT.joined(
        f"{OUT.symbol('●')} head" if found.get("current") else None, "pinned" if found.get("pinned") else None
    )
    step = f"step {found['step']}" if found.get("step") else OUT.symbol("–")
    what = OUT.joined(marks, asks_of(found), OUT.line(found.get("summary")))
    return [f"v{found['version']}", OUT.when(found.get("created_at")), step, OUT.line(decision(found)), what]


def _changes(client: Client, name: str, rows: Rows, found: Json) -> list[Json]:
    parent = parent_of(rows, found)
    if parent is None:
        return []
    files: list[Json] = client.diff(name, f"v{parent['version']}", f"v{found['version']}")["files"]
    return files


def _offline(reader: Any, name: str) -> Rows:
    rows = with_pins(sorted(reader.versions(name), key=lambda found: found["version"], reverse=True), reader.pins(name))
    asks = reader.asks(name)
    for found in rows:
        taken = [ask for ask in asks if found["step"] is not None and ask["step"] == found["step"]]
        found["asks"] = [{"number": ask["number"], "text": ask["text"]} for ask in taken]
    return rows


def _pair(rows: Rows, name: str, old: str | None, new: str | None) -> tuple[str, str]:
    if not rows:
        raise NotFound(f"scenario {name} has no version yet", "reef versions list")
    second = _named(rows, name, new) if new else f"v{rows[0]['version']}"
    if old:
        return _named(rows, name, old), second
    before = parent_of(rows, rows[0])
    if before is None:
        raise NotFound(f"{second} is the base of scenario {name}, there is nothing before it", "reef versions list")
    return f"v{before['version']}", second


def _named(rows: Rows, name: str, typed: str) -> str:
    """What was typed, as the daemon takes it."""
    return typed if _OWN_NAMES.match(typed) else f"v{existing(rows, name, typed)}"
