"""Sessions as files, and what of a long one is sent."""

from __future__ import annotations

import json
from typing import Any

from reef.native.home import Model
from reef.native.prompt import fitting, refused_at
from tests.unit.native.conftest import Native


def test_a_session_is_gone_on_with_by_continue_and_by_its_id(native: Native) -> None:
    native.run("-p", "first")
    name = native.session()[0]["id"]
    native.run("--continue", "-p", "second")
    assert native.run("--session", name[:8], "-p", "third")[0] == 0
    sent = native.requests()[-1]["messages"]
    assert [message["content"] for message in sent[1:]] == [
        "first", "You said: first", "second", "You said: second", "third",
    ]  # fmt: skip
    lines = native.session()
    assert [line["type"] for line in lines[:4]] == ["session", "context", "message", "message"]
    assert {line["type"] for line in lines[4:]} == {"message"}
    reply = lines[3]
    assert (reply["model"], reply["finish"], reply["usage"]["completion_tokens"] > 0) == ("fake-model", "stop", True)
    (file,) = (native.home / "sessions").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_session_of_another_directory_is_not_gone_on_with(native: Native) -> None:
    native.run("-p", "first")
    (file,) = (native.home / "sessions").iterdir()
    file.write_text(file.read_text().replace(str(native.project), "/elsewhere"))
    status, _, err = native.run("-c", "-p", "second")
    assert status == 1 and f"there is no session of {native.project} to go on with" in err
    status, _, err = native.run("--session", "zz", "-p", "second")
    assert status == 1 and "'zz' is no session here (newest: " in err
    assert native.run("-c", "--session", "x", "-p", "y")[0] == 2


def test_a_session_that_was_killed_goes_on_from_what_it_had(native: Native) -> None:
    native.run("-p", '[[tool bash {"command": "echo hi"}]]')
    (file,) = (native.home / "sessions").iterdir()
    lines = file.read_text().splitlines(keepends=True)
    # Killed while the tool ran, in the middle of a line.
    file.write_text("".join(lines[:4]) + lines[4][:20])
    assert native.run("-c", "-p", "go on")[0] == 0
    sent = native.requests()[-1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "user"]
    assert "there is no result" in sent[3]["content"]
    assert native.run("-c", "-p", "and again")[0] == 0


def conversation(turns: int, result: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        found += [
            {"role": "user", "content": f"ask {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "x" * result},
            {"role": "assistant", "content": f"answer {number}"},
        ]
    return found


MODEL = Model("m", "http://x/v1", "k", context_window=8192, max_tokens=2048)


def test_old_results_are_shortened_before_turns_are_left_out_and_the_last_turn_stays() -> None:
    messages = [*conversation(6, 4000), {"role": "user", "content": "now"}]
    sent, changed = fitting("system", [], messages, MODEL)
    assert sent[0] == {"role": "system", "content": "system"} and sent[-1]["content"] == "now"
    assert len(sent) == len(messages) + 1 and 0 < changed < 6
    assert "are left out here" in sent[3]["content"] and sent[-3]["content"] == "x" * 4000
    assert messages[2]["content"] == "x" * 4000


def test_a_very_long_session_loses_its_oldest_turns_whole() -> None:
    messages = [*conversation(100, 3000), {"role": "user", "content": "now"}]
    sent, changed = fitting("system", [], messages, MODEL)
    assert len(json.dumps(sent)) < (8192 - 2048) * 3 + 500 and changed > 0
    assert sent[1]["role"] == "user" and sent[-1]["content"] == "now"


def test_a_long_turn_shortens_its_own_older_results() -> None:
    messages = [{"role": "user", "content": "now"}]
    messages += [message for message in conversation(20, 3000) if message["role"] != "user"]
    sent, _ = fitting("system", [], messages, MODEL)
    assert [message["role"] for message in sent[:2]] == ["system", "user"] and len(sent) == len(messages) + 1
    assert len(json.dumps(sent)) < (8192 - 2048) * 3 + 3000


def test_what_fits_is_sent_as_it_is() -> None:
    messages = conversation(2, 100)
    assert fitting("system", [], messages, MODEL) == ([{"role": "system", "content": "system"}, *messages], 0)


def test_a_refusal_makes_the_newest_results_shorter_too() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "now"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        # A token a digit: by its length it would fit.
        {"role": "tool", "tool_call_id": "c", "content": "7" * 8000},
    ]
    sent, changed = fitting("system", [], messages, MODEL)
    assert (sent[1:], changed) == (messages, 0)
    sent, changed = fitting("system", [], messages, MODEL, refused_at=8400)
    assert changed == 1 and len(sent[3]["content"]) < 600 and "are left out here" in sent[3]["content"]
    assert refused_at("request needs about 12,080 tokens, the model has 8,192") == 12080
    assert refused_at("no luck") is None
