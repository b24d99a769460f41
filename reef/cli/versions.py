"""`reef versions`: what was published, and the decisions that only a person takes."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any

import typer

from reef import needs
from reef.cli import installing, output
from reef.cli.difference import lines_of
from reef.cli.group import JsonOption, ScenarioOption, YesOption, command, noun
from reef.cli.look import ERR, OUT
from reef.cli.scope import daemon, head_of, person_only, read, scenario, versions_of
from reef.cli.watch import evaluation_lines
from reef.client import Client
from reef.errors import InvalidInput, NotFound
from reef.ids import version_number
from reef.paths import Paths
from reef.text import safe

app = noun(
    "List, show, compare, install, promote or roll back versions. v1 is the base, there from the first moment.",
    "reef versions list",
    "reef versions diff v1 v2",
    "reef versions rollback v1",
)

VersionArgument = Annotated[str, typer.Argument(metavar="VERSION", help="`v3` or `3`.")]
Rows = list[dict[str, Any]]


@command(app, "list", examples=("reef versions list", "reef versions list -s coding --json"))
def list_versions(scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """List the versions of a scenario, newest first.

    The head is what is served now; a pending version waits for your yes because it changes code.
    """
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    found: Rows = read(paths, lambda client: versions_of(client, name), lambda reader: reader.versions(name), name)
    rows = sorted(found, key=lambda row: row["version"], reverse=True)
    if json:
        output.json_value(rows)
        return
    cells = []
    for row in rows:
        how = OUT.line(row["operation"]) + (f" step {row['step']}" if row.get("step") else "")
        cells.append(
            [f"v{row['version']}", OUT.when(row.get("created_at")), _state(row), how, OUT.line(row.get("summary"))]
        )
    for line in OUT.table(["version", "when", "state", "by", "what"], cells):
        output.data(line)
    for row in rows:
        if row.get("pending"):
            output.say(f"v{row['version']} needs you: reef versions show v{row['version']} -s {name}")


@command(app, "show", examples=("reef versions show v2", "reef versions show v2 -s coding --json"))
def show(version: VersionArgument, scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """Show one version and its files.

    Where it came from, how it was evaluated and the text of each file in it; reef's own files only by name and length.
    With --json every file is whole.
    """
    person_only("read the files of a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths, start=False) as client:
        row = client.version(name, version_number(version))
    if json:
        output.json_value(row)
        return
    output.data(OUT.joined(f"v{row['version']}", f"scenario {name}", _state(row), OUT.when(row.get("created_at"))))
    output.data(f"release  {row['release_id']}")
    if row.get("summary"):
        output.data(f"what     {OUT.line(row['summary'])}")
    if row.get("step"):
        output.data(f"step     {row['step']}   reef steps show {row['step']} -s {name}")
    for need in row.get("requires") or []:
        output.data(f"needs    {needs.shown(need)}")
    for line in evaluation_lines(row.get("evaluation")):
        output.data(line)
    for path, text in sorted((row.get("files") or {}).items()):
        lines = safe(str(text)).splitlines()
        if any(part.startswith("reef-") for part in PurePosixPath(path).parts):
            output.data(f"\n{OUT.paint(OUT.line(path), 'strong')}  reef's own, {len(lines)} lines")
            continue
        output.data(f"\n{OUT.paint(OUT.line(path), 'strong')}")
        for line in lines:
            output.data(f"  {line}")


@command(app, "diff", examples=("reef versions diff", "reef versions diff v1 v3 -s coding"))
def diff(
    old: Annotated[str | None, typer.Argument(metavar="A", help="Older version; else the one before B.")] = None,
    new: Annotated[str | None, typer.Argument(metavar="B", help="Newer version; else the newest.")] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Show what differs between two versions.

    Without versions it compares the newest with the one it was made from; with one it compares that with the newest.
    """
    person_only("read the files of a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths, start=False) as client:
        rows = versions_of(client, name)
        first, second = _pair(rows, name, old, new)
        found = client.diff(name, f"v{first}", f"v{second}")
    if json:
        output.json_value(found)
        return
    output.data(f"v{first} {OUT.symbol('→')} v{second}")
    for line in lines_of(found):
        output.data(line)


@command(app, "install", examples=("reef versions install", "reef versions install v3 --adapter pi -s coding"))
def install(
    version: Annotated[str | None, typer.Argument(metavar="VERSION", help="`v3`; else the head.")] = None,
    adapter: Annotated[
        str | None, typer.Option("--adapter", metavar="NAME", help="The agent; else the scenario's.")
    ] = None,
    scenario_name: ScenarioOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Install a version for a coding agent on this machine.

    It goes into reef's own folder, and `reef-pi` uses it from its next session on; your agent's own configuration stays
    as it is. A version that waits for your yes is shown first, and installing it is that yes. A version that needs a
    variable or a program which is not there is refused with 5; what only you can know is asked.
    """
    person_only("install a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths) as client:
        rows = versions_of(client, name)
        head = head_of(rows)
        wanted = _existing(rows, name, version) if version else head
        if wanted is None:
            raise NotFound(f"scenario {name} has no version yet", "reef versions list")
        if _row(rows, wanted).get("pending"):
            _show_change(client, name, head, wanted)
        _check_needs(_row(rows, wanted), yes)
        if _row(rows, wanted).get("pending"):
            output.agree(f"install v{wanted} of scenario {name}?", yes, f"reef versions install v{wanted} --yes")
        for_agent = installing.adapter_of(client, name, adapter)
        steps = client.install_harness(name, for_agent, wanted, head)
        done = installing.run(steps, f"v{wanted}")
    if json:
        output.json_value(done)
        return
    installing.tell(done)
    waiting = [row["version"] for row in rows if row.get("pending") and row["version"] != wanted]
    if waiting and version is None:
        output.say(f"v{waiting[0]} is newer and needs you: reef versions show v{waiting[0]} -s {name}")


@command(app, "promote", examples=("reef versions promote v3", "reef versions promote v3 -s coding --yes"))
def promote(
    version: VersionArgument, scenario_name: ScenarioOption = None, yes: YesOption = False, json: JsonOption = False
) -> None:
    """Make a pending version the head.

    Only a version that waits for your yes is promoted; an older one comes back with `reef versions rollback`. It shows
    what changes and asks. Whoever moved the head meanwhile is named, and then nothing changes.
    """
    _decide("promote", version, scenario_name, yes, json)


@command(app, "rollback", examples=("reef versions rollback v1", "reef versions rollback v1 -s coding --yes"))
def rollback(
    version: VersionArgument, scenario_name: ScenarioOption = None, yes: YesOption = False, json: JsonOption = False
) -> None:
    """Publish the content of an older version again.

    That makes a new version with the old content; nothing is lost and nothing in the history is rewritten.
    """
    _decide("rollback", version, scenario_name, yes, json)


def _decide(verb: str, version: str, scenario_name: str | None, yes: bool, json: bool) -> None:
    person_only("promote a version" if verb == "promote" else "roll back a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths) as client:
        rows = versions_of(client, name)
        head = head_of(rows)
        wanted = _existing(rows, name, version)
        if verb == "promote":
            _must_be_pending(_row(rows, wanted), name)
        if not yes:
            _show_change(client, name, head, wanted)
        question = f"{verb} v{wanted} of scenario {name}, now v{head}?"
        output.agree(question, yes, f"reef versions {verb} v{wanted} --yes")
        done = (client.promote if verb == "promote" else client.rollback)(name, wanted, head)
    if json:
        output.json_value(done)
        return
    what = "promoted" if verb == "promote" else "rolled back to"
    output.data(OUT.joined(f"{what} v{wanted}", f"scenario {name} is now v{done['version']}"))
    output.say(f"{ERR.paint('next', 'dim')}   reef versions install v{done['version']} -s {name}")
    output.say(f"{ERR.paint('undo', 'dim')}   reef versions rollback v{head} -s {name}")


def _must_be_pending(row: dict[str, Any], name: str) -> None:
    if row.get("pending"):
        return
    version = f"v{row['version']}"
    if row.get("current"):
        raise InvalidInput(f"{version} of scenario {name} is served already", f"reef versions list -s {name}")
    raise InvalidInput(
        f"{version} of scenario {name} is not pending, and only a pending version is promoted",
        f"reef versions rollback {version} -s {name}",
    )


def _show_change(client: Client, name: str, head: int | None, wanted: int) -> None:
    if head is None or head == wanted:
        return
    output.say(f"v{head} {ERR.symbol('→')} v{wanted}")
    for line in lines_of(client.diff(name, f"v{head}", f"v{wanted}"), ERR):
        output.say(line)


def _check_needs(row: dict[str, Any], yes: bool) -> None:
    """Show what a version needs; refuse what is not there, and ask for what only the person knows."""
    wanted = row.get("requires") or []
    version = f"v{row['version']}"
    for need in wanted:
        output.say(f"needs  {needs.shown(need)}")
    needs.refuse_unmet(version, wanted)
    if needs.only_the_person_knows(wanted):
        output.agree(f"does {version} get what it needs?", yes, f"reef versions install {version} --yes")


def _row(rows: Rows, number: int) -> dict[str, Any]:
    return next(row for row in rows if row["version"] == number)


def _existing(rows: Rows, name: str, version: str) -> int:
    number = version_number(version)
    if all(row["version"] != number for row in rows):
        newest = f" (newest: v{rows[0]['version']})" if rows else ""
        raise NotFound(f"scenario {name} has no version v{number}{newest}", "reef versions list")
    return number


def _pair(rows: Rows, name: str, old: str | None, new: str | None) -> tuple[int, int]:
    if not rows:
        raise NotFound(f"scenario {name} has no version yet", "reef versions list")
    second = _existing(rows, name, new) if new else int(rows[0]["version"])
    if old:
        return _existing(rows, name, old), second
    parent = _row(rows, second).get("parent_release_id")
    before = [row["version"] for row in rows if row["release_id"] == parent]
    if not before:
        raise NotFound(
            f"v{second} is the base of scenario {name}, there is nothing before it", f"reef versions show v{second}"
        )
    return int(before[0]), second


def _state(row: dict[str, Any]) -> str:
    if row.get("current"):
        return OUT.paint(f"{OUT.symbol('●')} head", "good")
    if row.get("pending"):
        return OUT.paint(f"{OUT.symbol('▲')} pending", "needs")
    return OUT.line(row.get("state"))
