"""`reef serve`: the daemon in the foreground. It is a program of its own, and this process becomes it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from reef import __version__
from reef.cli import output
from reef.cli.flags import Wanted, understand
from reef.cli.group import command, single
from reef.cli.look import OUT
from reef.config import Resolved
from reef.paths import Paths
from reef.text import safe

app = single()

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="FILE", help="Deployment file, read over config.yaml.")
]
RecipeOption = Annotated[str | None, typer.Option("--recipe", metavar="NAME", help="How new scenarios learn.")]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="embedded, ollama/ID, openai/ID, bedrock/ID … (`reef help providers`) or a model id.",
    ),
]
PrintOption = Annotated[bool, typer.Option("--print-config", help="Print each setting and its origin, and stop.")]


@command(
    app,
    examples=(
        "reef serve --recipe reefine --inference.upstream-url http://127.0.0.1:11434 --inference.upstream-model qwen3",
        "reef serve -c reef.yaml --reef.port 8901 --no-reef.allow-implicit-scenario-creation",
    ),
    free=True,
    usage="[--KEY VALUE]…",
)
def serve(
    context: typer.Context,
    config: ConfigOption = None,
    recipe: RecipeOption = None,
    model: ModelOption = None,
    print_config: PrintOption = False,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and stop.")] = False,
) -> None:
    """Run the daemon in the foreground.

    Every setting is a flag: `--reef.port 8901` or `--reef.port=8901`; what is on or off also as `--no-KEY`. Ctrl-C
    gives running calls 30 seconds; a second one cuts them. While this home's daemon runs already with the same settings
    it says so and ends with 0.
    """
    if version:
        output.data(f"reef {__version__}")
        return
    paths = Paths.from_environ()
    wanted = understand(paths, context.args, config, recipe, model)
    if print_config:
        show_settings(wanted.resolved)
        return
    become_daemon(wanted)


def become_daemon(wanted: Wanted) -> None:
    """Replace this process by the daemon."""
    output.flush()
    environment = os.environ | {"REEF_SERVE": json.dumps(wanted.to_serve() | {"foreground": True})}
    # -P: a folder named `reef` where the person happens to be must not be taken for the package.
    os.execve(sys.executable, [sys.executable, "-P", "-m", "reef.daemon"], environment)


def show_settings(resolved: Resolved, as_json: bool = False) -> None:
    """Print every setting with its origin, and which files were read; secrets as set or unset."""
    rows = resolved.describe()
    files = [str(path) for path in resolved.files]
    if as_json:
        output.json_value({"files": files, "settings": rows})
        return
    cells = [[row["key"], safe(_text(row["value"])), safe(row["origin"])] for row in rows]
    for line in OUT.table(["setting", "value", "origin"], cells):
        output.data(line)
    read = ", then ".join(files) if files else f"none ({Paths.from_environ().config_file} is not there)"
    output.say(f"files read: {read}")


def _text(value: Any) -> str:
    if value is None:
        return OUT.symbol("–")
    return value if isinstance(value, str) else json.dumps(value)
