"""`reef paths`: where things are."""

from __future__ import annotations

from reef.cli import output
from reef.cli.group import JsonOption, command, single
from reef.paths import Paths

app = single()


@command(app, examples=("reef paths", "reef paths --json | jq -r .database"))
def paths(json: JsonOption = False) -> None:
    """Show where reef keeps its files.

    REEF_HOME puts everything in one folder; without it the XDG folders are used. Nothing is written into a project and
    nothing outside these places, but for the commands that are linked into the `bin` folder.
    """
    places = Paths.from_environ()
    found = {
        "config": places.config_file,
        "data": places.data,
        "state": places.state,
        "cache": places.cache,
        "bin": places.bin,
        "database": places.database,
        "versions": places.versions_git,
        "harness": places.harness,
        "agents": places.agents,
        "models": places.models,
        "steps": places.steps,
        "log": places.daemon_log,
    }
    if json:
        output.json_value({name: str(path) for name, path in found.items()})
        return
    for name, path in found.items():
        output.data(f"{name:<9} {path}")
