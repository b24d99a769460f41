"""When a second start wants the daemon that runs, and when it wants another."""

from __future__ import annotations

import pytest

from reef.config import load
from reef.daemon.lock import differences, serving_facts
from reef.paths import Paths

EMBEDDED = [("inference.backend", "embedded")]
OLLAMA = [("inference.upstream-url", "http://127.0.0.1:11434"), ("inference.upstream-model", "qwen3")]


@pytest.mark.parametrize("asked", [EMBEDDED, []], ids=["embedded", "nothing"])
@pytest.mark.parametrize("started", [EMBEDDED, []], ids=["embedded", "nothing"])
def test_the_embedded_model_is_the_same_named_or_chosen(
    started: list[tuple[str, str]], asked: list[tuple[str, str]], paths: Paths
) -> None:
    running = {"port": 8900, "facts": serving_facts(load(started, paths=paths), "embedded")}
    assert differences(running, serving_facts(load(asked, paths=paths))) == []


def test_what_a_named_model_server_differs_in_is_said_in_words(paths: Paths) -> None:
    running = {"port": 8900, "facts": serving_facts(load(OLLAMA, paths=paths), "upstream")}
    assert differences(running, serving_facts(load([], paths=paths))) == [
        "upstream (running: http://127.0.0.1:11434, asked for: none named)",
        "model (running: qwen3, asked for: none named)",
    ]
