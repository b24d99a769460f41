"""`reef versions try`: one session of an agent with one version, beside what is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Annotated

import typer

from reef.cli import installing, output
from reef.cli.group import ScenarioOption, YesOption
from reef.cli.look import ERR
from reef.cli.scope import daemon, head_of, person_only, scenario, versions_of
from reef.cli.version_rows import AdapterOption, Rows, VersionArgument, existing, row_of
from reef.cli.versions_decide import show_change
from reef.client import Client
from reef.errors import InvalidInput
from reef.paths import Paths

AgentArguments = Annotated[
    list[str] | None, typer.Argument(metavar="-- ARGUMENTS", help="What the agent is started with.")
]


def try_version(
    version: VersionArgument,
    arguments: AgentArguments = None,
    adapter: AdapterOption = None,
    scenario_name: ScenarioOption = None,
    yes: YesOption = False,
) -> None:
    """Run the agent with a version for one session.

    The version gets a place of its own, which is gone afterwards: what is installed and what is pinned stay as they
    are. One that waits for your yes is shown first, and the yes is for this session and this version alone. What
    follows `--` goes to the agent.
    """
    person_only("try a version")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name)
    with daemon(paths) as client:
        rows = versions_of(client, name)
        number = existing(rows, name, version)
        agent = installing.adapter_of(client, name, adapter)
        command = trial(client, name, rows, number, agent, yes)
    output.flush()
    os.execv(command[0], [*command, *(arguments or [])])


def trial(client: Client, name: str, rows: Rows, number: int, agent: str, yes: bool) -> list[str]:
    """The command that runs one session with a version. Installs the agent's program where it is not there.

    A pending version is shown and needs the person's yes, which is for its release id alone.
    """
    found = row_of(rows, number)
    if found["state"] not in ("published", "pending"):
        raise InvalidInput(f"v{number} is {found['state']} and cannot be tried", f"reef versions list -s {name}")
    if found["pending"]:
        show_change(client, name, head_of(rows), number)
        output.say(f"v{number} adds or changes code that runs with your rights")
        output.agree(
            f"run v{number} of scenario {name} for one session?", yes, f"reef versions try v{number} -s {name} --yes"
        )
    for row in client.adapters()["adapters"]:
        if row["name"] == agent and row["install"] and not row["installed"]:
            installing.run(client.install_agent(agent), agent)
    output.say(ERR.paint(f"v{number} of scenario {name} for {agent}, for this session", "dim"))
    return [sys.executable, "-P", "-m", "reef.harness.wrapper_trial", agent, name, str(found["release_id"])]


def run(command: list[str]) -> int:
    """Run a trial and come back. Returns the agent's exit status."""
    output.flush()
    return subprocess.run(command, check=False).returncode
