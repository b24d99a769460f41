"""The README's own commands, in its order, by somebody who knows nothing else."""

from __future__ import annotations

import re
import sys

import pytest

from tests.e2e.home import Home, requests_of, until
from tests.e2e.room import ROOT

pytestmark = [pytest.mark.network, pytest.mark.timeout(300)]

NEEDS_A_TERMINAL = {
    "reef-pi": 'reef-pi -p "hi"',
    "reef tui": "",
    "reef versions rollback v1": "reef versions rollback v1 --yes",
}
"""What runs where no person is there to type or to say yes; the terminal view has tests of its own."""


def typed() -> list[str]:
    """The lines after `$ ` of every console block, without those that install or remove reef."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line[2:].strip() for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [NEEDS_A_TERMINAL.get(line, line) for line in lines if not line.startswith("./install.sh")]


def test_the_commands_of_the_readme_run_in_their_order(home: Home) -> None:
    # Where the README's reader has Ollama, this room has the scripted model server on Ollama's port.
    log = home.upstream_log
    log.touch()
    fake = f"{sys.executable} -m tests.fakes.openai_server --port 11434 --log {log}"
    _, output = home.start(fake, PYTHONPATH=str(ROOT))
    until(lambda: True if "listening" in output.read_text() else None, "the model server", output.read_text)
    home.ok("reef up")
    said = {}
    for line in typed():
        if "RECEIPT" in line:
            (newest, *_) = home.json("reef records list")
            line = line.replace("RECEIPT", newest["agent_record_id"])
        said[line] = home.ok(line) if line else ""
    assert any(line.startswith("reef-pi evolve") for line in said)
    assert "reproduce it with a failing test first" in said["reef versions diff"]
    proposed, answered = requests_of(log)[0], requests_of(log)[-1]
    assert "entries" in str(proposed["messages"][0])
    assert "reproduce it with a failing test first" in str(answered["messages"][0])
    assert "reproduce it with a failing test first" in next(
        text for line, text in said.items() if line.startswith("reef records show")
    )
    assert home.sh("reef status").returncode == 3
