"""`reef versions`: what was published, and the decisions that only a person takes."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import Annotated

import typer

from reef import needs
from reef.cli import installing, output
from reef.cli.group import JsonOption, ScenarioOption, YesOption, command, noun
from reef.cli.look import OUT
from reef.cli.page import sections
from reef.cli.scope import daemon, head_of, person_only, read, scenario, versions_of
from reef.cli.version_rows import (
    AdapterOption,
    Rows,
    VersionArgument,
    existing,
    row_of,
    state,
    with_pins,
)
from reef.cli.versions_bisect import bisect
from reef.cli.versions_carry import export, import_version
from reef.cli.versions_decide import promote, rollback, show_change
from reef.cli.versions_log import diff, log
from reef.cli.versions_pin import pin, unpin
from reef.cli.versions_try import try_version
from reef.cli.watch import evaluation_lines
from reef.errors import NotFound
from reef.ids import version_number
from reef.paths import Paths
from reef.pinned import pinned
from reef.provided import Provided, provided
from reef.text import safe

app = noun(
    "List, show, compare, install, promote or roll back versions. v1 is the base, there from the first moment.",
    "reef versions list",
    "reef versions diff v1 v2",
    "reef versions rollback v1",
)


@command(app, "list", examples=("reef versions list", "reef versions list -s coding --json"))
def list_versions(scenario_name: ScenarioOption = None, json: JsonOption = False) -> None:
    """List the versions of a scenario, newest first.

    The head is what is served now; a pending version waits for your yes because it changes code; a pinned one stays
    installed whatever is served.
    """
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    found: Rows = read(
        paths,
        lambda client: versions_of(client, name),
        lambda reader: with_pins(reader.versions(name), reader.pins(name)),
        name,
    )
    rows = sorted(found, key=lambda row: row["version"], reverse=True)
    if json:
        output.json_value(rows)
        return
    if not rows:
        output.say(f"no version yet; v1 is made with the scenario: reef scenarios create {name}")
    cells = []
    for row in rows:
        how = OUT.line(row["operation"]) + (f" step {row['step']}" if row.get("step") else "")
        cells.append(
            [f"v{row['version']}", OUT.when(row.get("created_at")), state(row), how, OUT.line(row.get("summary"))]
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
    output.data(OUT.joined(f"v{row['version']}", f"scenario {name}", state(row), OUT.when(row.get("created_at"))))
    output.data(f"release  {row['release_id']}")
    if row.get("summary"):
        output.data(f"what     {OUT.line(row['summary'])}")
    if row.get("step"):
        output.data(f"step     {row['step']}   reef steps show {row['step']} -s {name}")
    for need in needs.of(row):
        output.data(f"needs    {needs.shown(need)}")
    for line in evaluation_lines(row.get("evaluation")):
        output.data(line)
    sections(row, ("Why", "Design", "Review", "Chain"))
    for path, text in sorted((row.get("files") or {}).items()):
        lines = safe(str(text)).splitlines()
        if any(part.startswith("reef-") for part in PurePosixPath(path).parts):
            output.data(f"\n{OUT.paint(OUT.line(path), 'strong')}  reef's own, {len(lines)} lines")
            continue
        output.data(f"\n{OUT.paint(OUT.line(path), 'strong')}")
        for line in lines:
            output.data(f"  {line}")


@command(app, "install", examples=("reef versions install", "reef versions install v3 --adapter pi -s coding"))
def install(
    version: Annotated[
        str | None, typer.Argument(metavar="VERSION", help="`v3`; else the pinned one, else the head.")
    ] = None,
    adapter: AdapterOption = None,
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
        for_agent = installing.adapter_of(client, name, adapter)
        kept = pinned(client.pins(name)["pins"], for_agent)
        wanted = existing(rows, name, version) if version else kept or head
        if wanted is None:
            raise NotFound(f"scenario {name} has no version yet", "reef versions list")
        if kept is not None and version is None:
            output.say(f"pinned to v{kept}; to follow the head: reef versions unpin -s {name}")
        elif row_of(rows, wanted).get("pending"):
            show_change(client, name, head, wanted)
        _check_needs(rows, wanted, name, provided(paths, name, for_agent), yes)
        if row_of(rows, wanted).get("pending"):
            output.agree(f"install v{wanted} of scenario {name}?", yes, f"reef versions install v{wanted} --yes")
        steps = client.install_harness(name, for_agent, wanted, head)
        done = installing.run(steps, f"v{wanted}")
    if json:
        output.json_value(done)
        return
    installing.tell(done)
    waiting = [row["version"] for row in rows if row.get("pending") and row["version"] != wanted]
    if waiting and version is None and kept is None:
        output.say(f"v{waiting[0]} is newer and needs you: reef versions show v{waiting[0]} -s {name}")


def _check_needs(rows: Rows, number: int, name: str, there: Provided, yes: bool) -> None:
    """Show what a version needs; refuse what is not there, and ask for what only the person knows."""
    wanted, version = needs.of(row_of(rows, number)), f"v{number}"
    environ = there.environ(os.environ, wanted)
    for need in wanted:
        output.say(f"needs  {needs.shown(need, environ)}")
    rest = needs.left_to_the_person(version, there.unmet(wanted, os.environ), name, rows, number)
    if rest:
        output.agree(f"does {version} get what it needs?", yes, f"reef versions install {version} --yes")
        there.agree(rest)


command(app, "log", examples=("reef versions log", "reef versions log -p -s coding"))(log)
command(
    app, "diff", examples=("reef versions diff", "reef versions diff v1 v3 -s coding", "reef versions diff v3 s12")
)(diff)
command(app, "promote", examples=("reef versions promote v3", "reef versions promote v3 -s coding --yes"))(promote)
command(app, "rollback", examples=("reef versions rollback v1", "reef versions rollback v1 -s coding --yes"))(rollback)
command(app, "pin", examples=("reef versions pin v3", "reef versions pin --adapter pi -s coding"))(pin)
command(app, "unpin", examples=("reef versions unpin", "reef versions unpin --adapter pi -s coding"))(unpin)
command(
    app,
    "try",
    examples=("reef versions try v3", 'reef versions try v3 --adapter pi -- -p "say hello"'),
)(try_version)
command(
    app,
    "bisect",
    examples=("reef versions bisect", "reef versions bisect start --good v1 --bad v8", "reef versions bisect good"),
)(bisect)
command(
    app,
    "export",
    examples=(
        "reef versions export v3",
        "reef versions export v3 --as agents-md -o team-rules",
        "reef versions export v3 --bundle",
    ),
)(export)
command(
    app, "import", examples=("reef versions import coding-v3.reef.tar.gz", "reef versions import team.bundle -s coding")
)(import_version)
