"""What the wrapper hands the agent, and what it says when it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reef.harness.adapter import load_adapter
from reef.harness.install import Install, install_tree
from reef.harness.wrapper import agent_environment
from reef.paths import Paths
from tests.fakes.agent_place import place_fake_agent

PI = load_adapter("pi")


@pytest.fixture
def made(paths: Paths) -> Install:
    return install_tree(paths, "coding", PI, 2, {"AGENTS.md": b"be brief\n"}, "r2", "c2").install


@pytest.fixture
def agent(paths: Paths) -> Path:
    """A program in pi's place that says what it was given."""
    return place_fake_agent(PI, paths)


def wrapper(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "reef.harness.wrapper", "pi", *arguments],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


def test_the_agent_sees_one_address_and_one_token_reefs(made: Install, paths: Paths) -> None:
    foreign = {
        "ANTHROPIC_API_KEY": "k1",
        "ANTHROPIC_AUTH_TOKEN": "k2",
        "ANTHROPIC_BASE_URL": "http://elsewhere",
        "OPENAI_API_KEY": "k3",
        "OPENAI_BASE_URL": "http://elsewhere",
        "GEMINI_API_KEY": "k4",
        "AZURE_OPENAI_API_KEY": "k5",
        "CLAUDE_CODE_OAUTH_TOKEN": "k6",
        "ANYTHING_BASE_URL": "http://elsewhere",
        "REEF_TOKEN": "k7",
        "REEF_UPSTREAM_API_KEY": "k8",
        "REEF_UPSTREAM_URL": "http://elsewhere",
        "PI_CODING_AGENT_DIR": "/people/me/.pi/agent",
        "PI_CODING_AGENT_SESSION_DIR": "/people/me/.pi/agent/sessions",
    }
    mine = {"PATH": "/bin", "EDITOR": "vi", "STRIPE_API_KEY": "of my project", "REEF_HOME": str(paths.home)}
    session = {"session": "0" * 32, "token": "reef-token"}
    found = agent_environment(
        foreign | mine, PI, made, {PI.home_variable: str(made.home)}, "http://127.0.0.1:8900", session
    )
    assert {name: found[name] for name in mine} == mine
    assert not set(foreign) - {"PI_CODING_AGENT_DIR"} & set(found)
    assert not [value for value in found.values() if value.startswith("k") and value[1:].isdigit()]
    assert found["PI_CODING_AGENT_DIR"] == str(made.home)
    assert (found["REEF_URL"], found["REEF_SESSION"]) == ("http://127.0.0.1:8900", "reef-token")
    assert (found["REEF_SCENARIO"], found["REEF_VERSION"], found["REEF_RELEASE"]) == ("coding", "v2", "r2")


def test_a_switch_of_the_persons_shell_wins_over_the_adapters(made: Install) -> None:
    session = {"session": "0" * 32, "token": "t"}
    found = agent_environment({"PI_OFFLINE": "0"}, PI, made, {PI.home_variable: str(made.home)}, "http://u", session)
    assert (found["PI_OFFLINE"], found["PI_TELEMETRY"]) == ("0", "0")


