"""Reading reef's own database file while no daemon answers, in the shapes that the daemon's routes have."""

from __future__ import annotations

from typing import Any

from reef.errors import DaemonUnreachable
from reef.paths import Paths

Json = dict[str, Any]


class Offline:
    """Answers from the file, one connection a question: nothing is held while the person reads."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        if not self._paths.database.exists():
            raise DaemonUnreachable("the daemon is not running, and nothing is recorded yet", "reef up")
        # Imported on use: with a daemon up, the app opens without what reading the store takes.
        from reef.records.reader import Reader

        reader = Reader(self._paths.database)
        try:
            return getattr(reader, method)(*arguments, **options)
        finally:
            reader.close()

    def status(self) -> Json:
        """What the file knows of the daemon's status: scenarios, counts, pending versions."""
        counts: Json = self._ask("counts")
        scenarios = counts.get("scenarios") or []
        needs_you = [
            {"kind": "pending_version", "scenario": row["name"], "version": version}
            for row in scenarios
            for version in row.get("pending") or ()
        ]
        return {"scenarios": scenarios, "records": counts.get("records") or {}, "needs_you": needs_you, "agents": []}

    def records(self, scenario: str | None, limit: int, q: str | None = None, **edge: int) -> Json:
        """A window of records, newest first, and how many there are."""
        rows = self._ask("records", scenario=scenario, limit=limit, text=q, **edge)
        return {"records": rows, "total": self._ask("count_records", scenario=scenario, text=q)}

    def record(self, receipt: str) -> Json:
        """One record with its bodies as text and its reports."""
        found: Json = dict(self._ask("record", receipt))
        for part in ("request", "response"):
            body = self.record_body(receipt, part)
            if body is not None:
                found[f"{part}_text"] = body.decode("utf-8", "replace")
        found["reports"] = self._ask("reports", record=receipt)
        return found

    def record_body(self, receipt: str, part: str) -> bytes | None:
        """Stored bytes of `request` or `response`."""
        found: bytes | None = self._ask(f"{part}_bytes", receipt)
        return found

    def asks(self, scenario: str | None) -> Json:
        return {"asks": self._ask("asks", scenario)}

    def steps(self, scenario: str | None) -> Json:
        return {"steps": self._ask("steps", scenario)}

    def releases(self, scenario: str) -> Json:
        return {"releases": self._ask("versions", scenario)}
