"""Lists and single things: what a person sees, what a program gets, and that foreign text steers no terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Live
from tests.cli.grown import ASK, REASON, RULE

HOSTILE = "\x1b]52;c;ZXZpbA==\x07 \x1b[2J\x9b31m \u202eevil\u2066 [/foo] [red]bold[/red] \u2028 北京 \x00end"
SENT = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u2028", "\x00")


def test_records_are_listed_newest_first_and_shown_whole_to_a_program(live: Live) -> None:
    older, newer = live.chat("first question", "listed"), live.chat("second question", "listed")
    rows = live.json("records", "list", "-s", "listed")
    assert [row["agent_record_id"] for row in rows] == [newer, older]
    assert rows[0]["started_at"].endswith("Z")
    piped = live.reef("records", "list", "-s", "listed").out
    assert newer in piped
    assert rows[0]["started_at"] in piped
    assert live.json("records", "list", "-s", "listed", "-n", "1") == rows[:1]
    assert live.json("records", "list", "-s", "listed", "--before", str(rows[0]["sequence"])) == rows[1:]
    assert live.json("records", "list", "-s", "listed", "--text", "first") == rows[1:]
    _, seen = live.on_terminal("records", "-s", "listed", env={"NO_COLOR": "1"})
    assert f"{newer[:4]}…{newer[-2:]}" in seen
    assert " ago" in seen or "now" in seen
    assert max(len(line) for line in seen.splitlines()) <= 80


def test_a_prompt_that_the_server_likely_cut_says_so_with_both_numbers(live: Live) -> None:
    receipt = live.chat(f"[[prompt 2051]] [[cached 0]] {'word ' * 16_000}", "long")
    assert "prompt cut: [[prompt 2051]]" in live.reef("records", "list", "-s", "long").out
    told = live.reef("records", "show", receipt).out
    assert "the server has likely cut it" in told and "2,051 counted" in told


def test_a_receipt_may_be_cut_or_typed_as_it_is_shown(live: Live) -> None:
    receipt = live.chat("hello", "cut")
    for typed in (
        receipt,
        receipt[:12],
        f"{receipt[:8]}…{receipt[-2:]}",
        f"{receipt[:8]}..{receipt[-2:]}",
        receipt.upper(),
    ):
        assert live.json("records", "show", typed)["agent_record_id"] == receipt, typed
    unknown = live.reef("records", "show", "f" * 32)
    assert (unknown.status, "there is no record" in unknown.err) == (1, True)
    assert live.reef("records", "show", f"{receipt[:8]}…zz").status == 1


def test_the_bytes_of_a_record_come_exactly_into_a_pipe(live: Live) -> None:
    receipt = live.chat(f"exact {HOSTILE}", "exact", odd=[1, 2.50, "\u00e9"])
    request = live.reef("records", "show", receipt, "--request").out
    sent = json.loads(request)
    assert sent["messages"][0]["content"] == f"exact {HOSTILE}"
    assert json.loads(live.reef("records", "show", receipt, "--response").out)["object"] == "chat.completion"
    raw = live.reef("records", "show", receipt, "--raw")
    assert (raw.status, "no raw stream" in raw.err) == (1, True)


EVERY_VIEW = (
    ("records", "list", "-s", "hostile"),
    ("records", "show", "RECEIPT"),
    ("records", "show", "RECEIPT", "--request"),
    ("records", "show", "RECEIPT", "--response"),
    ("records", "show", "RECEIPT", "--json"),
    ("records", "list", "-s", "hostile", "--json"),
    ("sessions", "list", "-s", "hostile"),
    ("good", "--receipt", "RECEIPT"),
    ("bad", "--receipt", "RECEIPT"),
    ("undo",),
    ("asks", "list", "-s", "hostile"),
    ("asks", "show", "1", "-s", "hostile"),
    ("asks", "show", "1", "-s", "hostile", "--json"),
    ("steps", "list", "-s", "hostile"),
    ("steps", "show", "1", "-s", "hostile"),
    ("status",),
)


def test_no_view_sends_a_control_character_of_recorded_text(live: Live, tmp_path: Path) -> None:
    live.reef("scenarios", "create", "hostile", "--recipe", "reefine")
    _, token = live.session(tmp_path, "hostile")
    text = HOSTILE.replace("\x00", "")
    receipt = live.chat(f"[[say {text}]] {text}", "hostile", token)
    live.reef("ask", f"[[propose nothing {text}]]", "-s", "hostile", "--wait")
    for view in EVERY_VIEW:
        words = [receipt if word == "RECEIPT" else word for word in view]
        status, shown = live.on_terminal(*words, env={"NO_COLOR": "1"}, cwd=tmp_path)
        assert status == 0, (view, shown)
        assert not [sign for sign in SENT if sign in shown], view
    assert "[/foo] [red]bold[/red]" in live.on_terminal("asks", "show", "1", "-s", "hostile")[1]


def test_json_holds_hostile_text_exactly(live: Live) -> None:
    receipt = live.chat(HOSTILE, "exact-json")
    row = live.json("records", "show", receipt)
    assert json.loads(row["request_text"])["messages"][0]["content"] == HOSTILE


def test_steps_show_rejected_ones_with_their_reason(live: Live) -> None:
    shown = live.reef("steps", "list", "-s", "grown").out.splitlines()
    assert [line.split()[0] for line in shown] == ["step", "3", "2", "1"]
    assert "rejected" in shown[2]
    one = live.reef("steps", "show", "2", "-s", "grown").out
    assert f"why       {REASON}" in one
    assert "entry     create rules bugs" in one
    first = live.reef("steps", "show", "1", "-s", "grown").out
    assert "reach        ✓ pass · its text absent before, present now   2.0 s" in first
    assert "made      v2" in first
    missing = live.reef("steps", "show", "9", "-s", "grown")
    assert (missing.status, missing.err.splitlines()[-1]) == (1, "hint: reef steps list")


def test_asks_are_found_by_number_and_id(live: Live) -> None:
    rows = live.json("asks", "list", "-s", "grown")
    assert [row["state"] for row in rows] == ["pending", "rejected", "published"]
    first = rows[-1]
    for typed in ("1", "#1", first["id"]):
        assert live.json("asks", "show", typed, "-s", "grown")["text"] == ASK
    shown = live.reef("asks", "show", "1", "-s", "grown").out
    assert "made   v2   reef versions show v2 -s grown" in shown
    assert live.reef("asks", "show", "77", "-s", "grown").status == 1


def test_versions_are_listed_with_the_head_and_what_needs_the_person(live: Live) -> None:
    shown = live.reef("versions", "list", "-s", "grown")
    lines = shown.out.splitlines()
    assert [line.split()[0] for line in lines] == ["version", "v3", "v2", "v1"]
    assert "● head" in lines[2]
    assert "▲ pending" in lines[1]
    assert "v3 needs you: reef versions show v3 -s grown" in shown.err
    _, plain = live.on_terminal("versions", "-s", "grown", env={"TERM": "dumb"})
    assert "* head" in plain
    assert plain.isascii()


def test_a_version_is_shown_with_its_files_and_reefs_own_only_by_name(live: Live) -> None:
    shown = live.reef("versions", "show", "v2", "-s", "grown").out
    assert f"harness/rules/bugs.md\n  {RULE}" in shown
    assert "reef's own, " in shown
    assert "registerCommand" not in shown
    whole = live.json("versions", "show", "2", "-s", "grown")
    assert any("registerCommand" in text for text in whole["files"].values())
    missing = live.reef("versions", "show", "v99", "-s", "grown")
    assert (
        missing.err
        == "error: scenario grown has no version v99 (versions: v1 to v3)\n\nhint: reef versions list -s grown\n"
    )


@pytest.mark.parametrize(
    ("typed", "title", "line"),
    [
        ((), "v2 → v3", "+ export default () => {};"),
        (("v1",), "v1 → v3", f"+ {RULE}"),
        (("v1", "v2"), "v1 → v2", f"+ {RULE}"),
        (("2", "1"), "v2 → v1", f"- {RULE}"),
    ],
)
def test_a_diff_has_the_versions_that_were_meant(live: Live, typed: tuple[str, ...], title: str, line: str) -> None:
    shown = live.reef("versions", "diff", *typed, "-s", "grown").out
    assert shown.startswith(title + "\n")
    assert f"  {line}\n" in shown


def test_the_scenario_that_is_meant_is_said_when_nobody_typed_it(live: Live, tmp_path: Path) -> None:
    assert live.reef("versions", "list").err == ""
    assert live.reef("versions", "list", "-s", "grown").err.startswith("v3 needs you")
    told = live.reef("versions", "list", env={"REEF_SCENARIO": "grown"})
    assert told.err.startswith("scenario grown (REEF_SCENARIO)\n")
    assert "● head" in told.out
    quiet = live.reef("versions", "list", "--json", env={"REEF_SCENARIO": "grown"})
    assert quiet.err == ""


def test_use_takes_only_what_exists(live: Live) -> None:
    try:
        assert live.reef("use", "grown").out == "scenario grown (reef use)\n"
        assert live.reef("versions", "list").err.startswith("scenario grown (reef use)\n")
        wrong = live.reef("use", "grwon")
        assert (wrong.status, wrong.err.splitlines()[-1]) == (1, "hint: reef use grown")
        assert live.json("use") == {"scenario": "grown", "origin": "reef use"}
    finally:
        assert live.reef("use", "--none").out == "scenario default (default)\n"


def test_an_unknown_scenario_is_404_with_the_nearest(live: Live) -> None:
    shown = live.reef("versions", "list", "-s", "grwn")
    assert (shown.status, "there is no scenario 'grwn'" in shown.err) == (1, True)
    assert "'grown'" in shown.err


def test_agents_and_recipes_are_listed(live: Live) -> None:
    agents: list[dict[str, Any]] = live.json("agents", "list")
    assert "pi" in [row["name"] for row in agents]
    assert live.reef("agents").out.startswith("agent")
    recipes = live.json("recipes", "list")
    assert {"basic", "reefine"} <= {row["name"] for row in recipes}


def test_sessions_of_this_directory(live: Live, tmp_path: Path) -> None:
    session, token = live.session(tmp_path)
    live.chat("in a session", token=token)
    rows = live.json("sessions", "list", "--here", cwd=tmp_path)
    assert [(row["id"], row["calls"], row["last_preview"]) for row in rows] == [(session, 1, "in a session")]
    assert "in a session" in live.reef("sessions", cwd=tmp_path).out
