"""reef's own agent on reef's own model: a whole daemon, nothing else on the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from reef.engines import weights
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree
from tests.http.running import Home

pytestmark = [pytest.mark.network, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon whose engine is the embedded model, with the agent installed."""
    folder = tmp_path_factory.mktemp("native")
    stored = weights.fetch_here(tmp_path_factory.getbasetemp().parent / "reef-weights", lambda *_: None)
    home = Home(folder, "", flags=[["inference.backend", "embedded"], ["reef.port", "0"]], environ={"CI": "true"})
    home.paths.models.mkdir(parents=True)
    os.link(stored, weights.model_file(home.paths))
    home.process = home.launch(base=False)
    home.wait_up(home.process)
    # A model of this size may say the same until its answer is cut.
    files = {"rules.md": b"be brief\n", "settings.json": b'{"reply_tokens": 16}\n'}
    install_tree(home.paths, "default", load_adapter("native", home.paths), 1, files, "r1", "c1")
    yield home
    home.close()


def run(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`reef-native` in this home."""
    words = [sys.executable, "-P", "-m", "reef.harness.wrapper", "native", *arguments]
    return subprocess.run(
        words, cwd=home.folder, env=home.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )


def test_it_answers_within_the_models_window(embedded: Home) -> None:
    done = run(embedded, "--json", "-p", "Say hello.")
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(event["type"] == "reply" for event in events)
    record = embedded.person.get("/reef/records").json()["records"][-1]
    assert (record["adapter"], record["state"]) == ("native", "complete")
    # System prompt, four tools and one line: what is left of 8,192 tokens is for the work.
    assert record["prompt_tokens"] < 1500


def test_what_does_not_fit_the_window_is_said_in_one_line(embedded: Home) -> None:
    done = run(embedded, "-p", "word " * 12_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: request needs about 12,") and ", the model has 8,192\n" in done.stderr


def test_a_session_that_has_grown_past_the_window_goes_on(embedded: Home) -> None:
    assert run(embedded, "-p", "Say hello.").returncode == 0
    (file,) = [place for place in embedded.folder.rglob("sessions/*.jsonl") if "Say hello." in place.read_text()][-1:]
    name = json.loads(file.read_text().splitlines()[0])["id"]
    # A result of many more tokens than its length tells.
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    long = [
        {"role": "user", "content": "count"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": " ".join(map(str, range(10_000, 11_700)))},
        {"role": "assistant", "content": "done"},
    ]
    with file.open("a") as lines:
        lines.writelines(json.dumps({"type": "message", "at": None, "message": message}) + "\n" for message in long)
    done = run(embedded, "--session", name, "-p", "Say goodbye.")
    assert done.returncode == 0, done.stderr
    assert embedded.person.get("/reef/records").json()["records"][0]["prompt_tokens"] < 8192
