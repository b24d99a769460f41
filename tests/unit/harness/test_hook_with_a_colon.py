"""The hook program for an agent that takes every slash for a command of its own."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from reef.harness import hook
from reef.harness.hook import Session


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A session whose daemon does not answer."""
    monkeypatch.setenv("REEF_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("REEF_SESSION", "x")
    monkeypatch.setenv("REEF_TREE", str(tmp_path / "install" / "tree"))


def answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], prompt: str, *more: str) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"prompt": prompt})))
    assert hook.main(["codex", "UserPromptSubmit", *more]) == 0
    said = capsys.readouterr().out
    return str(json.loads(said)["reason"]) if said else ""


def test_what_is_to_be_typed_is_said_as_the_agent_takes_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = answer(monkeypatch, capsys, "reefine:", "colon")
    assert usage == "usage: reefine: what should change, in plain words"
    assert answer(monkeypatch, capsys, "/reefine") == "usage: /reefine what should change, in plain words"
    assert Session(colon=True).typed("versions", "v3 install") == "versions: v3 install"


def test_a_prompt_that_only_begins_alike_goes_to_the_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for prompt in ("reefine the text", "what does reefine: do?", "versionsinstall: x"):
        assert answer(monkeypatch, capsys, prompt, "colon") == ""
    away = answer(monkeypatch, capsys, "reefine: never use tabs", "colon")
    assert away == "reef: the daemon is not running (reef up)"
