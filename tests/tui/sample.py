"""A week of plausible work put into the stand-in daemon: what the screens are looked at and photographed with."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.fakes.daemon_fake import DaemonFake, ask_row, report_row, step_row, version_row

RULE = "Before you change code for a bug:\n\n- describe the cause in one sentence\n- write a test that fails for it\n"


def ago(**spans: float) -> str:
    """A time in the past as the daemon writes it."""
    return (datetime.now(UTC) - timedelta(**spans)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add --json to list", {"adapter": "pi", "minutes": 190, "score": 1.0, "duration_ms": 160_000}),
    ("/reefine reproduce bugs first", {"adapter": "pi", "minutes": 150, "side_call": True}),
    ("write release notes", {"adapter": "codex", "minutes": 121, "version": 13, "duration_ms": 40_000}),
    ("rename the config loader", {"adapter": "claude", "minutes": 80, "score": 0.0, "finish_reason": "length"}),
    ("explain this stack trace", {"source": "program", "adapter": None, "minutes": 31, "state": "failed"}),
    ("why is the build slow?", {"adapter": "pi", "minutes": 20, "score": 1.0}),
    ("fix the flaky test in parser", {"adapter": "pi", "minutes": 3, "score": 1.0, "duration_ms": 72_000}),
    ("now do the same for the lexer", {"adapter": "pi", "minutes": 0.1, "state": "open", "duration_ms": None}),
)


def fill(fake: DaemonFake) -> None:
    """Records, asks, steps and versions of one scenario, `coding`."""
    for preview, fields in CALLS:
        given = dict(fields)
        at = ago(minutes=given.pop("minutes"))
        given = {"scenario": "coding", "version": 14, "started_at": at} | given
        if given.get("state") == "failed":
            given |= {"error": "upstream answered 529, retry after 7 s", "status": 502, "completion_tokens": None}
        row = fake.add_record(preview, quiet=True, **given)
        if preview.startswith("fix the flaky"):
            row |= {"prompt_tokens": 17_400, "completion_tokens": 812}
            fake.bodies[row["agent_record_id"]] = conversation()
            said = {"score": 1.0, "feedback": "reproduced first", "references": [row["agent_record_id"]]}
            fake.reports.append(report_row("d" * 32) | said | {"created_at": ago(minutes=1), "consumed_by": 31})
    _versions(fake)
    _asks(fake)


def conversation() -> tuple[bytes, bytes]:
    """A request with a tool call and its result, and the reply."""
    call = {"id": "c1", "function": {"name": "bash", "arguments": json.dumps({"command": "pytest -x -k parser"})}}
    edit = {"id": "c2", "function": {"name": "edit", "arguments": json.dumps({"path": "parser.py", "lines": "+3 -1"})}}
    output = "\n".join([*(f"tests/test_parser.py::test_{n} PASSED" for n in range(36)), "1 failed", "exit 1"])
    messages = [
        {"role": "system", "content": "You are a coding agent.\n\n" + RULE},
        {"role": "user", "content": "the parser test fails one run in five"},
        {
            "role": "assistant",
            "content": "I will reproduce it first.",
            "reasoning_content": "A flaky test is shared state or time.\nLook at the fixture.",
            "tool_calls": [call, edit],
        },
        {"role": "tool", "tool_call_id": "c1", "content": output},
        {"role": "tool", "tool_call_id": "c2", "content": "ok"},
    ]
    said = {"role": "assistant", "content": "The fixture shared a clock. Each test has its own now; 50 runs pass."}
    reply = {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}], "usage": {"total_tokens": 18_212}}
    return json.dumps({"model": "qwen3:8b", "messages": messages}).encode(), json.dumps(reply).encode()


def gate(reach: str = "pass", detail: str = "rule and skill are in pi's request, were not before") -> dict[str, Any]:
    """An evaluation as a step stores it."""
    return {
        "policy": "reach",
        "groups": [
            {"name": "admission", "status": "pass", "detail": "renders for pi · names · no secrets", "seconds": 0.1},
            {"name": "reach", "status": reach, "detail": detail, "seconds": 2.1},
            {"name": "tasks", "status": "not run", "detail": "no task set", "seconds": 0},
        ],
    }


def _versions(fake: DaemonFake) -> None:
    common = {"scenario": "coding", "evaluation": gate()}
    ask = {"number": 23, "text": "when I ask you to fix a bug, reproduce it with a failing test first"}
    rows = [
        version_row(11, "rule: short answers", created_at=ago(days=7), **common),
        version_row(12, "rollback to v10", operation="rollback", created_at=ago(days=6), scenario="coding"),
        version_row(13, "skill: release-notes", created_at=ago(days=4), **common),
        version_row(14, "rule: run the tests", current=True, created_at=ago(days=1), **common),
        version_row(
            15, "reproduce-first", state="pending", pending=True, created_at=ago(hours=2), asks=[ask], **common
        ),
    ]
    fake.versions = rows
    fake.differences["v14", "v15"] = [
        {
            "path": "harness/rules/bugs.md",
            "status": "changed",
            "hunks": (
                "--- a/harness/rules/bugs.md\n+++ b/harness/rules/bugs.md\n@@ -1,3 +1,5 @@\n"
                " # Bugs\n-Before you change code, describe the cause.\n"
                "+Before you change code for a bug, describe the cause first.\n"
                "+Write a test that fails for it.\n"
            ),
        },
        {
            "path": "harness/rules/tests.md",
            "status": "changed",
            "hunks": "@@ -1,2 +1,2 @@\n-Run the tests after a change.\n+Run all tests after every change.\n",
        },
        {
            "path": "harness/extensions/notify.ts",
            "status": "added",
            "hunks": "@@ -0,0 +1,2 @@\n+export default function (pi) {\n+}\n",
        },
    ]
    fake.differences["v13", "v14"] = [fake.differences["v14", "v15"][1]]
    fake.files[15] = {"harness/rules/bugs.md": RULE}
    text = {"text": "Answer at length."}
    mutation = {"op": "create", "id": "verbose", "kind": "rules", "config": text}
    fake.steps = [
        step_row(
            26,
            "rejected",
            scenario="coding",
            summary="rule: verbose answers",
            reason="the rule was already in pi's request",
            evaluation=gate("fail", "the current tree sends the text as well"),
            mutations=[mutation],
            ended_at=ago(days=5.5),
        ),
        step_row(
            27,
            "skipped",
            scenario="coding",
            summary="skill: linter first",
            reason="the model's reply was cut off",
            ended_at=ago(days=5),
        ),
    ]


def _asks(fake: DaemonFake) -> None:
    fake.activity = [
        {"at": ago(minutes=2), "kind": "proposing", "text": "qwen3:8b wrote 1 skill, 1 rule", "failed": False},
        {"at": ago(minutes=1), "kind": "admission", "text": "renders for pi · names · front matter · no secrets"},
        {"at": ago(minutes=1), "kind": "reach", "text": "running pi on the current tree and on the candidate"},
    ]
    fake.asks = [
        ask_row(21, "run the tests after every change", state="published", version=14, created_at=ago(days=1)),
        ask_row(22, "answer at length", state="rejected", step=26, created_at=ago(days=5.6)),
        ask_row(
            23,
            "when I ask you to fix a bug, reproduce it with a failing test first",
            state="pending",
            version=15,
            step=31,
            created_at=ago(hours=2.2),
        ),
        ask_row(24, "never touch files outside the repository", state="running", step=32, created_at=ago(minutes=2)),
        ask_row(25, "say which files you read before you edit one", state="queued", created_at=ago(minutes=1)),
    ]
    for ask in fake.asks:
        ask["scenario"] = "coding"
