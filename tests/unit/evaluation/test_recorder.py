"""The recorder: a scripted model server and one run of an agent against it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from reef.evaluation import recorder

# Stands for an agent: asks the server in the file it is given, prints the reply.
ASKING = """
import json, sys, urllib.request
url = open(sys.argv[1]).read()
route = sys.argv[3] if len(sys.argv) > 3 else "/v1/chat/completions"
body = json.dumps({"model": "m", "stream": sys.argv[2] == "stream", "messages": [{"role": "user", "content": "hé"}]})
request = urllib.request.Request(url + route, body.encode(), {"content-type": "application/json"})
print(urllib.request.urlopen(request).read().decode())
print(urllib.request.urlopen(url + "/v1/models").read().decode())
"""


def outcome(tmp_path: Path, argv: list[str], seconds: float = 30, env: dict[str, str] | None = None) -> dict[str, Any]:
    job = {
        "argv": argv,
        "env": env or {},
        "cwd": str(tmp_path),
        "seconds": seconds,
        "reply": "the scripted reply",
        "files": {str(tmp_path / "url"): "{recorder}"},
    }
    # As inside a room: the file alone, with nothing but the standard library.
    done = subprocess.run(
        [sys.executable, "-I", "-S", recorder.__file__],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_request_is_kept_and_answered_with_the_scripted_reply(tmp_path: Path) -> None:
    found = outcome(tmp_path, [sys.executable, "-c", ASKING, str(tmp_path / "url"), "whole"])
    assert (found["exit_code"], found["timed_out"], found["stderr"]) == (0, False, "")
    reply, models = found["stdout"].splitlines()
    assert json.loads(reply)["choices"][0]["message"]["content"] == "the scripted reply"
    assert json.loads(models)["data"][0]["id"] == recorder.MODEL
    assert [(item["path"], item["body"]["messages"][0]["content"]) for item in found["requests"]] == [
        ("/v1/chat/completions", "hé")
    ]


def test_a_streaming_request_gets_events_that_end_with_done(tmp_path: Path) -> None:
    found = outcome(tmp_path, [sys.executable, "-c", ASKING, str(tmp_path / "url"), "stream"])
    events = [line.removeprefix("data: ") for line in found["stdout"].splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    deltas = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert "".join(item["delta"].get("content", "") for item in deltas) == "the scripted reply"
    assert deltas[-1]["finish_reason"] == "stop"


def test_the_messages_dialect_is_answered_whole_and_as_events(tmp_path: Path) -> None:
    asking = [sys.executable, "-c", ASKING, str(tmp_path / "url")]
    whole = json.loads(outcome(tmp_path, [*asking, "whole", "/v1/messages?beta=true"])["stdout"].splitlines()[0])
    assert (whole["type"], whole["stop_reason"], whole["content"][0]["text"]) == (
        "message",
        "end_turn",
        "the scripted reply",
    )
    found = events(outcome(tmp_path, [*asking, "stream", "/v1/messages?beta=true"]))
    assert [name for name, _ in found] == [value["type"] for _, value in found]
    assert found[0][1]["message"]["role"] == "assistant" and found[-1][0] == "message_stop"
    assert "".join(value["delta"].get("text", "") for _, value in found if "delta" in value) == "the scripted reply"
    counted = outcome(tmp_path, [*asking, "whole", "/v1/messages/count_tokens"])["stdout"]
    assert json.loads(counted.splitlines()[0]) == {"input_tokens": 1}


def test_the_responses_dialect_is_answered_whole_and_as_events(tmp_path: Path) -> None:
    asking = [sys.executable, "-c", ASKING, str(tmp_path / "url")]
    whole = json.loads(outcome(tmp_path, [*asking, "whole", "/v1/responses"])["stdout"].splitlines()[0])
    assert whole["status"] == "completed" and whole["output"][0]["content"][0]["text"] == "the scripted reply"
    found = events(outcome(tmp_path, [*asking, "stream", "/v1/responses"]))
    assert [value["sequence_number"] for _, value in found] == list(range(len(found)))
    assert found[0][1]["response"]["status"] == "in_progress"
    assert found[-1] == ("response.completed", {"type": "response.completed", "response": whole, "sequence_number": 7})


def events(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The named events of a stream, each with its value."""
    lines = [line for line in found["stdout"].splitlines() if line.startswith(("event: ", "data: "))]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs]


def test_the_exit_status_and_the_words_of_the_agent_come_back(tmp_path: Path) -> None:
    found = outcome(tmp_path, ["sh", "-c", "echo out; echo err >&2; echo $MARK; exit 4"], env={"MARK": "given"})
    assert (found["exit_code"], found["stdout"], found["stderr"]) == (4, "out\ngiven\n", "err\n")
    assert found["requests"] == []


def test_an_agent_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    found = outcome(tmp_path, ["sh", "-c", "sleep 60 & echo $! > pid; wait"], seconds=1)
    assert (found["exit_code"], found["timed_out"]) == (None, True)
    child = int((tmp_path / "pid").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_body_that_is_no_json_is_kept_as_text(tmp_path: Path) -> None:
    asking = ASKING.replace("body.encode()", "b'not json'")
    found = outcome(tmp_path, [sys.executable, "-c", asking, str(tmp_path / "url"), "whole"])
    assert found["requests"][0]["body"] == "not json"
