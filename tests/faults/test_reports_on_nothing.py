"""A report on nothing is refused by name, with a non-zero exit, and nothing of it is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.ids import new_id
from reef.paths import Paths
from reef.records.reader import Reader
from reef.records.writer import Writer
from tests.cli.conftest import home_environment
from tests.cli.shell import reef
from tests.http.running import Home, chat
from tests.unit.records.calling import recorded


def test_a_receipt_that_does_not_exist_is_named_and_ends_with_1(new_home: Callable[..., Home]) -> None:
    home, unknown = new_home().start(), new_id()
    for words in (("report", unknown, "--score", "1"), ("good", "--receipt", unknown)):
        shown = reef(*words, env=home.env)
        assert (shown.status, shown.out) == (1, "")
        assert f"there is no record {unknown}" in shown.err
    refused = home.nobody.post("/reef/report", json={"score": 1, "references": [unknown]})
    assert (refused.status_code, unknown in refused.json()["error"]["message"]) == (400, True)
    assert home.person.get("/reef/reports").json()["reports"] == []


def test_a_record_whose_bodies_are_pruned_can_still_be_rated(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    receipt = chat(home.nobody, "hello").headers["x-reef-agent-record-id"]
    home.stop()
    writer = Writer(home.paths.database)
    try:
        # As retention leaves it: the row and its receipt stay, the bodies go.
        writer.submit(
            lambda conn: (
                conn.execute(
                    "UPDATE records SET request_part = NULL, request_chain = NULL, response_part = NULL,"
                    " response_chain = NULL WHERE id = ?",
                    (bytes.fromhex(receipt),),
                )
                and None
            )
        ).result(30)
    finally:
        writer.close()
    home.start()
    assert reef("report", receipt, "--score", "1", env=home.env).status == 0
    record = home.person.get(f"/reef/records/{receipt}").json()
    assert (record["score"], record["request_text"]) == (1, None)
    gone = home.person.get(f"/reef/scenarios/default/records/{receipt}")
    assert (gone.status_code, receipt in gone.json()["error"]["message"]) == (404, True)


@pytest.mark.parametrize("command", ["report", "good", "undo", "reports revise"])
def test_while_the_daemon_is_down_a_report_ends_with_3_and_is_kept_nowhere(tmp_path: Path, command: str) -> None:
    env = home_environment(tmp_path) | {"REEF_AUTOSTART": "false"}
    paths = Paths.from_environ(env)
    paths.make()
    writer = Writer(paths.database)
    receipt = recorded(writer)
    writer.close()
    given = {str(tmp_path): [{"word": "good", "report": new_id(), "receipt": receipt, "revision": None}]}
    (paths.state / "last-ratings.json").write_text(json.dumps(given))
    words = {
        "report": ("report", receipt, "--score", "1"),
        "good": ("good", "--receipt", receipt),
        "undo": ("undo",),
        "reports revise": ("reports", "revise", new_id(), "--score", "1"),
    }
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    shown = reef(*words[command], env=env, cwd=tmp_path)
    assert (shown.status, shown.out) == (3, "")
    assert "the daemon is not running" in shown.err and "hint: reef up" in shown.err
    reader = Reader(paths.database)
    assert reader.reports() == []
    reader.close()
    assert {file for file in tmp_path.rglob("*") if file.is_file()} - before <= {
        paths.database.with_name("reef.db-shm"),
        paths.database.with_name("reef.db-wal"),
    }
    assert json.loads((paths.state / "last-ratings.json").read_text()) == given
