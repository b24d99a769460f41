"""Events: ids and states, in order, resumed where a listener left off."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from reef import events
from reef.records import rows
from reef.records.writer import Writer
from tests.http.running import Home, chat


def listen(home: Home, count: int, query: str = "", **headers: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with home.http(home.key, **headers).stream("GET", f"/reef/events{query}") as reply:
        assert reply.headers["content-type"] == "text/event-stream"
        for line in reply.iter_lines():
            if line.startswith("data:"):
                found.append(json.loads(line[5:]))
            if len(found) == count:
                return found
    return found


def test_everything_since_a_sequence_is_sent_in_order_and_resumed_by_its_id(home: Home) -> None:
    for _ in range(6):
        chat(home.nobody, "a secret text")
    found = listen(home, 6, "?after=0")
    assert [event["sequence"] for event in found] == sorted({event["sequence"] for event in found})
    rest = listen(home, 3, "", **{"last-event-id": str(found[2]["sequence"])})
    assert rest == found[3:6]
    assert "a secret text" not in json.dumps(found)


def test_no_event_of_a_burst_is_skipped_while_more_come(new_home: Callable[..., Home]) -> None:
    def burst(conn: sqlite3.Connection) -> None:
        for number in range(3000):
            rows.add_event(conn, events.STEP_ACTIVITY, "default", {"step": 1}, str(number))

    home = new_home().start()
    home.stop()
    writer = Writer(home.paths.database)
    writer.submit(burst).result()
    writer.close()
    home.start()
    with home.person.stream("GET", "/reef/events?after=0") as reply:
        told = (json.loads(line[5:]) for line in reply.iter_lines() if line.startswith("data:"))
        found = [next(told)]
        receipts = [chat(home.nobody, "hello").headers["x-reef-agent-record-id"] for _ in range(5)]
        while found[-1]["ids"].get("record") != receipts[-1] or found[-1]["kind"] != "record_settled":
            found.append(next(told))
    first, last = found[0]["sequence"], found[-1]["sequence"]
    assert [event["sequence"] for event in found] == list(range(first, last + 1))
    assert [event["state"] for event in found if event["kind"] == "step_activity"] == [str(n) for n in range(3000)]


def test_a_listener_sees_what_happens_after_it_came(home: Home) -> None:
    with home.person.stream("GET", "/reef/events") as reply:
        lines = reply.iter_lines()
        assert next(lines).startswith(":")
        receipt = chat(home.nobody, "hello").headers["x-reef-agent-record-id"]
        told = (json.loads(line[5:]) for line in lines if line.startswith("data:"))
        event = next(event for event in told if event["kind"] == "record_settled")
    assert set(event) == {"sequence", "at", "kind", "scenario", "ids", "state"}
    assert (event["ids"], event["scenario"], event["state"]) == ({"record": receipt}, "default", "complete")


def test_a_place_to_resume_from_that_is_no_number_is_400(home: Home) -> None:
    assert home.person.get("/reef/events?after=x").status_code == 400
    assert home.person.get("/reef/events?after=" + "0" * 20 + "9" * 30).status_code == 400
