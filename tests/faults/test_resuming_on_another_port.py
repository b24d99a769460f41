"""B68 and B69: what an agent is pointed at is asked for at every start, and nothing old is frozen anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reef.harness.adapter import load_adapter
from reef.harness.agents import agent_folder
from tests.faults.wrapped import AGENTS, contents, furnish, got, run
from tests.http.running import Home


@pytest.fixture(scope="module")
def moved(home: Home) -> tuple[Home, dict[str, dict[str, object]], int]:
    """A home whose agents have run once, and whose daemon has another port and another model since."""
    furnish(home)
    ran = {name: got(home, name, "--continue") for name in AGENTS}
    port = urlsplit(home.url).port
    assert port is not None
    home.stop()
    home.start(["inference.upstream-model", "model-two"])
    assert urlsplit(home.url).port != port
    return home, ran, port


@pytest.mark.parametrize("name", AGENTS)
def test_a_replayed_command_line_is_good_after_the_daemon_moved_to_another_port(
    moved: tuple[Home, dict[str, dict[str, object]], int], name: str
) -> None:
    home, ran, port = moved
    first = ran[name]["argv"]
    assert isinstance(first, list)
    again = got(home, name, "--continue")
    assert again["argv"] == first
    named = [Path(word) for word in first if word.startswith("/")]
    assert [place for place in named if not place.exists()] == []
    assert str(port) not in " ".join(first)
    kept = contents(home.paths.harness / "default" / name)
    assert [path for path, text in kept.items() if f":{port}" in text] == []


@pytest.mark.parametrize("name", AGENTS)
def test_the_model_that_is_served_now_is_the_one_that_the_agent_is_given(
    moved: tuple[Home, dict[str, dict[str, object]], int], name: str
) -> None:
    home, _, _ = moved
    environ = got(home, name, "-p", "hi")["env"]
    texts = [*contents(home.paths.harness / "default" / name).values(), *environ.values()]
    assert any("model-two" in text for text in texts)
    assert not any("fake-model" in text for text in texts)


def test_an_older_version_of_the_agent_is_named_with_the_one_that_is_needed(new_home: Callable[..., Home]) -> None:
    home = furnish(new_home().start())
    pi = load_adapter("pi", home.paths)
    assert pi.install is not None
    agent_folder(pi, home.paths).rename(agent_folder(pi, home.paths).with_name("0.73.0"))
    done = run(home, "pi", "-p", "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"pi {pi.install.version} is not installed; 0.73.0 is there" in done.stderr
    assert "hint: reef agents add pi" in done.stderr
    facts = json.loads((home.paths.harness / "default" / "pi" / "install.json").read_text())
    assert facts["version"] == 1