def test_no_proxy_of_the_persons_shell_comes_between_the_agent_and_the_daemon(made: Install) -> None:
    session = {"session": "0" * 32, "token": "t"}
    proxies = {"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}
    here = "127.0.0.1,localhost,::1"

    def excepted(url: str = "http://127.0.0.1:8900", **own: str) -> tuple[str, str]:
        found = agent_environment(proxies | own, PI, made, {PI.home_variable: str(made.home)}, url, session)
        assert found["HTTP_PROXY"] == "http://p:1"
        return found["NO_PROXY"], found["no_proxy"]

    assert excepted() == (here, here)
    assert excepted("http://10.0.0.7:8900") == (f"{here},10.0.0.7",) * 2
    assert excepted(NO_PROXY=".corp.example, localhost") == (".corp.example,localhost,127.0.0.1,::1",) * 2
    assert excepted(NO_PROXY="a.example", no_proxy="b.example") == (f"a.example,{here}", f"b.example,{here}")
    assert excepted(no_proxy="*") == ("*", "*")


def test_what_the_wrapper_script_set_is_taken_back(made: Install) -> None:
    environ = {"XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/mine", "REEF_WRAPPER_SET": " XDG_DATA_HOME"}
    session = {"session": "0" * 32, "token": "t"}
    found = agent_environment(environ, PI, made, {PI.home_variable: str(made.home)}, "http://u", session)
    assert "XDG_DATA_HOME" not in found and "REEF_WRAPPER_SET" not in found
    assert found["XDG_CONFIG_HOME"] == "/mine"


def test_without_a_daemon_it_is_one_line_and_the_command_that_helps(made: Install, agent: Path) -> None:
    done = wrapper("-p", "hi", REEF_AUTOSTART="false")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "error: the daemon is not running\nhint: reef up\n"


def test_a_tree_that_was_changed_is_refused_before_anything_else(made: Install, agent: Path) -> None:
    (made.tree / "AGENTS.md").write_text("be loud\n")
    done = wrapper("-p", "hi", REEF_AUTOSTART="false")
    assert (done.returncode, done.stdout) == (5, "")
    assert f"error: {made.tree / 'AGENTS.md'} was changed after the install\n" in done.stderr


def test_the_name_of_a_planted_file_gives_the_terminal_no_orders(made: Install, agent: Path) -> None:
    (made.tree / "\x1b[2Jx\nhint: touch owned").write_text("x")
    refused = wrapper()
    assert refused.returncode == 5 and "\x1b" not in refused.stderr and "was added" in refused.stderr
    hints = [line for line in refused.stderr.splitlines() if line.startswith("hint: ")]
    assert hints == ["hint: reef versions install v2 --adapter pi --scenario coding"]


def test_a_scenario_that_is_not_installed_is_named(made: Install, agent: Path) -> None:
    done = wrapper("-p", "hi", REEF_SCENARIO="other")
    assert done.returncode == 1
    assert "no harness of scenario other is installed for pi" in done.stderr


def test_an_agent_that_is_not_installed_is_named_with_the_command(made: Install) -> None:
    done = wrapper("-p", "hi")
    assert (done.returncode, done.stderr) == (1, "error: pi 1.6.0 is not installed\nhint: reef agents add pi\n")


def test_an_unknown_adapter_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "reef.harness.wrapper", "vi"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no adapter 'vi'" in done.stderr


def test_help_lists_reefs_own_words() -> None:
    done = wrapper("help")
    assert done.returncode == 0
    for word in ("evolve", "wait", "update", "versions", "good", "bad", "report"):
        assert f"  {word} " in done.stdout


def test_a_word_of_reefs_own_becomes_the_reef_command(made: Install) -> None:
    done = wrapper("evolve", "--help")
    assert done.returncode == 0
    assert "--wait" in done.stdout and "Ask in plain words" in done.stdout


def test_the_persons_own_folders_are_handed_on_for_the_shell_of_an_agent_whose_own_are_moved(
    made: Install, paths: Paths
) -> None:
    opencode = load_adapter("opencode")
    moved = dict.fromkeys(opencode.home.variables, "/reefs")
    session = {"session": "0" * 32, "token": "reef-token"}
    found = agent_environment({"XDG_CONFIG_HOME": "/mine"}, opencode, made, moved, "http://127.0.0.1:8900", session)
    assert (found["XDG_CONFIG_HOME"], found["REEF_SHELL_XDG_CONFIG_HOME"]) == ("/reefs", "/mine")
    # An empty one counts as one that is not set.
    assert (found["XDG_DATA_HOME"], found["REEF_SHELL_XDG_DATA_HOME"]) == ("/reefs", "")
