"""Scenarios, sessions, asks, steps, versions and events as rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reef.errors import Conflict, NotFound
from reef.ids import new_id
from reef.records import rows
from reef.records.reader import Reader
from reef.records.writer import Writer
from tests.unit.records.calling import opened, recorded


def run(writer: Writer, do: Callable[..., Any], /, *arguments: Any, **fields: Any) -> Any:
    return writer.submit(lambda conn: do(conn, *arguments, **fields)).result(30)


def scenario(writer: Writer, name: str = "default") -> None:
    run(writer, rows.add_scenario, name, recipe="reefine", adapter="pi", state="ready", config={"batch": 4})


def test_a_scenario_is_added_once_whatever_the_case_of_its_name(writer: Writer, reader: Reader) -> None:
    assert run(writer, rows.add_scenario, "Work", recipe="basic", adapter="pi") is True
    assert run(writer, rows.add_scenario, "work", recipe="reefine", adapter="pi") is False
    assert [row["name"] for row in reader.scenarios()] == ["Work"]
    assert reader.scenario("WORK")["recipe"] == "basic"
    with pytest.raises(NotFound, match="nope"):
        reader.scenario("nope")


def test_a_half_made_scenario_can_be_finished_or_removed_and_a_ready_one_stays(writer: Writer, reader: Reader) -> None:
    for name in ("kept", "undone"):
        run(writer, rows.add_scenario, name, recipe="basic", adapter="pi")
    run(writer, rows.set_scenario, "kept", state="ready", config={"a": [1]}, engine="embedded")
    for name in ("kept", "undone"):
        run(writer, rows.remove_scenario, name)
    assert [(row["name"], row["state"], row["config"], row["engine"]) for row in reader.scenarios()] == [
        ("kept", "ready", {"a": [1]}, "embedded")
    ]
    with pytest.raises(NotFound):
        run(writer, rows.set_scenario, "undone", state="ready")


def test_a_sessions_token_opens_it_until_it_is_closed(writer: Writer, reader: Reader) -> None:
    hash = b"h" * 32
    id = run(
        writer, rows.open_session, "default", adapter="pi", version=2, cwd="/project", token_hash=hash, pid=7, title="t"
    )
    found = run(writer, rows.session_by_token_hash, hash)
    assert found | {"opened_at": ""} == {
        "id": id, "scenario": "default", "kind": "agent", "adapter": "pi", "version": 2, "step": None, "key": id,
        "cwd": "/project", "pid": 7, "opened_at": "",
    }  # fmt: skip
    assert run(writer, rows.session_by_token_hash, b"x" * 32) is None
    assert run(writer, rows.close_session, id) is True
    assert run(writer, rows.session_by_token_hash, hash) is None
    assert run(writer, rows.close_session, id) is False
    assert reader.session(id)["closed_at"] is not None


def test_two_sessions_cannot_have_one_token(writer: Writer) -> None:
    run(writer, rows.open_session, "default", token_hash=b"h" * 32)
    with pytest.raises(Exception, match="UNIQUE"):
        run(writer, rows.open_session, "default", token_hash=b"h" * 32)


def test_asks_are_numbered_within_their_scenario(writer: Writer, reader: Reader) -> None:
    numbers = [run(writer, rows.add_ask, name, f"do {n}")[1] for n, name in enumerate(["a", "a", "b", "a"])]
    assert numbers == [1, 2, 1, 3]
    assert [(row["number"], row["text"]) for row in reader.asks("a")] == [(3, "do 3"), (2, "do 1"), (1, "do 0")]
    assert len(reader.asks()) == 4


def test_a_repeated_ask_is_one_ask_and_other_content_under_its_id_is_refused(writer: Writer, reader: Reader) -> None:
    id = new_id()
    first = run(writer, rows.add_ask, "default", "do it", id=id, content_hash=b"1", requires=[{"name": "KEY"}])
    assert first == (id, 1, True)
    assert run(writer, rows.add_ask, "default", "do it", id=id, content_hash=b"1") == (id, 1, False)
    for arguments, hash in ((("default", "do it"), b"2"), (("default", "other"), b"1"), (("else", "do it"), b"1")):
        with pytest.raises(Conflict, match=id):
            run(writer, rows.add_ask, *arguments, id=id, content_hash=hash)
    assert reader.ask(id)["requires"] == [{"name": "KEY"}]
    assert len(reader.asks()) == 1


def test_an_ask_settles_with_its_time_and_shows_the_version_of_its_step(writer: Writer, reader: Reader) -> None:
    id, _, _ = run(writer, rows.add_ask, "default", "do it", session="s")
    number = run(writer, rows.add_step, "default", recipe="reefine", proposer="model", policy="reach", asks=[id])
    run(writer, rows.set_ask, id, state="running", step=number)
    assert reader.ask(id)["settled_at"] is None
    run(writer, rows.update_step, "default", number, version=2)
    run(writer, rows.set_ask, id, state="published", reason="it was good")
    row = reader.ask(id)
    assert (row["state"], row["step"], row["version"], row["reason"]) == ("published", number, 2, "it was good")
    assert row["settled_at"] is not None
    with pytest.raises(NotFound):
        run(writer, rows.set_ask, new_id(), state="failed")


def test_a_step_keeps_everything_that_it_was_given(writer: Writer, reader: Reader) -> None:
    number = run(writer, rows.add_step, "default", recipe="reefine", proposer="model", pid=99)
    evaluation = {"policy": "reach", "groups": [{"name": "reach", "status": "pass", "detail": "", "seconds": 1.5}]}
    run(
        writer, rows.update_step, "default", number, evaluation=evaluation, mutations=[{"op": "create", "id": "r"}],
        consumed={"reports": ["x"]}, metrics={"loss": 0.5}, notes={"n": 10**30}, candidate="c" * 40, summary="s",
        recipe_state={"seen": 3},
    )  # fmt: skip
    run(writer, rows.add_activity, "default", number, "proposing", "asks the model \ud800")
    run(writer, rows.add_activity, "default", number, "checking", "no", failed=True)
    run(writer, rows.add_episode, "default", number, side="candidate", purpose="reach", state="ok", detail={"a": 1})
    assert reader.step("default", number)["ended_at"] is None
    run(writer, rows.update_step, "default", number, state="rejected", reason="no change")
    row = reader.step("default", number)
    assert (row["state"], row["reason"], row["summary"], row["candidate"]) == ("rejected", "no change", "s", "c" * 40)
    assert row["evaluation"] == evaluation
    assert (row["mutations"], row["consumed"]) == ([{"op": "create", "id": "r"}], {"reports": ["x"]})
    assert (row["metrics"], row["notes"]) == ({"loss": 0.5}, {"n": 10**30})
    assert [(line["kind"], line["text"], line["failed"]) for line in row["activity"]] == [
        ("proposing", "asks the model ?", False), ("checking", "no", True),
    ]  # fmt: skip
    assert [(episode["side"], episode["detail"]) for episode in row["episodes"]] == [("candidate", {"a": 1})]
    assert row["ended_at"] is not None
    listed = reader.steps("default")[0]
    assert (listed["number"], listed["episodes"], listed["activity"]) == (number, [], [])
    stored = run(writer, lambda conn: conn.execute("SELECT state_json FROM steps").fetchone()[0])
    assert stored == '{"seen":3}'


def test_steps_are_numbered_within_their_scenario_and_unknown_ones_are_an_error(writer: Writer, reader: Reader) -> None:
    assert [run(writer, rows.add_step, name, recipe="r") for name in ("a", "b", "a")] == [1, 1, 2]
    with pytest.raises(NotFound):
        run(writer, rows.update_step, "a", 9, state="failed")
    with pytest.raises(NotFound):
        reader.step("b", 2)


def test_versions_have_one_head_and_pending_ones_are_not_it(writer: Writer, reader: Reader) -> None:
    scenario(writer)
    for n, (operation, state) in enumerate([("base", "published"), ("training", "published"), ("training", "pending")]):
        number = run(
            writer, rows.add_version, "default", release_id=f"{n}" * 40, content_id="t" * 40, operation=operation,
            state="publishing", parent=f"{n - 1}" * 40 if n else None, evaluation={"policy": "reach"},
            components_json='[{"name":"harness"}]',
        )  # fmt: skip
        run(writer, rows.set_version, "default", number, state=state)
    versions = reader.versions("default")
    assert [(row["version"], row["current"], row["pending"]) for row in versions] == [
        (3, False, True), (2, True, False), (1, False, False),
    ]  # fmt: skip
    assert versions[1]["evaluation"] == {"policy": "reach"}
    assert versions[1]["components"] == [{"name": "harness"}]
    assert versions[1]["parent_release_id"] == "0" * 40
    assert reader.version("default", 1)["operation"] == "base"
    assert (reader.scenario("default")["version"], reader.scenario("default")["release_id"]) == (2, "1" * 40)
    with pytest.raises(NotFound):
        reader.version("default", 4)
    with pytest.raises(NotFound):
        run(writer, rows.set_version, "default", 4, state="conflict")


def test_a_field_that_is_no_column_is_refused_and_nothing_is_written(writer: Writer, reader: Reader) -> None:
    number = run(writer, rows.add_step, "default", recipe="r")
    with pytest.raises(TypeError, match="colour"):
        run(writer, rows.update_step, "default", number, reason="x", colour="blue")
    assert reader.step("default", number)["reason"] is None


def test_events_come_back_in_order_and_resume_after_a_sequence(writer: Writer, reader: Reader) -> None:
    assert reader.last_event() == 0
    for n in range(5):
        assert run(writer, rows.add_event, "step_activity", "default", {"step": n}, "running") == n + 1
    assert [event["ids"]["step"] for event in reader.events()] == [0, 1, 2, 3, 4]
    assert [event["sequence"] for event in reader.events(after=3)] == [4, 5]
    assert [event["sequence"] for event in reader.events(after=0, limit=2)] == [1, 2]
    assert reader.events(after=5) == []
    assert reader.last_event() == 5


def test_counts_show_each_scenario_as_the_status_does(writer: Writer, reader: Reader) -> None:
    scenario(writer)
    scenario(writer, "other")
    recorded(writer), opened(writer), recorded(writer, scenario="other")
    run(writer, rows.add_ask, "default", "do it")
    step = run(writer, rows.add_step, "default", recipe="reefine")
    for state in ("published", "pending"):
        run(
            writer, rows.add_version, "default", release_id="r" * 40, content_id="c" * 40, operation="base", state=state
        )
    counts = reader.counts()
    assert counts["records"]["count"] == 3
    assert counts["records"]["open"] == 1
    assert counts["records"]["bytes"] > 0
    assert counts["records"]["last_at"] == reader.records(limit=1)[0]["started_at"]
    assert counts["scenarios"] == [
        {
            "name": "default", "recipe": "reefine", "adapter": "pi", "head": 1, "pending": [2], "pinned": [],
            "records": 2, "reports": 0, "agent_reports": 0, "asks_open": 1, "running_step": step,
        },
        {
            "name": "other", "recipe": "reefine", "adapter": "pi", "head": None, "pending": [], "pinned": [],
            "records": 1, "reports": 0, "agent_reports": 0, "asks_open": 0, "running_step": None,
        },
    ]  # fmt: skip


def test_no_key_reaches_a_row_whoever_writes_it(writer: Writer, reader: Reader) -> None:
    key = "sk-" + "a1B2" * 6
    run(writer, rows.add_scenario, "s", recipe="reefine", adapter=key, engine=key, config={"a": {key: [key]}})
    session = run(writer, rows.open_session, "s", key=key, cwd=f"/{key}", adapter=key, title=key)
    ask, number, _ = run(writer, rows.add_ask, "s", key, client={"platform": key}, content_hash=b"h" * 32)
    assert run(writer, rows.add_ask, "s", key, id=ask, content_hash=b"h" * 32) == (ask, number, False)
    run(writer, rows.set_ask, ask, state="failed", reason=f"no {key}")
    step = run(writer, rows.add_step, "s", recipe="reefine", summary=key, notes={"a": key})
    run(writer, rows.update_step, "s", step, reason=key, evaluation={"groups": [{"name": key}]}, recipe_state=[key])
    run(writer, rows.add_activity, "s", step, "propose", f"asking {key}")
    run(writer, rows.add_episode, "s", step, side="current", purpose="reach", state="failed", task=key, detail=[key])
    release = {"release_id": "0" * 40, "content_id": "1" * 40, "operation": "training"}
    run(writer, rows.add_version, "s", summary=key, requires_json=f'[{{"name":"{key}"}}]', **release)
    assert reader.step("s", step)["evaluation"] == {"groups": [{"name": "[redacted:openai-key]"}]}
    assert reader.version("s", 1)["requires"] == [{"name": "[redacted:openai-key]"}]
    assert [row["id"] for row in reader.sessions(cwd=f"/{key}")] == [session]
    opened(writer, session=key, scenario="s")
    assert reader.session(session)["calls"] == 1
    for file in writer.path.parent.glob("reef.db*"):
        assert key.encode() not in file.read_bytes()


def test_half_a_surrogate_pair_in_a_json_column_poisons_no_reader(writer: Writer, reader: Reader) -> None:
    step = run(writer, rows.add_step, "s", recipe="reefine", notes={"a": "\ud800", "b": 10**30})
    assert reader.step("s", step)["notes"] == {"a": "?", "b": 10**30}
