"""What a step's process sends is read as untrusted: cleaned, checked and held to a length before it is acted on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reef.credentials import hold
from reef.ids import new_id
from reef.learning import frames
from reef.learning.frames import FrameBroken

KEY = "sk-" + "a1B2" * 6


def sent(value: dict[str, Any]) -> dict[str, Any]:
    """`value` as it comes out of the pipe."""
    return frames.parse(json.dumps(value).encode() + b"\n")


def test_credentials_are_cut_out_of_every_text_of_a_frame() -> None:
    hold("hunter2-secret")
    frame = sent({"type": "step", "fields": {"notes": {KEY: ["hunter2-secret"]}, "summary": f"use {KEY}"}})
    assert frames.early(frame) == {
        "notes": {"[redacted:openai-key]": ["[redacted:secret]"]}, "summary": "use [redacted:openai-key]",
    }  # fmt: skip


def test_half_a_surrogate_pair_never_enters_and_a_whole_one_stays() -> None:
    frame = sent({"type": "result", "outcome": "skipped", "reason": "half \ud800", "state": {"\udfff": ["\U0001f40b"]}})
    found = frames.result(frame)
    assert (found.reason, found.state) == ("half ?", {"?": ["\U0001f40b"]})
    assert frames.parse(b'{"type": "phase", "phase": "\\uD800"}') == {"type": "phase", "phase": "?"}


@pytest.mark.parametrize("text", [KEY, "hunter2-secret"])
def test_a_candidate_with_a_credential_is_rejected_instead_of_changed(text: str) -> None:
    hold("hunter2-secret")
    tree = [{"id": "a", "kind": "rules", "config": {"text": f"use {text}"}}]
    found = frames.result(sent({"type": "result", "outcome": "candidate", "reason": "fine", "tree": tree}))
    assert (found.outcome, found.reason, found.tree) == ("rejected", frames.WITH_CREDENTIAL, None)
    lost = frames.result(sent({"type": "result", "outcome": "rejected", "reason": "not seen", "tree": tree}))
    assert (lost.outcome, lost.reason, lost.tree) == ("rejected", "not seen", None)


def test_what_lists_show_is_held_to_a_length() -> None:
    summary, reason = "two\n lines " + "z" * 2_000_000, "because " * 100_000
    found = frames.result(sent({"type": "result", "outcome": "skipped", "reason": reason, "summary": summary}))
    assert found.summary.startswith("two lines zzz") and found.summary.endswith("…")
    assert len(found.summary) == frames.MAX_SUMMARY and len(found.reason) <= frames.MAX_REASON
    assert len(frames.early(sent({"type": "step", "fields": {"summary": summary}}))["summary"]) == frames.MAX_SUMMARY


@pytest.mark.parametrize(
    "fields",
    [
        {"summary": 5},
        {"summary": {"a": 1}},
        {"mutations": {"a": 1}},
        {"notes": "\ud800"},
        {"metrics": {"a": "x"}},
        None,
    ],
)
def test_columns_of_another_kind_are_no_frame(fields: Any) -> None:
    with pytest.raises(FrameBroken, match="the step's row is not usable"):
        frames.early(sent({"type": "step", "fields": fields}))


def test_columns_that_are_not_the_recipes_are_left_out() -> None:
    assert frames.early(sent({"type": "step", "fields": {"state": "published", "version": 9}})) == {}


def test_inputs_that_are_no_ids_make_a_result_unusable() -> None:
    frame = {"type": "result", "outcome": "skipped", "reason": "x", "consumed": [new_id(), "the second one"]}
    with pytest.raises(FrameBroken, match="consumed"):
        frames.result(sent(frame))


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"type":' + b"[" * 100_000, b"[1]\n", b"no\n"])
def test_what_is_no_frame_is_refused_however_deep_it_is(line: bytes) -> None:
    with pytest.raises(FrameBroken, match="no frame"):
        frames.parse(line)
