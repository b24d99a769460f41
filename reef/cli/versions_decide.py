"""`reef versions promote` and `rollback`: what is served from now on, shown before it is decided."""

from __future__ import annotations

from reef.cli import output
from reef.cli.difference import lines_of
from reef.cli.group import JsonOption, ScenarioOption, YesOption
from reef.cli.look import ERR, OUT
from reef.cli.scope import daemon, head_of, person_only, scenario, versions_of
from reef.cli.version_rows import Json, VersionArgument, existing, row_of
from reef.client import Client
from reef.errors import InvalidInput
from reef.paths import Paths


def promote(
    version: VersionArgument, scenario_name: ScenarioOption = None, yes: YesOption = False, json: JsonOption = False
) -> None:
    """Make a pending version the head.

    Only a version that waits for your yes is promoted; an older one comes back with `reef versions rollback`. It shows
    what changes and asks. Whoever moved the head meanwhile is named, and then nothing changes.
    """
    _decide("promote", version, scenario_name, yes, json)


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
        wanted = existing(rows, name, version)
        if verb == "promote":
            _must_be_pending(row_of(rows, wanted), name)
        if not yes:
            show_change(client, name, head, wanted)
        question = f"{verb} v{wanted} of scenario {name}, now v{head}?"
        output.agree(question, yes, f"reef versions {verb} v{wanted} --yes")
        done = (client.promote if verb == "promote" else client.rollback)(name, wanted, head)
        kept = client.pins(name)["pins"]
    if json:
        output.json_value(done)
        return
    what = "promoted" if verb == "promote" else "rolled back to"
    output.data(OUT.joined(f"{what} v{wanted}", f"scenario {name} is now v{done['version']}"))
    if kept:
        stays = ", ".join(f"v{pin['version']}" for pin in kept)
        output.say(f"what is installed stays at {stays} (pinned); to follow the head: reef versions unpin -s {name}")
    else:
        output.say(f"{ERR.paint('next', 'dim')}   reef versions install v{done['version']} -s {name}")
    output.say(f"{ERR.paint('undo', 'dim')}   reef versions rollback v{head} -s {name}")


def _must_be_pending(row: Json, name: str) -> None:
    if row.get("pending"):
        return
    version = f"v{row['version']}"
    if row.get("current"):
        raise InvalidInput(f"{version} of scenario {name} is served already", f"reef versions list -s {name}")
    raise InvalidInput(
        f"{version} of scenario {name} is not pending, and only a pending version is promoted",
        f"reef versions rollback {version} -s {name}",
    )


def show_change(client: Client, name: str, head: int | None, wanted: int) -> None:
    """What a version changes in what is served, on stderr."""
    if head is None or head == wanted:
        return
    output.say(f"v{head} {ERR.symbol('→')} v{wanted}")
    for line in lines_of(client.diff(name, f"v{head}", f"v{wanted}"), ERR):
        output.say(line)
