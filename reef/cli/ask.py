"""`reef ask`: say in plain words what should change."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Any

import typer

from reef.cli import output, watch
from reef.cli.group import JsonOption, ScenarioOption, command, single
from reef.cli.look import ERR, OUT
from reef.cli.scope import daemon, scenario
from reef.errors import InvalidInput, UsageError
from reef.paths import Paths

app = single()

KINDS = ("permission", "env", "service", "binary")
_REQUIREMENT = re.compile(rf"({'|'.join(KINDS)}):([^=]+)(?:=(.+))?\Z", re.S)


@command(
    app,
    examples=(
        'reef ask "when I ask you to fix a bug, reproduce it with a failing test first" --wait',
        'reef ask "open the pull request when the tests pass" --requires env:GITHUB_TOKEN --requires binary:gh',
    ),
)
def ask(
    text: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="What should change, 1 to 4000 characters; `-` reads stdin.")
    ],
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Follow it until it is settled.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1, help="How long --wait waits.")
    ] = 1800,
    requires: Annotated[
        list[str] | None,
        typer.Option("--requires", metavar="KIND:NAME[=CHECK]", help=f"What it needs of you: {', '.join(KINDS)}."),
    ] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Ask in plain words for a change.

    The ask is queued for one step of the scenario. With --wait the exit status is 0 when it was published or waits for
    your yes, 1 when it was rejected, skipped or failed, 2 when it was not settled in time. Do not write a key into it.
    """
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    words = sys.stdin.read().strip() if text == ["-"] else " ".join(text)
    if not words.strip():
        raise InvalidInput("the ask is empty", 'reef ask "when I ask you to …"')
    needs = [requirement(item) for item in requires or []]
    with daemon(paths) as client:
        queued = client.train(name, words, session=os.environ.get("REEF_SESSION_ID"), requires=needs or None)
        if not json:
            output.data(f"ask #{queued.get('number')} {OUT.id(queued['agent_record_id'])} queued for scenario {name}")
        if not wait:
            if json:
                output.json_value(queued)
            else:
                output.say(f"{ERR.paint('next', 'dim')}   reef asks watch {queued.get('number')} -s {name}")
            return
        now, status = watch.follow(client, queued["agent_record_id"], timeout, name)
    finish(now, status, name, json)


def finish(now: dict[str, Any], status: int, name: str, json: bool) -> None:
    """Print the outcome of a followed ask and end with its status."""
    if json:
        output.json_value(now)
    elif status == 2:
        output.say(f"not settled in time; it goes on: reef asks watch {now.get('number')} -s {name}")
    else:
        watch.outcome(now, name)
    raise typer.Exit(status)


def requirement(text: str) -> dict[str, str]:
    """`env:NAME`, `binary:gh`, `service:db=http://…` as the object of the protocol. Raises UsageError."""
    match = _REQUIREMENT.match(text)
    if match is None:
        raise UsageError(f"{text!r} is not KIND:NAME (kinds: {', '.join(KINDS)})", "reef ask --help")
    found = {"kind": match.group(1), "name": match.group(2)}
    return found | ({"check": match.group(3)} if match.group(3) else {})
