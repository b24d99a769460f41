"""Rating, reporting and asking: as the person, and as an agent that is not the person."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reef.paths import Paths
from tests.cli.conftest import Live
from tests.cli.shell import REEF, reef

ENDED = ("rejected", "failed", "skipped")


def report_on(live: Live, receipt: str) -> list[dict[str, Any]]:
    """The reports on a record that were not taken back."""
    reports = live.json("records", "show", receipt)["reports"]
    return [report for report in reports if not report.get("withdrawn_at")]


def test_good_rates_the_last_answer_of_the_last_session_here(live: Live, tmp_path: Path) -> None:
    _, token = live.session(tmp_path)
    older = live.chat("older", token=token)
    live.chat("elsewhere")
    newer = live.chat("[[say The capital is Paris.]]", token=token)
    done = live.reef("good", "short", "and right", cwd=tmp_path)
    assert done.status == 0
    assert done.out == f'good stored on {newer} · "The capital is Paris."\n'
    assert [(r["source"], r["score"], r["feedback"]) for r in report_on(live, newer)] == [
        ("person", 1.0, "short and right")
    ]
    assert live.reef("bad", "-2", cwd=tmp_path).status == 0
    assert [(r["source"], r["score"]) for r in report_on(live, older)] == [("person", 0.0)]
    far = live.reef("good", "-9", cwd=tmp_path)
    assert (far.status, "has 2 answers" in far.err) == (1, True)


def test_undo_takes_back_the_last_rating_of_this_directory(live: Live, tmp_path: Path) -> None:
    _, token = live.session(tmp_path)
    receipt = live.chat("rate me", token=token)
    live.reef("bad", cwd=tmp_path)
    assert len(report_on(live, receipt)) == 1
    assert live.reef("undo", cwd=tmp_path).out == f"bad taken back from {receipt}\n"
    assert report_on(live, receipt) == []
    again = live.reef("undo", cwd=tmp_path)
    assert (again.status, "no rating is left to take back in this directory" in again.err) == (1, True)


def test_a_rated_answer_that_is_rated_again_is_rated_once_and_undo_brings_the_rating_before_back(
    live: Live, tmp_path: Path
) -> None:
    _, token = live.session(tmp_path)
    receipt = live.chat("rate me twice", token=token)
    live.reef("good", "short", cwd=tmp_path)
    assert live.reef("bad", cwd=tmp_path).out.startswith(f"bad instead of good on {receipt}")
    again = live.reef("bad", cwd=tmp_path)
    assert (again.out.startswith(f"bad already on {receipt}"), "undo" in again.err) == (True, False)
    assert [(r["score"], r["feedback"], len(r["revisions"])) for r in report_on(live, receipt)] == [(0.0, None, 2)]
    id = report_on(live, receipt)[0]["id"]
    shown = live.reef("reports", "show", id[:12]).out.splitlines()
    assert [line.split()[0] for line in shown] == ["report", "by", "says", "on", "first", "change"]
    assert "you · revised once" in shown[1] and 'score 1 · "short"' in shown[4] and "score 0" in shown[5]
    assert live.reef("undo", cwd=tmp_path).out == f"bad taken back from {receipt}\n"
    assert [(r["score"], r["feedback"]) for r in report_on(live, receipt)] == [(1.0, "short")]
    assert live.reef("undo", cwd=tmp_path).out == f"good taken back from {receipt}\n"
    assert report_on(live, receipt) == []
    assert live.reef("bad", cwd=tmp_path).out.startswith(f"bad stored on {receipt}"), "what was taken back is no rating"


def test_a_rating_that_was_revised_elsewhere_is_not_undone_and_does_not_stand_in_the_way(
    live: Live, tmp_path: Path
) -> None:
    _, token = live.session(tmp_path)
    receipt = live.chat("rate me elsewhere", token=token)
    live.reef("good", cwd=tmp_path)
    live.reef("bad", cwd=tmp_path)
    id = report_on(live, receipt)[0]["id"]
    assert live.reef("reports", "revise", id, "--score", "0.5").out == f"report {id} is at revision 2\n"
    refused = live.reef("undo", cwd=tmp_path)
    assert (refused.status, "is not its last one" in refused.err) == (1, True)
    assert live.reef("undo", cwd=tmp_path).out == f"good taken back from {receipt}\n"


def test_reports_are_listed_and_revised_by_their_id(live: Live) -> None:
    receipt = live.chat("report on me", "listed")
    for score in ("1", "0.5"):
        assert live.reef("report", receipt, "--score", score, "-s", "listed").status == 0
    rows = live.json("reports", "list", "-s", "listed")
    assert [(row["score"], row["source"], row["scope"]) for row in rows] == [
        (0.5, "person", "receipt"),
        (1.0, "person", "receipt"),
    ]
    table = live.reef("reports", "-s", "listed").out.splitlines()
    assert len(table) == 3 and table[0].split() == ["when", "report", "scenario", "by", "score", "on", "words"]
    assert live.json("reports", "list", "--receipt", receipt[:12], "--source", "agent") == []
    for wrong in (("list", "--source", "me"), ("revise", rows[0]["id"]), ("revise", rows[0]["id"], "--score", "nan")):
        assert live.reef("reports", *wrong).status == 2
    unknown = live.reef("reports", "show", "f" * 32)
    assert (unknown.status, "f" * 32 in unknown.err) == (1, True)
    assert live.reef("reports", "show", "nothing").status == 1


def test_a_session_without_an_answer_is_passed_over(live: Live, tmp_path: Path) -> None:
    _, token = live.session(tmp_path)
    receipt = live.chat("the only answer here", token=token)
    live.session(tmp_path)
    assert live.reef("good", cwd=tmp_path).out.startswith(f"good stored on {receipt}")
    far = live.reef("good", "-2", cwd=tmp_path)
    assert (far.status, "has 1 answer\n" in far.err) == (1, True)


def test_nothing_is_started_where_nothing_was_ever_recorded(tmp_path: Path) -> None:
    for word in ("good", "bad"):
        shown = reef(word)
        assert (shown.status, shown.out) == (1, "")
        assert shown.err.endswith("so there is nothing to rate\n\nhint: reef agents add pi\n")
    assert not Paths.from_environ().data.exists()


def test_without_a_session_here_it_lists_three_answers_and_ends_with_2(live: Live, tmp_path: Path) -> None:
    receipts = [live.chat(f"question {number}", "unrated") for number in range(4)]
    shown = live.reef("good", "-s", "unrated", cwd=tmp_path)
    assert (shown.status, shown.out) == (2, "")
    listed = [line.split()[1] for line in shown.err.splitlines() if line.startswith("  ")]
    assert listed == receipts[:0:-1]
    assert shown.err.endswith(f"hint: reef good --receipt {receipts[-1]}\n")
    chosen = live.reef("good", "--receipt", receipts[0][:10], "-s", "unrated", cwd=tmp_path)
    assert chosen.status == 0
    assert report_on(live, receipts[0])[0]["score"] == 1.0


def test_on_a_terminal_it_asks_which_one(live: Live, tmp_path: Path) -> None:
    receipts = [live.chat(f"question {number}", "asked") for number in range(3)]
    status, shown = live.on_terminal("bad", "-s", "asked", keys=[("which one?", "2\r")], cwd=tmp_path)
    assert status == 0, shown
    assert report_on(live, receipts[1])[0]["score"] == 0.0
    status, _ = live.on_terminal("bad", "-s", "asked", keys=[("which one?", "\r")], cwd=tmp_path)
    assert status == 1
    assert report_on(live, receipts[2]) == []


def test_nothing_to_rate_is_said(live: Live, tmp_path: Path) -> None:
    live.reef("scenarios", "create", "silent")
    shown = live.reef("good", "-s", "silent", cwd=tmp_path)
    assert (shown.status, "has no answer to rate yet" in shown.err) == (1, True)


def test_report_sends_everything_and_the_same_id_twice_is_one_report(live: Live) -> None:
    receipt = live.chat("report on me", "reported")
    words = ["report", receipt[:12], "--score", "0.5", "--feedback", "fine", "--metadata", '{"task": {"name": "t"}}']
    words += ["--id", "ab" * 16, "-s", "reported"]
    assert live.reef(*words).out == f"report {'ab' * 16} stored on {receipt}\n"
    assert live.reef(*words).status == 0
    stored = report_on(live, receipt)
    assert [(r["score"], r["feedback"], r["metadata"]) for r in stored] == [(0.5, "fine", {"task": {"name": "t"}})]
    words[3] = "0.6"
    conflict = live.reef(*words, "--json")
    assert (conflict.status, json.loads(conflict.err)["error"]["code"]) == (1, "conflict")


def test_a_report_on_an_unknown_receipt_names_it(live: Live) -> None:
    shown = live.reef("report", "f" * 32, "--score", "1")
    assert (shown.status, "f" * 32 in shown.err) == (1, True)


def test_metadata_must_be_an_object(live: Live) -> None:
    for text in ("[1]", "{"):
        shown = live.reef("report", "--metadata", text)
        assert (shown.status, "--metadata" in shown.err) == (2, True)


def test_an_ask_that_is_refused_ends_with_1_and_says_why(live: Live) -> None:
    live.reef("scenarios", "create", "refused", "--recipe", "reefine")
    shown = live.reef("ask", "[[propose this is no JSON]]", "--wait", "-s", "refused")
    assert shown.status == 1
    lines = shown.out.splitlines()
    assert lines[0].startswith("ask #1 ")
    assert lines[1].split()[0] in ENDED
    assert "propose" in shown.err
    row = live.json("asks", "show", "1", "-s", "refused")
    assert row["state"] in ENDED
    assert row["reason"]
    again = live.reef("asks", "watch", "1", "-s", "refused", "--json")
    assert (again.status, json.loads(again.out)["settled"]) == (1, True)


def test_an_ask_that_is_not_settled_in_time_ends_with_2_and_can_be_cancelled(live: Live) -> None:
    live.reef("scenarios", "create", "slow", "--recipe", "reefine")
    # Words need no quotes.
    shown = live.reef("ask", "[[slow 60s]]", "be", "brief", "--wait", "--timeout", "1", "-s", "slow")
    assert live.json("asks", "show", "1", "-s", "slow")["text"] == "[[slow 60s]] be brief"
    assert shown.status == 2
    assert "it goes on: reef asks watch 1 -s slow" in shown.err
    assert live.reef("asks", "cancel", "1", "-s", "slow").out == "ask #1 cancelled\n"
    assert live.reef("asks", "watch", "#1", "-s", "slow").status == 1
    assert live.json("steps", "list", "-s", "slow")[0]["state"] == "cancelled"


def test_ctrl_c_while_waiting_says_that_the_ask_goes_on(
    live: Live, started: Callable[..., subprocess.Popen[str]]
) -> None:
    live.reef("scenarios", "create", "waiting", "--recipe", "reefine")
    child = started("ask", "[[slow 60s]] be brief", "--wait", "-s", "waiting", env=live.env)
    assert child.stderr is not None
    assert "propose" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert (child.returncode, err.splitlines()[-1]) == (130, "the ask goes on: reef asks watch 1 -s waiting")
    assert live.json("asks", "show", "1", "-s", "waiting")["state"] == "running"
    live.reef("asks", "cancel", "1", "-s", "waiting")


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "empty"), (" ", "empty"), ("x" * 4001, "4000"), (f"use sk-ant-{'a1' * 12} now", "credential")],
    ids=["empty", "blank", "too long", "credential"],
)
def test_a_bad_ask_is_refused_and_stored_nowhere(live: Live, text: str, message: str) -> None:
    before = len(live.json("asks", "list", "-s", "grown"))
    shown = live.reef("ask", text, "-s", "grown")
    assert shown.status == 1
    assert message in shown.err
    assert "hint: " in shown.err
    assert "{" not in shown.err, "a hint is for the shell, not for a program"
    assert "a1a1a1" not in shown.err
    assert len(live.json("asks", "list", "-s", "grown")) == before


def test_an_ask_reads_stdin_and_carries_requirements(live: Live) -> None:
    live.reef("scenarios", "create", "needing", "--recipe", "reefine")
    queued = live.reef(
        "ask", "-", "--requires", "env:TOKEN", "--requires", "binary:gh=gh --version", "-s", "needing", "--json",
        stdin="[[slow 60s]] open pull requests\n",
    )  # fmt: skip
    assert queued.status == 0, queued.err
    row = live.json("asks", "show", str(json.loads(queued.out)["number"]), "-s", "needing")
    assert row["text"] == "[[slow 60s]] open pull requests"
    assert [(need["kind"], need["name"]) for need in row["requires"]] == [("env", "TOKEN"), ("binary", "gh")]
    shown = live.reef("asks", "show", "1", "-s", "needing", env={"TOKEN": "x"}).out.splitlines()
    assert next(line for line in shown if line.startswith("needs")) == "needs  env TOKEN"
    assert "needs  env TOKEN (not set)" in live.reef("asks", "show", "1", "-s", "needing").out
    live.reef("asks", "cancel", "1", "-s", "needing")


def test_a_recipe_that_does_not_learn_takes_no_ask(live: Live) -> None:
    assert live.reef("ask", "be brief").status == 1


DECIDING = (
    ("versions", "promote", "v3", "-s", "grown", "--yes"),
    ("versions", "rollback", "v1", "-s", "grown", "--yes"),
    ("versions", "install", "-s", "grown"),
    ("agents", "add", "pi"),
    ("scenarios", "create", "by-an-agent"),
    ("scenarios", "archive", "grown"),
    ("scenarios", "restore", "grown"),
    ("asks", "cancel", "1", "-s", "grown"),
    ("steps", "cancel", "1", "-s", "grown"),
    ("records", "list"),
    ("records", "show", "0" * 32),
    ("reports", "list"),
    ("reports", "show", "0" * 32),
    ("use", "grown"),
    ("down",),
    ("up", "--no-at-login"),
)


@pytest.mark.parametrize("command", DECIDING, ids=lambda words: " ".join(words[:2]))
def test_an_agents_session_decides_nothing(live: Live, command: tuple[str, ...], tmp_path: Path) -> None:
    _, token = live.session(tmp_path)
    shown = live.reef(*command, env={"REEF_SESSION": token})
    assert (shown.status, shown.out) == (5, "")
    assert len(shown.err.splitlines()) == 1
    assert shown.err.startswith("error: an agent's session cannot ")


def test_a_wrapper_among_the_parents_is_enough(live: Live) -> None:
    # The module name stands on the wrapper's command line, where a removed variable cannot hide it.
    inner = f"import subprocess, sys; sys.exit(subprocess.call([{REEF!r}, 'versions', 'promote', 'v3', '--yes']))"
    outer = [sys.executable, "-c", inner, "-m", "reef.harness.wrapper"]
    done = subprocess.run(outer, env={**os.environ, **live.env}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5
    assert (
        done.stderr
        == "error: an agent's session cannot promote a version; the person does that in a shell of their own\n"
    )


def test_a_rating_inside_a_session_is_stored_as_the_agents(live: Live, tmp_path: Path) -> None:
    session, token = live.session(tmp_path)
    receipt = live.chat("from inside", token=token)
    other, _ = live.session(tmp_path)
    assert session != other
    done = live.reef("good", env={"REEF_SESSION": token}, cwd=tmp_path)
    assert done.status == 0, done.err
    assert live.reef("bad", env={"REEF_SESSION": token}, cwd=tmp_path).out.startswith("bad instead of good on ")
    assert live.reef("undo", env={"REEF_SESSION": token}, cwd=tmp_path).status == 0
    assert [(r["source"], r["score"]) for r in report_on(live, receipt)] == [("agent", 1.0)]
    assert live.json("records", "show", receipt)["score"] is None
    assert live.reef("undo", env={"REEF_SESSION": token}, cwd=tmp_path).status == 0
    assert report_on(live, receipt) == []
    told = live.reef("report", receipt, "--score", "0.3", env={"REEF_SESSION": token})
    assert told.status == 0, told.err
    assert [r["source"] for r in report_on(live, receipt)] == ["agent"]


def test_an_agent_may_ask_for_a_change_of_its_own_scenario(live: Live, tmp_path: Path) -> None:
    live.reef("scenarios", "create", "inside", "--recipe", "reefine")
    session, token = live.session(tmp_path, "inside")
    env = {"REEF_SESSION": token, "REEF_SESSION_ID": session, "REEF_SCENARIO": "inside"}
    assert live.reef("ask", "[[slow 60s]] be brief", env=env).status == 0
    row = live.json("asks", "show", "1", "-s", "inside")
    assert (row["source"], row["session"]) == ("agent", session)
    live.reef("asks", "cancel", "1", "-s", "inside")
