"""Reading the store from any process, read-only, whether the daemon runs or not.

Every method is one or a few short queries whose rows are all fetched before it returns: no transaction is held while a
caller waits. A `Reader` may be used from several threads; they take turns. Rows come in the shapes of
`reef.records.shapes`. Loads neither sqlite-utils nor anything else that takes time.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from reef.errors import Failed, NotFound
from reef.ids import from_blob, spans, to_blob
from reef.records import finding, lists, parts, pins, proposals, reports, search, session_lists, shapes, talks
from reef.records.filters import Filter
from reef.records.schema import open_readonly, refusal

if TYPE_CHECKING:
    from reef.records.exporting import Export

Row = dict[str, Any]
T = TypeVar("T")

_FOLLOWED = """SELECT id FROM records WHERE reply_name = ? AND scenario = ? AND sequence < ?
 ORDER BY sequence DESC LIMIT 1"""

_COUNT_REPORTS = """SELECT scenario, source = 'agent', count(*) FROM reports WHERE withdrawn_at IS NULL
 GROUP BY scenario, source = 'agent'"""


class Reader:
    """Read access to the store at `path`. The file is opened at the first question, and may not be there before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._opened: sqlite3.Connection | None = None

    def close(self) -> None:
        """Let go of the file; a later question opens it again."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def records(
        self, before: int | None = None, after: int | None = None, limit: int = 100, **wanted: Any
    ) -> list[Row]:
        """Records, newest first; `wanted` are the fields of `filters.Filter`.

        `before` and `after` are sequences: the `limit` rows next to `before` on its older side, or next to `after` on
        its newer side.
        """
        return self.query(lambda conn: lists.listed(conn, Filter(**wanted), before, after, limit))

    def count_records(self, **wanted: Any) -> int:
        """How many records `records` would go through with these filters."""
        return self.query(lambda conn: lists.counted(conn, Filter(**wanted)))

    def search(self, typed: str, limit: int = 20, before: int | None = None, **wanted: Any) -> Row:
        """Records by what was said in them, as `finding.find` gives them."""
        return self.query(lambda conn: finding.find(conn, typed, Filter(**wanted), limit, before))

    def search_state(self) -> Row:
        """How many records are `pending` (not in the search index yet) and `cut` (in it in part)."""
        return self.query(search.state)

    def record(self, receipt: str) -> Row:
        """One record, with `attempts`, `notes`, `tags`, `request_hash` besides the list's keys. Raises NotFound.

        `follows_record` is the receipt of the record that it goes on from, None where that is not recorded.
        """
        found = self._all(f"{shapes.SELECT_RECORDS} WHERE records.id = ?", to_blob(receipt))
        if not found:
            raise NotFound(f"there is no record {receipt}", "reef records list")
        details = self._all(f"{shapes.SELECT_RECORD_DETAILS} WHERE id = ?", to_blob(receipt))[0]
        row = shapes.record(found[0]) | shapes.record_details(details)
        earlier = self._all(_FOLLOWED, row["follows"], row["scenario"], row["sequence"]) if row["follows"] else []
        return row | {"follows_record": from_blob(earlier[0][0]) if earlier else None}

    def receipts(self, prefix: str, limit: int = 10, of: Literal["records", "reports"] = "records") -> list[str]:
        """The receipts, or ids of reports, that begin with these hex digits, at most `limit`. Other text finds none."""
        digits = prefix.lower()
        if not digits or len(digits) > 32 or not set(digits) <= set("0123456789abcdef"):
            return []
        low, high = bytes.fromhex(digits.ljust(32, "0")), bytes.fromhex(digits.ljust(32, "f"))
        rows = self._all(f"SELECT id FROM {of} WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?", low, high, limit)
        return [from_blob(row[0]) for row in rows]

    def request_bytes(self, receipt: str) -> bytes | None:
        """The request exactly as received, redacted credentials aside; None when it is not stored. Raises NotFound."""
        return self._body(receipt, "request", "request_hash")

    def response_bytes(self, receipt: str) -> bytes | None:
        """The reply's body, a stream folded to one; None when there is none. Raises NotFound.

        Of a stream that is running, the text that was flushed so far.
        """
        body = self._body(receipt, "response", "response_hash")
        if body is not None:
            return body
        pieces = self._all(
            "SELECT progress.body FROM progress JOIN records ON records.sequence = progress.record"
            " WHERE records.id = ? ORDER BY progress.sequence",
            to_blob(receipt),
        )
        return b"".join(bytes(piece[0]) for piece in pieces) or None

    def raw_bytes(self, receipt: str) -> bytes | None:
        """The event stream as it came, when `records.keep_raw_streams` was on. Raises NotFound."""
        return self._body(receipt, "raw", None)

    def reports(self, scenario: str | None = None, limit: int = 100, **filters: Any) -> list[Row]:
        """Reports, newest first; `filters` are those of `reports.list_reports`."""
        return self.query(lambda conn: reports.list_reports(conn, scenario, limit, **filters))

    def report(self, id: str) -> Row:
        """One report. Raises NotFound."""
        return self.query(lambda conn: reports.report_row(conn, id))

    def export(self, scenario: str | None = None, session: str | None = None, since: str | None = None) -> Export:
        """Records and their reports as lines for another home; `since` is a time in RFC 3339."""
        from reef.records.exporting import Export

        return Export(self, scenario, session, since)

    def usage(
        self,
        by: str,
        own: dict[str, Any],
        since: str | None = None,
        scenario: str | None = None,
        times: bool = True,
    ) -> Row:
        """What was used, as `reef.records.usage` shapes it; `own` are the person's prices."""
        from reef.records import usage
        from reef.records.prices import Prices

        wanted = usage.checked_by(by)
        found = self.query(lambda conn: usage.usage(conn, wanted, Prices(own), since, scenario, times))
        return usage.with_tools(self.query, found, usage.Tools(since, scenario)) if wanted == "tool" else found

    def scenarios(self, archived: bool = False) -> list[Row]:
        """The scenarios in use, or the archived ones, oldest first."""
        rows = self._all(f"{shapes.SELECT_SCENARIOS} WHERE (state = 'archived') = ? ORDER BY sequence", archived)
        return [shapes.scenario(row) for row in rows]

    def scenario(self, name: str) -> Row:
        """One scenario. Raises NotFound."""
        found = self._all(f"{shapes.SELECT_SCENARIOS} WHERE name = ?", name)
        if not found:
            raise NotFound(f"there is no scenario {name!r}", "reef scenarios list")
        return shapes.scenario(found[0])

    def sessions(
        self, cwd: str | None = None, scenario: str | None = None, limit: int = 20, kind: str = "agent"
    ) -> list[Row]:
        """Sessions, newest first, as `session_lists.listed` gives them."""
        return self.query(lambda conn: session_lists.listed(conn, cwd, scenario, limit, kind))

    def session(self, name: str, scenario: str | None = None) -> Row:
        """One session, of any kind, by its id or its key. Raises NotFound."""
        return self.query(lambda conn: session_lists.session(conn, name, scenario))

    def talk(self, name: str, scenario: str | None = None) -> Row:
        """`{"session", "messages", "apart", "cut"}`: a session as one conversation, as `talks.talk` gives it.

        Raises NotFound.
        """
        found = self.session(name, scenario)
        return {"session": found} | self.query(lambda conn: talks.talk(conn, found["key"], found["scenario"]))

    def asks(self, scenario: str | None = None, limit: int = 1000) -> list[Row]:
        """Asks, newest first."""
        where, values = _of(scenario, "asks.scenario")
        rows = self._all(f"{shapes.SELECT_ASKS}{where} ORDER BY asks.sequence DESC LIMIT ?", *values, limit)
        return [shapes.ask(row) for row in rows]

    def ask(self, id: str) -> Row:
        """One ask. Raises NotFound."""
        rows = self._all(f"{shapes.SELECT_ASKS} WHERE asks.id = ?", to_blob(id))
        if not rows:
            raise NotFound(f"there is no ask {id}", "reef asks list")
        return shapes.ask(rows[0])

    def proposals(self, scenario: str | None = None, limit: int = 100) -> list[Row]:
        """Proposals of agents, newest first."""
        where, values = _of(scenario, "proposals.scenario")
        rows = self._all(f"{proposals.SELECT}{where} ORDER BY proposals.sequence DESC LIMIT ?", *values, limit)
        return [proposals.shape(row) for row in rows]

    def steps(self, scenario: str | None = None, limit: int = 1000) -> list[Row]:
        """Steps, newest first, without their episodes and activity."""
        where, values = _of(scenario, "scenario")
        rows = self._all(f"{shapes.SELECT_STEPS}{where} ORDER BY sequence DESC LIMIT ?", *values, limit)
        return [shapes.step(row) for row in rows]

    def step(self, scenario: str, number: int) -> Row:
        """One step with its episodes and activity. Raises NotFound."""
        rows = self._all(f"{shapes.SELECT_STEPS} WHERE scenario = ? AND number = ?", scenario, number)
        if not rows:
            there = self._all("SELECT number FROM steps WHERE scenario = ?", scenario)
            known = spans("", (row[0] for row in there)) or "none yet"
            raise NotFound(f"scenario {scenario!r} has no step {number} (steps: {known})", "reef steps list")
        found = shapes.step(rows[0])
        condition = "WHERE scenario = ? AND step = ? ORDER BY sequence"
        found["episodes"] = [
            shapes.episode(row) for row in self._all(f"{shapes.SELECT_EPISODES} {condition}", scenario, number)
        ]
        found["activity"] = [
            shapes.activity(row) for row in self._all(f"{shapes.SELECT_ACTIVITIES} {condition}", scenario, number)
        ]
        return found

    def versions(self, scenario: str | None = None) -> list[Row]:
        """Versions, newest first."""
        where, values = _of(scenario, "scenario")
        return [
            shapes.version(row)
            for row in self._all(f"{shapes.SELECT_VERSIONS}{where} ORDER BY versions.sequence DESC", *values)
        ]

    def pins(self, scenario: str | None = None) -> list[Row]:
        """The versions that stay installed, as `pins.pins` gives them."""
        return self.query(lambda conn: pins.pins(conn, scenario))

    def version(self, scenario: str, number: int) -> Row:
        """One version. Raises NotFound."""
        rows = self._all(f"{shapes.SELECT_VERSIONS} WHERE scenario = ? AND number = ?", scenario, number)
        if not rows:
            there = spans("v", (row["version"] for row in self.versions(scenario))) or "none yet"
            raise NotFound(f"scenario {scenario!r} has no version v{number} (versions: {there})", "reef versions list")
        return shapes.version(rows[0])

    def events(self, after: int = 0, limit: int = 500) -> list[Row]:
        """Events after a sequence, oldest first."""
        rows = self._all(f"{shapes.SELECT_EVENTS} WHERE sequence > ? ORDER BY sequence LIMIT ?", after, limit)
        return [shapes.event(row) for row in rows]

    def last_event(self) -> int:
        """The sequence of the newest event; 0 when there is none."""
        return int(self._all("SELECT coalesce(max(sequence), 0) FROM events")[0][0])

    def counts(self) -> Row:
        """What `/reef/status` shows: `{"records": {count, bytes, last_at, open}, "scenarios": [...]}`.

        `bytes` is what the store takes on disk. A scenario's row: `name, recipe, adapter, head, pending, pinned,
        records, reports, agent_reports, asks_open, running_step`; a report that was taken back is counted in neither,
        and what an agent reported not in `reports`.
        """
        with self._lock:
            last = self._all("SELECT started_at FROM records ORDER BY sequence DESC LIMIT 1")
            calls = dict(self._all("SELECT scenario, count(*) FROM records GROUP BY scenario"))
            told = {(name, agents): number for name, agents, number in self._all(_COUNT_REPORTS)}
            asks = dict(
                self._all("SELECT scenario, count(*) FROM asks WHERE state IN ('queued', 'running') GROUP BY scenario")
            )
            running = dict(
                self._all("SELECT scenario, max(number) FROM steps WHERE state = 'running' GROUP BY scenario")
            )
            waiting: dict[str, list[int]] = {}
            for name, number in self._all(
                "SELECT scenario, number FROM versions WHERE state = 'pending' ORDER BY number"
            ):
                waiting.setdefault(name, []).append(number)
            kept: dict[str, list[Row]] = {}
            for pin in self.pins():
                kept.setdefault(pin["scenario"], []).append({"adapter": pin["adapter"], "version": pin["version"]})
            scenarios = [
                {
                    "name": row["name"],
                    "recipe": row["recipe"],
                    "adapter": row["adapter"],
                    "head": row["version"],
                    "pending": waiting.get(row["name"], []),
                    "pinned": kept.get(row["name"], []),
                    "records": calls.get(row["name"], 0),
                    "reports": told.get((row["name"], 0), 0),
                    "agent_reports": told.get((row["name"], 1), 0),
                    "asks_open": asks.get(row["name"], 0),
                    "running_step": running.get(row["name"]),
                }
                for row in self.scenarios()
            ]
            return {
                "records": {
                    "count": sum(calls.values()),
                    "bytes": self._bytes_on_disk(),
                    "last_at": last[0][0] if last else None,
                    "open": self._all("SELECT count(*) FROM records WHERE state = 'open'")[0][0],
                },
                "scenarios": scenarios,
            }

    def _bytes_on_disk(self) -> int:
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _body(self, receipt: str, name: str, hash: str | None) -> bytes | None:
        with self._lock:
            rows = self._all(
                f"SELECT {name}_part, {name}_chain, {hash or 'NULL'} FROM records WHERE id = ?", to_blob(receipt)
            )
            if not rows:
                raise NotFound(f"there is no record {receipt}", "reef records list")
            part, chain, wanted = rows[0]
            body = parts.get_body(self._connection(), (part, chain))
        if body is not None and wanted is not None and parts.digest(body) != wanted:
            raise Failed(f"a stored body of record {receipt} is damaged", "reef status")
        return body

    def _all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.query(lambda conn: conn.execute(sql, values).fetchall())

    def query(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """What `read` finds on the connection; trouble with the file is reef's refusal of it."""
        with self._lock:
            try:
                return read(self._connection())
            except sqlite3.DatabaseError as error:
                raise refusal(self.path, error) from error

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = open_readonly(self.path)
        return self._opened


def _of(scenario: str | None, column: str) -> tuple[str, list[str]]:
    return ("", []) if scenario is None else (f" WHERE {column} = ?", [scenario])
