"""A publisher whose process is killed at one point of the order: `python -m tests.fakes.dying_publisher POINT WHAT`.

`WHAT` is the publication, in the home of the environment; the scenario `s` must be as far as `PREPARED` says. The kill
is SIGKILL, so nothing is closed, flushed or undone. Exits with 3 when the publication never came to the point.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reef.paths import Paths
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository

POINTS = ("first object", "large file", "objects", "in the first transaction", "row", "ref", "in the second", "settled")
WEIGHTS = "weights/adapter_model.safetensors"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingRepository(Repository):
    """The real repository, which dies when it has come to its point."""

    point = ""

    def _store(self, kind: bytes, data: bytes) -> bytes:
        stored = super()._store(kind, data)
        if self.point == "first object":
            die()
        return stored

    def _kept(self, path: str, content: bytes | Path) -> bytes:
        if self.point == "large file" and path == WEIGHTS:
            folder = self.path / "lfs" / "objects"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".new-half").write_bytes(b"half")
            die()
        return super()._kept(path, content)

    def commit(self, *arguments: Any, **named: Any) -> str:
        return self._after("objects", super().commit(*arguments, **named))

    def republish(self, *arguments: Any, **named: Any) -> str:
        return self._after("objects", super().republish(*arguments, **named))

    def advance(self, scenario: str, release_id: str, expected: str | None) -> None:
        self._after("row", None)
        super().advance(scenario, release_id, expected)
        self._after("ref", None)

    def keep_pending(self, scenario: str, number: int, release_id: str) -> str:
        self._after("row", None)
        return self._after("ref", super().keep_pending(scenario, number, release_id))

    def _after(self, point: str, value: Any) -> Any:
        if self.point == point:
            die()
        return value


def dying_rows(point: str) -> Any:
    """The operations on rows; the last of each transaction dies before its commit."""

    def add_version(conn: sqlite3.Connection, *arguments: Any, **named: Any) -> None:
        rows.add_version(conn, *arguments, **named)
        if point == "in the first transaction":
            die()

    def set_version(conn: sqlite3.Connection, *arguments: Any, **named: Any) -> None:
        rows.set_version(conn, *arguments, **named)
        if point == "in the second":
            die()

    return SimpleNamespace(**{**vars(rows), "add_version": add_version, "set_version": set_version})


async def run(point: str, what: str, facts: Mapping[str, str]) -> None:
    """Make the publication `what` and die at `point`."""
    paths = Paths.from_environ()
    repository = DyingRepository(paths.versions_git)
    repository.ensure()
    repository.point = point
    publisher = Publisher(Writer(paths.database), repository, dying_rows(point))
    if what == "base":
        await publisher.create_base("s", {"harness/rules/base.md": b"base\n"})
    elif what == "rollback":
        await publisher.rollback("s", "v1")
    elif what == "promote":
        await publisher.promote("s", "v3", "v2")
    else:
        await publisher.publish(_proposal(what, facts))
    if point == "settled":
        die()


def _proposal(what: str, facts: Mapping[str, str]) -> Proposal:
    files: dict[str, bytes | Path] = {"harness/rules/base.md": b"base\n", "harness/rules/new.md": b"dying\n"}
    if what == "upgrade":
        return Proposal("s", files, facts["head"], "built-in entries", operation="upgrade")
    if what == "weights":
        files = {WEIGHTS: b"weights"}
    used = {"consumed": [facts["ask"], facts["report"]], "reason": "better"}
    return Proposal(
        "s", files, facts["head"], "the change", step=int(facts["step"]), pending=what == "pending", step_fields=used,
        changes=("weights" if what == "weights" else "harness",),
    )  # fmt: skip


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], dict(word.split("=", 1) for word in sys.argv[3:])))
    sys.exit(3)
