"""Forgetting and pruning over HTTP and by command: shown, asked, done, and only for the person."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx

from reef.records.forget import write_down
from reef.records.writer import Writer
from tests.http.running import Home, chat, wait_for
from tests.unit.records.calling import recorded


def lines(reply: httpx.Response) -> list[dict[str, Any]]:
    assert reply.status_code == 200, reply.text
    return [json.loads(line) for line in reply.text.splitlines()]


def reef(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "reef.cli.app", *arguments],
        env=home.env,
        capture_output=True,
        text=True,
        timeout=60,
    )


def called(home: Home, text: str) -> str:
    reply = chat(home.nobody, text)
    return reply.headers["x-reef-agent-record-id"]


def test_a_record_is_shown_and_then_forgotten_with_the_token_of_what_was_shown(home: Home) -> None:
    receipt = called(home, "my address is Elm Street")
    home.nobody.post("/reef/report", json={"score": 1, "references": [receipt]})
    found = lines(home.person.post("/reef/forget/look", json={"receipts": [receipt]}))[-1]["found"]
    assert (found["receipts"], len(found["reports"])) == ([receipt], 1)
    wrong = lines(home.person.post("/reef/forget", json={"expected": "0" * 32}))[-1]
    assert wrong["error"]["code"] == "conflict"
    done = lines(home.person.post("/reef/forget", json={"expected": found["token"]}))
    assert done[-1]["forgotten"]["records"] == 1 and "progress" in done[0]
    assert home.person.get(f"/reef/records/{receipt}").status_code == 404
    assert home.person.get(f"/reef/reports?receipt={receipt}").json()["reports"] == []
    assert home.nobody.get("/reef/status").json()["records"]["pruned"]["forgotten"] == 1


def test_calls_are_recorded_while_records_are_forgotten(home: Home) -> None:
    receipts = [called(home, f"Elm Street {number}") for number in range(30)]
    found = lines(home.person.post("/reef/forget/look", json={"matching": "elm street"}))[-1]["found"]
    assert set(receipts) <= set(found["receipts"])
    kept = []
    with home.person.stream("POST", "/reef/forget", json={"expected": found["token"]}) as reply:
        for line in reply.iter_lines():
            kept.append(called(home, "something else"))
            last = json.loads(line)
    assert last["forgotten"]["records"] == found["records"]
    assert [home.person.get(f"/reef/records/{receipt}").status_code for receipt in kept] == [200] * len(kept)
    assert home.nobody.get("/reef/status").json()["records"]["lost"] == 0


def test_pruned_bodies_say_so_and_their_rows_and_receipts_stay(home: Home) -> None:
    receipt = called(home, "an old body")
    done = lines(home.person.post("/reef/records/prune", json={"keep_bytes": 0}))[-1]["pruned"]
    assert done["records"] >= 1 and done["bodies_after"] < done["bodies_before"]
    row = home.person.get(f"/reef/records/{receipt}").json()
    assert row["state"] == "complete" and row["pruned_at"] and row["request_text"] is None
    refused = home.person.get(f"/reef/records/{receipt}/request")
    assert refused.status_code == 404 and "body pruned" in refused.json()["error"]["message"]
    assert home.nobody.get("/reef/status").json()["records"]["pruned"]["records"] >= done["records"]
    again = lines(home.person.post("/reef/records/prune", json={"keep_bytes": 0}))[-1]["pruned"]
    assert again["records"] == 0


def test_the_command_shows_what_goes_asks_and_forgets(home: Home) -> None:
    receipt = called(home, "Elm Street again")
    shown = reef(home, "records", "forget", receipt, "--dry-run")
    assert shown.returncode == 0 and shown.stdout.startswith("records   1 record")
    unsaid = reef(home, "records", "forget", receipt)
    assert unsaid.returncode == 2 and "needs your yes" in unsaid.stderr
    assert home.person.get(f"/reef/records/{receipt}").status_code == 200
    done = reef(home, "records", "forget", receipt, "--yes")
    assert done.returncode == 0 and done.stdout.startswith("forgot 1 record"), done.stderr
    assert home.person.get(f"/reef/records/{receipt}").status_code == 404
    nothing = reef(home, "records", "forget", "--finish")
    assert (nothing.returncode, nothing.stdout) == (0, "nothing is left to forget\n")


def test_an_agents_session_cannot_forget(home: Home, session_token: str) -> None:
    receipt = called(home, "Elm Street once more")
    inside = home.env | {"REEF_SESSION": session_token}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "reef.cli.app", "records", "forget", receipt, "--yes"],
        env=inside, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 5 and home.person.get(f"/reef/records/{receipt}").status_code == 200


def test_a_forgetting_that_a_killed_daemon_left_is_finished_by_the_next_start(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    receipts = [called(home, f"Elm Street {number}") for number in range(3)]
    home.stop(signal.SIGKILL)
    writer = Writer(home.paths.database)
    plan = {"receipts": receipts, "sessions": [], "reports": [], "asks": [], "steps": [], "tasks": [], "versions": []}
    writer.submit(partial(write_down, plan=plan | {"keep": []})).result(30)
    writer.close()
    home.start()
    person = home.person
    wait_for(lambda: person.get("/reef/status").json()["records"]["pruned"]["forgotten"] == 3)
    assert [person.get(f"/reef/records/{receipt}").status_code for receipt in receipts] == [404] * 3


def test_bodies_over_the_limit_are_pruned_without_being_asked(new_home: Callable[..., Home]) -> None:
    home = new_home()
    home.paths.make()
    writer = Writer(home.paths.database)
    receipts = [recorded(writer, b"{}", os.urandom(200_000)) for _ in range(5)]
    writer.close()
    home.start(["records.max-bytes", "500000"])
    person = home.person
    wait_for(lambda: person.get("/reef/status").json()["records"]["pruned"]["records"] >= 3)
    pruned = [bool(person.get(f"/reef/records/{receipt}").json()["pruned_at"]) for receipt in receipts]
    assert pruned == [True, True, True, False, False]
    assert "bodies of 3 pruned" in reef(home, "status").stdout
