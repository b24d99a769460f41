"""Records that were made elsewhere come in by the public protocol, and by the public client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reef_client import record_import

from reef.ids import new_id
from reef.records.importing import id_of
from tests.http.running import Home, chat

REPLY = {"choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}]}


def inference(id: str, text: str = "two and two?", **more: Any) -> dict[str, Any]:
    payload = {"model": "m", "messages": [{"role": "user", "content": text}], "response": REPLY} | more
    return {"agent_record_id": id, "request_type": "inference", "payload": payload}


def report(id: str, *references: str, score: float = 1.0) -> dict[str, Any]:
    payload = {"score": score, "references": list(references)}
    return {"agent_record_id": id, "request_type": "report", "payload": payload}


def send(home: Home, *records: Any, scenario: str = "imports") -> Any:
    headers = {"x-reef-scenario": scenario}
    return home.person.post("/reef/records/batch", json={"records": list(records)}, headers=headers)


def test_the_published_clients_import_fills_a_scenario_and_goes_on_where_it_stopped(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [new_id() for _ in range(5)]
    lines = [inference(id, f"question {number}") for number, id in enumerate(ids)]
    lines.append(report(str(new_id()), ids[0], score=0.5))
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run() -> int:
        return record_import.import_records_file(
            file, url=home.url, scenario="public-import", token=home.key, batch_size=2
        )

    assert (run(), run()) == (6, 6)
    assert capsys.readouterr().err.count("Acknowledged") == 3
    (tmp_path / "records.jsonl.reef-import.json").unlink()
    assert run() == 6
    found = home.person.get("/reef/records", params={"scenario": "public-import"}).json()
    assert found["total"] == 5
    assert [row["preview"] for row in found["records"]] == [f"question {number}" for number in (4, 3, 2, 1, 0)]
    assert {(row["state"], row["version"], row["source"]) for row in found["records"]} == {
        ("complete", None, "program")
    }
    shown = home.person.get(f"/reef/records/{ids[0]}").json()
    assert [(one["score"], one["source"]) for one in shown["reports"]] == [(0.5, "program")]
    stored = home.person.get(f"/reef/records/{ids[0]}/request").content
    assert json.loads(stored) == {"model": "m", "messages": [{"role": "user", "content": "question 0"}]}


def test_a_batch_is_stored_whole_or_not_at_all(home: Home) -> None:
    first, second = new_id(), new_id()
    reply = send(home, inference(first), report(new_id(), second), inference(second))
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith(f"records[1]: there is no record {second}")
    assert home.person.get(f"/reef/records/{first}").status_code == 404
    assert send(home, inference(first), inference(second), report(new_id(), second, first)).status_code == 200


def test_receipts_come_in_the_order_of_the_batch_with_the_ids_as_they_were_sent(home: Home) -> None:
    ids = ["3f0c1f6e-1111-4222-8333-444455556666", "turn 1 of session 7", new_id()]
    reply = send(home, *(inference(id) for id in ids), report("verdict", ids[1]))
    assert reply.json()["records"] == [
        *({"agent_record_id": id, "request_type": "inference", "scenario": "imports"} for id in ids),
        {"agent_record_id": "verdict", "request_type": "report", "scenario": "imports"},
    ]
    shown = home.person.get(f"/reef/records/{id_of(ids[1])}").json()
    assert shown["notes"]["imported"] == {"id": ids[1]}
    assert [one["id"] for one in shown["reports"]] == [id_of("verdict")]


def test_an_id_stands_for_one_content(home: Home) -> None:
    id, other = new_id(), new_id()
    assert send(home, inference(id)).status_code == 200
    assert send(home, inference(id), inference(id)).status_code == 200
    clash = send(home, inference(other), inference(id, "another question"))
    assert (clash.status_code, clash.json()["error"]["code"]) == (409, "conflict")
    assert home.person.get(f"/reef/records/{other}").status_code == 404
    assert send(home, inference(id), scenario="imports-2").status_code == 409
    assert send(home, report(id)).status_code == 409
    served = chat(home.person, "hello").headers["x-reef-agent-record-id"]
    assert send(home, inference(served)).status_code == 409


def test_a_batch_over_one_mebibyte_is_refused_and_a_large_record_comes_alone(home: Home) -> None:
    large = inference(new_id(), "x" * (1100 * 1024))
    assert send(home, large).status_code == 413
    reply = home.person.post("/reef/records", json=large, headers={"x-reef-scenario": "imports"})
    assert reply.json() == {
        "agent_record_id": large["agent_record_id"], "request_type": "inference", "scenario": "imports",
    }  # fmt: skip
    shown = home.person.get(f"/reef/records/{large['agent_record_id']}/request").json()
    assert shown["messages"] == large["payload"]["messages"]


def test_bytes_that_json_libraries_change_are_stored_as_they_came(home: Home) -> None:
    asked = b'{"messages": [ ],"n":%s,"a":1,"a":2,"x":NaN,"t":"\\ud83d"}' % (b"7" * 5000)
    answered = b'{"choices":[],"big":123456789012345678901234567890.10}'
    id = new_id()
    body = b'{"agent_record_id":"%s","request_type":"inference","payload":%s,"response":%s}}' % (
        id.encode(), asked[:-1], answered,
    )  # fmt: skip
    reply = home.person.post(
        "/reef/records", content=body, headers={"content-type": "application/json", "x-reef-scenario": "imports"}
    )
    assert reply.status_code == 200, reply.text
    assert home.person.get(f"/reef/records/{id}/request").content == asked
    assert home.person.get(f"/reef/records/{id}/response").content == answered


def test_import_is_the_persons_or_the_tokens(home: Home, session_token: str) -> None:
    one = {"records": [inference(new_id())]}
    for credential in (None, session_token):
        assert home.http(credential).post("/reef/records/batch", json=one).status_code == 403
