"""`reef down`: stop the daemon of this home."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import command, single
from reef.cli.look import counted
from reef.cli.scope import person_only
from reef.client import Client, read_discovery, running, wait_stopped
from reef.config import load
from reef.errors import Failed, ReefError
from reef.paths import Paths

app = single()
_SPARE_S = 15.0
_STARTING_S = 2.0


@command(app, examples=("reef down", "reef down --now"))
def down(now: Annotated[bool, typer.Option("--now", help="Cut running calls at once.")] = False) -> None:
    """Stop the daemon.

    Running calls get 30 seconds (`daemon.stop-timeout`), then they end with an error in their own dialect and their
    records are `partial`. A second `reef down` cuts them at once. Records, versions and sessions stay.
    """
    person_only("stop the daemon")
    output.data(stop(Paths.from_environ(), now))


def stop(paths: Paths, now: bool) -> str:
    """Stop the daemon of this home and wait for it. Returns what there is to say."""
    found = running(paths)
    if found is None:
        return _not_answering(paths)
    patience = _SPARE_S if now else load(paths=paths).settings.daemon.stop_timeout + _SPARE_S
    with Client(found, paths) as client:
        calls = _running_calls(client)
        client.stop(now)
    try:
        if calls and not now:
            output.say(f"waiting for {counted(calls, 'running call')}; a second `reef down` cuts them")
        stopped = wait_stopped(found, paths, patience)
    except KeyboardInterrupt:
        output.say("the daemon goes on stopping; `reef down --now` cuts what still runs")
        raise
    if not stopped:
        raise Failed(f"the daemon (pid {found['pid']}) still runs after {patience:.0f} s", f"kill {found['pid']}")
    return "daemon stopped"


def _not_answering(paths: Paths) -> str:
    found = read_discovery(paths)
    if found is not None and not wait_stopped(found, paths, _STARTING_S):
        pid = found.get("pid")
        raise Failed(f"the daemon (pid {pid}) holds its lock and does not answer", f"kill {pid}")
    return "the daemon is not running"


def _running_calls(client: Client) -> int:
    try:
        status: dict[str, Any] = client.status()
    except ReefError:
        # A daemon of another version is stopped all the same.
        return 0
    return int(status.get("records", {}).get("open") or 0)
