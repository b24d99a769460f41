"""A whole daemon with the embedded model behind it: real tokens, real usage, real records."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.engines import weights
from reef.records.reader import Reader
from tests.http.running import Home, wait_for
from tests.unit.gateway.serving import PATHS, asking

pytestmark = [pytest.mark.network, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon whose engine is the embedded model."""
    folder = tmp_path_factory.mktemp("embedded")
    stored = weights.fetch_here(tmp_path_factory.getbasetemp().parent / "reef-weights", lambda *_: None)
    home = Home(folder, "", flags=[["inference.backend", "embedded"], ["reef.port", "0"]], environ={"CI": "true"})
    home.paths.models.mkdir(parents=True)
    os.link(stored, weights.model_file(home.paths))
    home.process = home.launch(base=False)
    home.wait_up(home.process)
    yield home
    home.close()


def engine_state(home: Home) -> str:
    return str(home.nobody.get("/reef/status").json()["engine"]["state"])


def test_a_call_waits_for_the_model_and_is_answered(embedded: Home) -> None:
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 12}
    reply = embedded.nobody.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    assert reply.json()["choices"][0]["message"]["content"]
    row = Reader(embedded.paths.database).record(reply.headers["x-reef-agent-record-id"])
    assert (row["state"], row["engine"], row["model"]) == ("complete", "embedded", weights.SMOLLM2.name)
    assert row["completion_tokens"] == reply.json()["usage"]["completion_tokens"] > 0
    assert row["load_id"].endswith(":1")
    assert engine_state(embedded) == "ready"


def test_a_stream_ends_with_its_receipt(embedded: Home) -> None:
    body = {
        "model": "any",
        "messages": [{"role": "user", "content": "Count to five."}],
        "max_tokens": 24,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    with embedded.nobody.stream("POST", "/v1/chat/completions", json=body) as reply:
        assert reply.status_code == 200
        receipt = reply.headers["x-reef-agent-record-id"]
        lines = [line for line in reply.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert json.loads(lines[-2].removeprefix("data: "))["reef"] == {"agent_record_id": receipt}
    # The usage is the last chunk, so the receipt stands in it.
    texts = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    said = "".join((chunk["choices"][0]["delta"].get("content") or "") for chunk in texts if chunk["choices"])
    reader = Reader(embedded.paths.database)
    stored = json.loads(reader.response_bytes(receipt) or b"")
    assert stored["choices"][0]["message"]["content"] == said
    assert reader.record(receipt)["completion_tokens"] == texts[-1]["usage"]["completion_tokens"]


def test_the_other_dialects_are_the_models_own(embedded: Home) -> None:
    assert embedded.nobody.get("/reef/status").json()["engine"]["dialects"] == ["chat", "messages", "responses"]
    reader = Reader(embedded.paths.database)
    for dialect, last in (("responses", "response.completed"), ("messages", "message_stop")):
        limit = {"responses": {"max_output_tokens": 8}, "messages": {"max_tokens": 8}}[dialect]
        # The likeliest words: llama.cpp leaves `message_start`, and the count in it, out of a stream whose first token
        # is half of a character, as an emoji's is.
        body = asking(dialect, "Say hello.") | limit | {"temperature": 0}
        plain = embedded.nobody.post(PATHS[dialect], json=body)
        assert plain.status_code == 200, plain.text
        streamed = embedded.nobody.post(PATHS[dialect], json=body | {"stream": True})
        ending = json.loads([line for line in streamed.text.splitlines() if line.startswith("data:")][-1][5:])
        receipt = streamed.headers["x-reef-agent-record-id"]
        assert (ending["type"], ending["reef"]) == (last, {"agent_record_id": receipt})
        for found in (receipt, plain.headers["x-reef-agent-record-id"]):
            row = reader.record(found)
            assert (row["state"], row["dialect"]) == ("complete", dialect)
            assert row["prompt_tokens"] > 0 and row["completion_tokens"] > 0 and not row["prompt_cut"]
    counted = embedded.nobody.post(PATHS["count"], json=asking("count", "Say hello."))
    assert counted.json()["input_tokens"] == row["prompt_tokens"] and "x-reef-estimate" not in counted.headers
    reader.close()


def test_the_models_list_names_the_embedded_model(embedded: Home) -> None:
    listed = embedded.nobody.get("/v1/models").json()["data"]
    assert [item["id"] for item in listed] == [weights.SMOLLM2.name]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_a_prompt_over_the_window_is_refused_before_anything_is_generated(
    embedded: Home, dialect: str, stream: bool
) -> None:
    reply = embedded.nobody.post(PATHS[dialect], json=asking(dialect, "word " * 12_000, stream=stream))
    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/json")
    error = reply.json()["error"]
    assert re.fullmatch(r"request needs about 12,0\d\d tokens, the model has 8,192", error["message"])
    assert error["type"] == "invalid_request_error" and reply.json().get("type") == (
        "error" if dialect == "messages" else None
    )
    row = Reader(embedded.paths.database).record(reply.headers["x-reef-agent-record-id"])
    assert (row["state"], row["status"], row["error"]) == ("failed", 400, error["message"])


def test_what_else_the_model_refuses_goes_on_in_its_own_words(embedded: Home) -> None:
    reply = embedded.nobody.post(PATHS["chat"], json={"messages": "none"})
    assert reply.status_code == 400 and "needs about" not in reply.text and reply.json()["error"]["message"]


def test_stopping_the_daemon_ends_the_model(embedded: Home) -> None:
    assert embedded.process is not None
    pid = embedded.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert children
    assert embedded.stop() == 0
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children), 3)
