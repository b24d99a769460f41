"""What commands load: a screen, a model library or the daemon's own rooms are never part of a plain command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Live

NEVER = {"textual", "litellm", "torch", "transformers", "aiohttp", "git", "sqlite_utils", "xllamacpp"}
ROOMS = ("daemon", "engines", "gateway", "learning", "evaluation", "harness", "versions", "sandbox", "tui", "training")
PROBE = (
    "import json, sys\n"
    "from reef.cli.app import main\n"
    "status = main()\n"
    "sys.stderr.write('\\n' + json.dumps([status, sorted(sys.modules)]))\n"
)


def loaded(*arguments: str, env: dict[str, str]) -> tuple[int, set[str]]:
    """The status of a command and the modules that its process had at the end."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, env={**os.environ, **env}, timeout=60
    )
    status, modules = json.loads(done.stderr.splitlines()[-1])
    return status, set(modules)


@pytest.mark.parametrize(
    "command",
    [("--help",), ("status",), ("status", "--json"), ("records", "list"), ("versions", "list"), ("paths",), ("logs",)],
    ids=" ".join,
)
def test_a_plain_command_loads_nothing_heavy_and_no_room(command: tuple[str, ...], live: Live) -> None:
    status, modules = loaded(*command, env=live.env)
    assert status == 0
    assert not NEVER & {name.partition(".")[0] for name in modules}
    assert not [name for name in modules if name.startswith(tuple(f"reef.{room}" for room in ROOMS))]


def test_the_top_help_loads_only_the_table_and_the_printer() -> None:
    _, modules = loaded("--help", env={})
    own = {name for name in modules if name.startswith("reef")}
    assert own == {"reef", "reef.cli", "reef.cli.app", "reef.cli.output", "reef.cli.table"}
    assert not {"typer", "rich", "httpx", "pydantic", "yaml", "dataclasses"} & modules


def test_status_loads_neither_typer_nor_settings(live: Live) -> None:
    _, modules = loaded("status", env=live.env)
    assert not {"typer", "pydantic", "yaml", "reef.config"} & modules


def test_the_line_for_a_status_line_loads_neither_typer_nor_http_nor_settings(live: Live) -> None:
    status, modules = loaded("usage", "--line", env=live.env)
    assert status == 0
    assert not {"typer", "httpx", "pydantic", "yaml", "asyncio", "reef.config"} & modules


def test_only_one_module_of_the_command_line_prints() -> None:
    folder = Path(__file__).parents[2] / "reef" / "cli"
    ways = ("print(", "stdout.write", "stderr.write", "typer.echo", "typer.confirm", "import rich", "from rich")
    printing = {file.name for file in folder.glob("*.py") if any(way in file.read_text() for way in ways)}
    assert printing == {"output.py"}
