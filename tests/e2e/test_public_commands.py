"""The public commands as they are written down, against a model server that decides from request bytes alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.home import Home, requests_of, until

pytestmark = [pytest.mark.network, pytest.mark.timeout(300)]

ASK = "when I ask you to fix a bug, reproduce it with a failing test first"
CREATE = (
    'curl -fsS -H "Content-Type: application/json" -d \'{"name": "my-harness"}\' http://127.0.0.1:8901/reef/scenarios'
)
INSTALL = "curl -fsS -H \"x-reef-scenario: my-harness\" 'http://127.0.0.1:8901/reef/harness/install?adapter=pi' | bash"


def system_text(request: dict[str, object]) -> str:
    """Everything that a chat request says before the conversation."""
    messages = request["messages"]
    assert isinstance(messages, list)
    return "\n".join(json.dumps(message) for message in messages if message["role"] in ("system", "developer"))


@pytest.mark.parametrize("port", ["", "--reef.port 8901"])
def test_the_public_commands_end_published_and_in_the_next_request(home: Home, port: str) -> None:
    url, log = home.fake_upstream()
    before = home.checksums()
    home.daemon(f"--recipe reefine --inference.upstream-url {url} --inference.upstream-model fake-model {port}")
    created = json.loads(home.ok(CREATE))
    assert created["scenario"] == "my-harness"
    home.ok(INSTALL)
    home.ok(f'reef-pi evolve "{ASK}" --wait')
    versions = home.json("reef versions list")
    assert [(row["version"], row["state"]) for row in versions] == [(2, "published"), (1, "published")]
    home.ok("reef versions install --yes")
    home.ok('reef-pi -p "hi"')
    last = requests_of(log)[-1]
    assert ASK in system_text(last)
    assert home.checksums() == before
    strange = {path.name for path in home.folder.iterdir()} - {".local", ".config", ".cache", "project"}
    assert {name for name in strange if name not in {Path(own).parts[0] for own in before}} == set()
    assert not (home.folder / ".npm").exists()


def test_the_step_that_published_says_how_it_was_checked(home: Home) -> None:
    url, _ = home.fake_upstream()
    home.daemon(f"--recipe reefine --inference.upstream-url {url} --inference.upstream-model fake-model")
    home.ok(CREATE)
    home.ok(f'reef ask "{ASK}" --wait -s my-harness')
    (step,) = home.json("reef steps list -s my-harness")
    assert (step["state"], step["version"], step["proposer"]) == ("published", 2, "model")
    groups = {group["name"]: group["status"] for group in step["evaluation"]["groups"]}
    assert groups["reach"] == "pass"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_model_that_is_too_small_is_refused_with_the_reason_or_publishes(home: Home) -> None:
    worker, output = home.start("reef serve --model embedded --reef.port 8950")
    until(lambda: True if "8950" in home.sh("reef status").stdout else None, "the engine", output.read_text, 60)
    inner = "http://127.0.0.1:8950"
    outer = home.folder.parent / "outer"
    outer.mkdir()
    (outer / "data").mkdir(parents=True)
    (outer / "data" / "agents").symlink_to(home.data / "agents")
    env = {"REEF_HOME": str(outer)}
    flags = f"--recipe reefine --inference.upstream-url {inner} --inference.upstream-model SmolLM2-135M-Instruct"
    daemon, said = home.start(f"reef serve {flags} --harness.proposer model", **env)
    until(lambda: True if home.sh("reef status", **env).returncode == 0 else None, "the daemon", said.read_text, 60)
    home.ok(CREATE)
    home.ok(INSTALL, **env)
    ran = home.sh(f'reef-pi evolve "{ASK}" --wait', timeout=480, **env)
    (step,) = home.json("reef steps list -s my-harness", **env)
    assert (ran.returncode, step["state"]) in [(0, "published"), (1, "rejected"), (1, "skipped")]
    if ran.returncode:
        assert step["reason"]
        assert step["reason"] in ran.stdout + ran.stderr
    home.sh("reef down --now", **env)
    home.room.wait(daemon)
    home.sh("reef down --now")
    home.room.wait(worker)
