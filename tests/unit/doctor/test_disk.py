"""`reef disk` counts every byte of a home once and says what each is."""

from __future__ import annotations

import os
from pathlib import Path

from reef.doctor.disk import shares
from reef.paths import Paths
from reef.records import totals
from reef.records.writer import Writer
from tests.unit.records.calling import recorded


def total(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_every_byte_of_a_home_is_counted_once_by_what_it_is(paths: Paths) -> None:
    writer = Writer(paths.database)
    body = os.urandom(300_000)
    recorded(writer, body)
    writer.close()
    for place, size in (
        (paths.versions_git / "objects" / "pack" / "p", 1000),
        (paths.versions_git / "lfs" / "objects" / "w", 2000),
        (paths.steps / "default" / "1" / "log", 30),
        (paths.agents / "pi" / "x", 40),
        (paths.models / "m", 50),
        (paths.harness / "h", 60),
        (paths.cache / "c", 70),
        (paths.daemon_log, 80),
        (paths.data / "reef.db.schema-1", 90),
        (paths.data / "before-restore-2026" / "reef.db", 10),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(bytes(size))
    found = {share.name: share for share in shares(paths)}
    told = {name: share.size for name, share in found.items()}
    names = ("versions", "lfs", "steps", "agents", "models", "harness", "cache", "logs", "backups")
    assert [told[name] for name in names] == [1000, 2000, 30, 40, 50, 60, 70, 80, 100]
    assert 300_000 <= told["bodies"] < 310_000
    assert (found["bodies"].limit, found["logs"].limit) == (20 * 1024**3, 50_000_000)
    assert sum(told.values()) == total(paths.data) + total(paths.state) + total(paths.cache)


def test_a_store_that_cannot_be_read_is_still_counted(paths: Paths) -> None:
    paths.database.write_bytes(b"x" * 5000)
    found = {share.name: share.size for share in shares(paths)}
    assert found["rows"] == 5000
    assert "bodies" not in found


def test_an_empty_home_takes_nothing(paths: Paths) -> None:
    assert sum(share.size for share in shares(paths)) == 0


def test_how_many_records_lost_their_bodies_to_the_limit_is_said(paths: Paths) -> None:
    writer = Writer(paths.database)
    writer.submit(lambda conn: totals.add(conn, totals.PRUNED_RECORDS, 1200)).result(30)
    writer.close()
    about = next(share.about for share in shares(paths) if share.name == "bodies")
    assert about.endswith("those of 1,200 records are pruned")
