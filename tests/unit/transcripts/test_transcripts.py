"""Session files of each agent become one call for each reply, asked with the conversation up to it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from reef.gateway.imported import read_envelope
from reef.records.importing import ImportedCall
from reef.transcripts.call import Call, Reading
from reef.transcripts.finding import READERS, find, kind_of

LS = {"name": "bash", "arguments": '{"command":"ls"}'}
USAGE = {"input": 10, "output": 3, "cacheRead": 4, "cacheWrite": 1}


def written(path: Path, lines: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def read(path: Path, reading: Reading | None = None) -> list[Call]:
    """The calls of a file that is told by its content, each of which comes in as a record."""
    kind = kind_of(path)
    assert kind is not None
    found = list(READERS[kind](path, reading or Reading()))
    for call in found:
        item = read_envelope(call.envelope(), person=False, redact=True)
        assert isinstance(item, ImportedCall)
        assert (item.origin, item.call.session, item.end.trainable) == (f"transcript:{kind}", call.session, False)
        assert item.call.version is None
    assert [call.id for call in READERS[kind](path, Reading())] == [call.id for call in found]
    return found


def pi_message(id: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, "timestamp": 1796064778510} | more
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": "2026-11-30T18:52:58.510Z",
        "message": message,
    }


def pi_answer(id: str, parent: str, content: Any, stop: str = "stop", **more: Any) -> dict[str, Any]:
    text = [{"type": "text", "text": content}] if isinstance(content, str) else content
    more = {"model": "m", "usage": USAGE, "stopReason": stop, "responseId": f"chatcmpl-{id}"} | more
    return pi_message(id, parent, "assistant", text, **more)


PI = [
    {"type": "session", "version": 3, "id": "s-pi", "timestamp": "2026-11-30T18:52:58.278Z", "cwd": "/srv/p"},
    pi_message("0", None, "system", "", sections={"who": "You code.", "rules": "Be brief."},
               toolsAdded=[{"name": "bash", "description": "d", "parameters": {}, "constrainedSampling": {}}]),
    pi_message("1", "0", "user", [{"type": "text", "text": "hi"}]),
    pi_answer("2", "1", [{"type": "thinking", "thinking": "hm"},
                         {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}], "toolUse"),
    pi_message("3", "2", "toolResult", [{"type": "text", "text": "a b"}], toolCallId="c1", toolName="bash"),
    pi_answer("4", "3", [], "error", errorMessage="gone"),
    {"type": "context_edit", "id": "5", "parentId": "4", "targetId": "4", "replacement": None},
    pi_answer("6", "5", "two files"),
]  # fmt: skip


def test_pi_calls_hold_the_system_prompt_the_tools_and_the_way_to_the_reply(tmp_path: Path) -> None:
    first, failed, last = read(written(tmp_path / "s.jsonl", PI))
    assert first.request["messages"] == [
        {"role": "system", "content": "You code.\n\nBe brief."},
        {"role": "user", "content": "hi"},
    ]
    assert first.request["tools"] == [
        {"type": "function", "function": {"name": "bash", "description": "d", "parameters": {}}}
    ]
    assert first.lacks == ()
    assert (failed.state, failed.error, failed.response) == ("failed", "gone", None)
    assert last.request["messages"][2:] == [
        {
            "role": "assistant", "content": None, "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": LS}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a b"},
    ]  # fmt: skip
    assert last.response is not None
    assert last.response["choices"][0] == {
        "index": 0, "message": {"role": "assistant", "content": "two files"}, "finish_reason": "stop",
    }  # fmt: skip
    assert last.response["usage"]["prompt_tokens"] == 15
    assert last.started_at == "2026-11-30T18:52:58.510+00:00"


def test_pi_compactions_branches_and_older_sessions_are_read_as_pi_shows_them(tmp_path: Path) -> None:
    lines = [
        {"type": "session", "id": "s", "cwd": "/srv/p", "timestamp": "t"},
        pi_message("1", None, "user", "first"),
        pi_answer("2", "1", "one"),
        pi_message("3", "2", "user", "second"),
        {"type": "compaction", "id": "4", "parentId": "3", "summary": "they said one", "firstKeptEntryId": "3"},
        pi_answer("5", "4", "two"),
        {"type": "branch_summary", "id": "6", "parentId": "2", "summary": "a dead end"},
        pi_message("7", "6", "bashExecution", "", command="ls", output="a", exitCode=1),
        pi_answer("8", "7", "three"),
    ]
    first, second, third = read(written(tmp_path / "s.jsonl", lines))
    assert first.lacks == ("system prompt", "tools")
    texts = [[message["content"] for message in call.request["messages"]] for call in (second, third)]
    assert texts[0][0].endswith("<summary>\nthey said one\n</summary>")
    assert texts[0][1:] == ["second"]
    assert texts[1][:2] == ["first", "one"]
    assert "a dead end" in texts[1][2]
    assert texts[1][3] == "Ran `ls`\n```\na\n```\n\nCommand exited with code 1"


def test_a_forked_pi_session_does_not_bring_the_calls_of_its_parent_again(tmp_path: Path) -> None:
    header = {"type": "session", "id": "s2", "cwd": "/", "timestamp": "2027-01-01T00:00:00.000Z", "parentSession": "x"}
    later = pi_answer("9", "6", "more") | {"timestamp": "2027-01-01T00:00:01.000Z"}
    assert [call.message for call in read(written(tmp_path / "s.jsonl", [header, *PI[1:], later]))] == ["9"]


def claude_line(kind: str, uuid: str, parent: str | None, content: Any, **message: Any) -> dict[str, Any]:
    role = "assistant" if kind == "assistant" else "user"
    return {
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s-cc", "cwd": "/srv/p", "isSidechain": False,
        "timestamp": "2026-11-30T18:00:00.000Z", "message": {"role": role, "content": content} | message,
    }  # fmt: skip


def claude_reply(uuid: str, parent: str, id: str, block: Any, **message: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 7}
    more = {"id": id, "type": "message", "model": "claude-x", "stop_reason": "tool_use", "usage": usage} | message
    return claude_line("assistant", uuid, parent, [block], **more)


def test_the_lines_of_one_claude_reply_are_one_call_and_every_tool_result_is_there(tmp_path: Path) -> None:
    def use(id: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": "Bash", "input": {}}

    def result(id: str) -> list[dict[str, Any]]:
        return [{"type": "tool_result", "tool_use_id": id, "content": id}]

    lines = [
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s-cc"},
        {"type": "summary", "summary": "The parser", "leafUuid": "g"},
        claude_line("user", "a", None, "fix it"),
        {"type": "attachment", "uuid": "a2", "parentUuid": "a", "sessionId": "s-cc", "attachment": {}},
        claude_reply("b", "a2", "msg_1", use("t1")),
        claude_reply("c", "b", "msg_1", use("t2")),
        claude_line("user", "d", "b", result("t1")),
        claude_line("user", "e", "c", result("t2")),
        claude_reply("x", "e", "api", {"type": "text", "text": "API Error"}, model="<synthetic>"),
        claude_reply("f", "e", "msg_2", {"type": "text", "text": "done"}, stop_reason="end_turn"),
        claude_line("user", "g", "f", "thanks"),
    ]
    first, second = read(written(tmp_path / "s.jsonl", lines))
    assert first.request["messages"] == [{"role": "user", "content": "fix it"}]
    assert first.response is not None
    assert [block["id"] for block in first.response["content"]] == ["t1", "t2"]
    asked = second.request["messages"]
    assert [message["role"] for message in asked] == ["user", "assistant", "user"]
    assert [block["tool_use_id"] for block in asked[2]["content"]] == ["t1", "t2"]
    assert (second.title, second.cwd, second.dialect) == ("The parser", "/srv/p", "messages")
    assert second.lacks == ("system prompt", "tools", "reminders")
    item = read_envelope(second.envelope(), person=False, redact=True)
    assert isinstance(item, ImportedCall)
    assert (item.end.prompt_tokens, item.end.completion_tokens, item.end.answer_preview) == (12, 2, "done")


def codex_line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-30T18:00:00.000Z", "type": kind, "payload": payload}


def codex_message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def test_codex_calls_are_what_the_model_said_between_two_inputs(tmp_path: Path) -> None:
    usage = {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 2}
    lines = [
        codex_line("session_meta", id="s-cx", cwd="/srv/p", base_instructions={"text": "You code."}),
        codex_line("turn_context", model="gpt-x", cwd="/srv/p"),
        codex_message("user", "look"),
        codex_line("response_item", type="reasoning", summary=[], encrypted_content="x"),
        codex_line("response_item", type="function_call", name="shell", arguments="{}", call_id="c1"),
        codex_line("event_msg", type="token_count", info={"last_token_usage": usage}),
        codex_line("response_item", type="function_call_output", call_id="c1", output="a b"),
        codex_message("assistant", "two files"),
        codex_line("compacted", message="they looked"),
        codex_message("user", "more"),
        codex_message("assistant", "no"),
    ]
    first, second, third = read(written(tmp_path / "rollout.jsonl", lines))
    assert first.response is not None
    assert [item["type"] for item in first.response["output"]] == ["reasoning", "function_call"]
    assert first.response["usage"]["input_tokens_details"] == {"cached_tokens": 4}
    assert [item["type"] for item in second.request["input"]] == [
        "message", "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    assert [item["content"][0]["text"] for item in third.request["input"]] == ["they looked", "more"]
    assert third.request["instructions"] == "You code."
    assert (third.lacks, third.request["model"]) == (("tools",), "gpt-x")


def opencode_session() -> dict[str, Any]:
    tokens = {"input": 8, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 0}}
    shell = {"type": "tool", "callID": "c1", "tool": "bash"}
    state = {"status": "completed", "input": {"command": "ls"}, "output": "a b"}
    told = {"role": "assistant", "modelID": "m", "tokens": tokens, "path": {"cwd": "/srv/p"}}
    return {
        "info": {"id": "ses_1", "title": "Files", "directory": "/srv/p"},
        "messages": [
            {"info": {"id": "msg_1", "role": "user"}, "parts": [{"type": "text", "text": "look"}]},
            {
                "info": {"id": "msg_2", "time": {"created": 1796064778510, "completed": 1796064779510}, **told},
                "parts": [{"type": "step-start"}, {"type": "reasoning", "text": "hm"}, {**shell, "state": state}],
            },
            {
                "info": {"id": "msg_3", "time": {"created": 1796064780000}, **told},
                "parts": [{"type": "text", "text": "two files"}],
            },
            {
                "info": {"id": "msg_4", "error": {"name": "APIError", "data": {"message": "gone"}}, **told},
                "parts": [],
            },
        ],
    }


def opencode_store(path: Path) -> Path:
    session = opencode_session()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.executescript(
        "CREATE TABLE session (id TEXT, directory TEXT, title TEXT, parent_id TEXT);"
        "CREATE TABLE message (id TEXT, session_id TEXT, data TEXT);"
        "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
    )
    connection.execute("INSERT INTO session VALUES ('ses_1', '/srv/p', 'Files', NULL)")
    for message in session["messages"]:
        id = message["info"].pop("id")
        connection.execute("INSERT INTO message VALUES (?, 'ses_1', ?)", (id, json.dumps(message["info"])))
        for number, part in enumerate(message["parts"]):
            row = (f"prt_{id}{number}", id, json.dumps(part))
            connection.execute("INSERT INTO part VALUES (?, ?, 'ses_1', ?)", row)
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("stored", ["database", "export"])
def test_opencode_calls_are_its_assistants_messages(tmp_path: Path, stored: str) -> None:
    if stored == "database":
        path = opencode_store(tmp_path / "opencode.db")
    else:
        path = tmp_path / "session.json"
        path.write_text(json.dumps(opencode_session(), indent=2))
    first, second, failed = read(path)
    assert first.request == {"model": "m", "messages": [{"role": "user", "content": "look"}]}
    assert first.response is not None
    assert first.response["choices"][0]["finish_reason"] == "tool_calls"
    assert first.duration_ms == 1000
    assert [message["role"] for message in second.request["messages"]] == ["user", "assistant", "tool"]
    assert (second.session, second.cwd, second.title) == ("ses_1", "/srv/p", "Files")
    assert (failed.state, failed.error) == ("failed", "gone")


def test_a_folder_is_walked_and_its_files_are_told_by_their_content(tmp_path: Path) -> None:
    written(tmp_path / "a/one.jsonl", PI)
    written(tmp_path / "b/two.jsonl", [{"agent_record_id": "x", "request_type": "report", "payload": {}}])
    written(tmp_path / "b/three.jsonl", [{"type": "something", "else": 1}])
    (tmp_path / "b/four.txt").write_text("no")
    (tmp_path / "b/five.json").write_text("[1, 2]")
    (tmp_path / "b/six.db").write_bytes(b"SQLite format 3\0 and then nothing")
    opencode_store(tmp_path / "c.db")
    assert [(found.kind, found.path.name) for found in find(tmp_path)] == [
        ("opencode", "c.db"), ("pi", "one.jsonl"), ("records", "two.jsonl"),
    ]  # fmt: skip


def test_the_source_is_only_read_and_a_line_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", PI)
    with path.open("a") as file:
        file.write('{"type":"message","id":"7"')
    store = opencode_store(tmp_path / "opencode.db")

    def state() -> dict[str, tuple[str, int]]:
        files = sorted(place for place in tmp_path.iterdir() if place.is_file())
        return {file.name: (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns) for file in files}

    before, reading = state(), Reading()
    read(store)
    assert len(read(path, reading)) == 3
    assert (state(), reading.unreadable) == (before, 1)


def test_a_native_session_is_read_with_its_system_prompt_and_tools_as_they_were(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": LS}
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    user = {"role": "user", "content": "list the files"}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "a.py"}
    answer = {"role": "assistant", "content": "one file"}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    at = "2026-11-30T18:52:58.510Z"
    file = written(
        tmp_path / "x.jsonl",
        [
            {"type": "session", "agent": "native", "version": 1, "id": "s-native", "cwd": "/srv/p", "at": at},
            {"type": "context", "at": at, "system": "be brief", "tools": tools},
            {"type": "message", "at": at, "message": user},
            {"type": "message", "at": at, "message": asked, "model": "m", "reply": "r1", "finish": "tool_calls"},
            {"type": "message", "at": at, "message": result},
            {"type": "context", "at": at, "system": "be very brief", "tools": []},
            {
                "type": "message",
                "at": at,
                "message": answer,
                "model": "m",
                "finish": "stop",
                "usage": usage,
                "left_out": 2,
            },
            {"type": "message", "at": at, "message": {"role": "user", "content": "more"}},
            {"type": "message", "at": at, "message": {"role": "assistant", "content": "ha"}, "finish": "interrupted"},
        ],
    )
    reading = Reading()
    first, second, third = read(file, reading)
    assert first.request == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, user],
        "tools": tools,
    }
    assert first.response is not None and first.response["choices"][0]["message"] == asked
    assert (first.session, first.cwd, first.title, first.lacks) == ("s-native", "/srv/p", "list the files", ())
    system = {"role": "system", "content": "be very brief"}
    assert second.request == {"model": "m", "messages": [system, user, asked, result]}
    assert second.response is not None and second.response["usage"] == usage
    assert reading.lacks == {"which older turns were left out"}
    assert third.state == "cancelled"


def test_hermes_calls_hold_the_system_prompt_and_what_was_left_of_the_conversation(tmp_path: Path) -> None:
    place = tmp_path / "state.db"
    with sqlite3.connect(place) as store:
        store.execute("CREATE TABLE state_meta (key TEXT, value TEXT)")
        store.execute("CREATE TABLE sessions (id TEXT, model TEXT, system_prompt TEXT, cwd TEXT, started_at REAL)")
        store.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, api_content TEXT,"
            " tool_call_id TEXT, tool_calls TEXT, timestamp REAL, finish_reason TEXT, active INTEGER DEFAULT 1)"
        )
        store.execute("INSERT INTO sessions VALUES ('s-h', 'm', 'You code.', '/srv/p', 1.0)")
        called = json.dumps([{"id": "c1", "type": "function", "function": LS}, "odd"])
        rows = [
            ("user", "old", None, None, None, None, 0),
            ("assistant", "older", None, None, None, "stop", 0),
            ("user", "look", "look [at 9:00]", None, None, None, 1),
            ("assistant", None, None, None, called, "tool_calls", 1),
            ("tool", "a b", None, "c1", None, None, 1),
            ("assistant", "two files", None, None, "no JSON", "stop", 1),
            ("assistant", None, None, None, None, None, 1),
        ]
        for row in rows:
            names = "role, content, api_content, tool_call_id, tool_calls, finish_reason, active"
            store.execute(
                f"INSERT INTO messages (session_id, timestamp, {names}) VALUES ('s-h', 1796064778.51, {'?, ' * 6}?)",
                row,
            )
    store.close()
    reading = Reading()
    before = hashlib.sha256(place.read_bytes()).hexdigest()
    old, first, last, cut = read(place, reading)
    assert [message["content"] for message in old.request["messages"]] == ["You code.", "old"]
    assert first.request["messages"][1:] == [{"role": "user", "content": "look [at 9:00]"}]
    assert first.response is not None and first.response["choices"][0]["finish_reason"] == "tool_calls"
    assert last.request["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": LS}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a b"},
    ]
    assert (last.cwd, last.started_at, last.lacks) == ("/srv/p", "2026-11-30T18:52:58.510+00:00", ("tools",))
    assert (cut.state, cut.response) == ("interrupted", None)
    assert reading.unreadable > 0
    assert [file.name for file in tmp_path.glob("state*")] == ["state.db"]
    assert hashlib.sha256(place.read_bytes()).hexdigest() == before
