"""Flags of `reef serve` and `reef up`: every setting is one, and a wrong one is named with the nearest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reef.cli.flags import dotted, switch_keys
from reef.errors import UsageError
from reef.paths import Paths
from tests.cli.shell import reef


@pytest.mark.parametrize(
    ("typed", "pairs"),
    [
        (["--reef.port", "8901"], [("reef.port", "8901")]),
        (["--reef.port=8901"], [("reef.port", "8901")]),
        (["--inference.upstream_url=http://h/?a=b"], [("inference.upstream-url", "http://h/?a=b")]),
        (["--no-reef.allow-implicit-scenario-creation"], [("reef.allow-implicit-scenario-creation", "false")]),
        (["--daemon.autostart"], [("daemon.autostart", "true")]),
        (["--daemon.autostart", "off"], [("daemon.autostart", "off")]),
        (["--daemon.autostart", "--reef.port", "1"], [("daemon.autostart", "true"), ("reef.port", "1")]),
        (["--reef.tokens", '["a", "b"]'], [("reef.tokens", '["a", "b"]')]),
        (["--recipe.config.batch-size", "-4"], [("recipe.config.batch-size", "-4")]),
        (["--inference.upstream-model="], [("inference.upstream-model", "")]),
    ],
)
def test_a_dotted_flag_becomes_a_pair(typed: list[str], pairs: list[tuple[str, str]]) -> None:
    assert dotted(typed) == pairs


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["--reef.port"], "--reef.port needs a value"),
        (["--reef.port", "--reef.host", "::1"], "--reef.port needs a value"),
        (["--no-reef.port"], "on or off"),
        (["--no-daemon.autostart=true"], "on or off"),
        (["8901"], "'8901' is not expected here"),
        (["--port", "8901"], "there is no flag --port"),
    ],
)
def test_a_flag_that_says_nothing_is_refused(typed: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dotted(typed)


def test_switches_are_the_settings_that_are_on_or_off() -> None:
    assert {"daemon.autostart", "records.redact", "tui.ascii"} <= set(switch_keys())
    assert "reef.port" not in switch_keys()


@pytest.mark.parametrize("verb", ["serve", "up"])
@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        (("--reef.prot", "1"), "did you mean 'reef.port'?"),
        (("--recpie", "reefine"), "did you mean --recipe?"),
        (("--port", "1"), "did you mean --reef.port?"),
        (("--upstream-url", "x"), "did you mean --inference.upstream-url?"),
        (("--inference.upstream-ulr=x",), "did you mean 'inference.upstream-url'?"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_an_unknown_flag_ends_with_2_and_names_the_nearest(verb: str, flag: tuple[str, ...], hint: str) -> None:
    shown = reef(verb, *flag)
    assert (shown.status, shown.out) == (2, "")
    assert shown.err.endswith(f"hint: {hint}\n")


def test_a_value_of_the_wrong_type_ends_with_2() -> None:
    shown = reef("serve", "--reef.port", "many")
    assert shown.status == 2
    assert "reef.port" in shown.err


def test_print_config_shows_each_value_with_its_origin(tmp_path: Path, paths: Paths) -> None:
    paths.config_file.write_text("daemon:\n  autostart: false\n")
    deployment = tmp_path / "reef.yaml"
    deployment.write_text("reef:\n  port: 8905\n  token: very-secret\n")
    shown = reef(
        "serve", "-c", str(deployment), "--print-config", "--recipe", "reefine", "--inference.timeout-s", "5",
        env={"REEF_UPSTREAM_API_KEY": "sk-very-secret"},
    )  # fmt: skip
    assert shown.status == 0
    rows = {line.split()[0]: line.split(None, 2)[1:] for line in shown.out.splitlines()[1:]}
    assert rows["reef.port"] == ["8905", f"{deployment}:2"]
    assert rows["daemon.autostart"] == ["false", f"{paths.config_file}:2"]
    assert rows["inference.timeout-s"][1] == "flag"
    assert rows["recipe.implementation"] == ["reefine", "flag"]
    assert rows["reef.token"][0] == rows["inference.upstream-api-key"][0] == "set"
    assert "secret" not in shown.all
    assert f"files read: {paths.config_file}, then {deployment}" in shown.err


def test_the_profile_of_reefine_brings_port_8901() -> None:
    rows = {
        row["key"]: row
        for row in json.loads(reef("config", "show", "--json", env={"REEF_RECIPE": "harness-evolve"}).out)["settings"]
    }
    assert (rows["reef.port"]["value"], rows["reef.port"]["origin"]) == (8901, "profile reefine")
    assert rows["recipe.implementation"]["value"] == "reefine"


@pytest.mark.parametrize(
    ("text", "place"),
    [("reef:\n  prot: 1\n", "config.yaml:2"), ("reef:\n  port: many\n", "config.yaml:2"), ("reef: [\n", "config.yaml")],
)
def test_a_wrong_settings_file_is_named_with_its_line(text: str, place: str, paths: Paths) -> None:
    paths.config_file.write_text(text)
    shown = reef("config", "show")
    assert shown.status == 2
    assert place in shown.err


def test_serve_hands_its_settings_to_the_daemon_outside_the_command_line(tmp_path: Path) -> None:
    # A package of the same name in the working directory would be taken instead without -P.
    decoy = tmp_path / "reef"
    decoy.mkdir(exist_ok=True)
    (decoy / "__init__.py").write_text("raise SystemExit(77)")
    probe = (
        "import json, os, sys\n"
        "from pathlib import Path\n"
        "from reef.cli import serve\n"
        "from reef.cli.flags import understand\n"
        "from reef.paths import Paths\n"
        "os.execve = lambda program, words, env: print(json.dumps([words[1:], env['REEF_SERVE']]))\n"
        "wanted = understand(Paths.from_environ(), ['--reef.token=abc'], None, None, 'ollama/q')\n"
        "serve.become_daemon(wanted)\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd="/", timeout=60)
    words, serve = json.loads(done.stdout)
    assert words == ["-P", "-m", "reef.daemon"]
    assert json.loads(serve) == {
        "flags": [
            ["inference.upstream-url", "http://127.0.0.1:11434"],
            ["inference.upstream-model", "q"],
            ["reef.token", "abc"],
        ],
        "deployment": None,
        "foreground": True,
    }
