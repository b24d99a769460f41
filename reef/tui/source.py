"""Where the screens get everything: the daemon while it answers, reef's own database file while it does not.

The switch is never silent: `state` says which one is read, and the header shows it. All methods block and are called
from background threads only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from reef.client import Client
from reef.errors import Conflict, DaemonUnreachable, ReefError
from reef.paths import Paths
from reef.rating import Rated, rate
from reef.tui.offline import Offline
from reef.tui.widgets.window import Wanted

Json = dict[str, Any]
State = Literal["connecting", "up", "down", "other version"]


@dataclass(frozen=True)
class Page:
    """A page of rows, newest first; `more` says whether rows lie beyond it."""

    rows: list[Json]
    total: int
    more: bool


class Source:
    """One home's data."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.state: State = "connecting"
        self.detail = ""
        """Why the state is not `up`, as the daemon's client said it."""
        self._client: Client | None = None
        self._lock = threading.Lock()
        self.offline = Offline(paths)

    # connection

    def client(self, start: bool = False) -> Client:
        """The connected client. Raises DaemonUnreachable, or Conflict for a daemon of another version."""
        with self._lock:
            if self._client is None:
                try:
                    self._client = Client.connect(self.paths, start=start)
                except DaemonUnreachable as error:
                    self._note(error)
                    raise
            return self._client

    def _note(self, error: ReefError) -> None:
        self.state = "other version" if isinstance(error, Conflict) else "down"
        self.detail = error.message

    def lost(self, error: ReefError) -> None:
        """The connection broke: the next call looks for the daemon again."""
        with self._lock:
            if self._client is not None:
                self._client = None
            self._note(error)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the client by name; a lost daemon changes `state` and is raised."""
        return self._asking(lambda client: getattr(client, method)(*arguments, **options))

    def rate(self, scenario: str, receipt: str, score: float, note: str, id: str) -> Rated:
        """Rate a call, anew where the person has rated it already."""
        found: Rated = self._asking(lambda client: rate(client, scenario, receipt, score, note, id))
        return found

    def _asking(self, ask: Callable[[Client], Any]) -> Any:
        client = self.client()
        try:
            found = ask(client)
        except DaemonUnreachable as error:
            self.lost(error)
            raise
        except Conflict as error:
            if error.hint == "reef down && reef up":
                self.lost(error)
            raise
        self.state, self.detail = "up", ""
        return found

    def _read(self, method: str, fallback: str, *arguments: Any, **options: Any) -> Any:
        """An answer of the daemon, or of the database file when no daemon answers."""
        try:
            return self.call(method, *arguments, **options)
        except ReefError:
            # A daemon of another version may have another file: only a daemon that is not there is stood in for.
            if self.state != "down":
                raise
        return getattr(self.offline, fallback)(*arguments, **options)

    def start(self) -> None:
        """Start the daemon of this home."""
        self.client(start=True)

    def events(self, after: int | None) -> Iterator[Json]:
        """Events over a connection of their own."""
        with Client.connect(self.paths, start=False) as client:
            yield from client.events(after)

    # reading

    def status(self) -> Json:
        """The daemon's status, or what the file says about scenarios and counts."""
        found: Json = self._read("status", "status")
        return found

    def records(self, scenario: str | None, wanted: Wanted, text: str | None) -> Page:
        """The page of records that a list wants."""
        edge: dict[str, int] = {}
        if wanted.kind in ("older", "visible"):
            edge = {"before": wanted.edge}
        elif wanted.kind in ("newer", "oldest"):
            edge = {"after": wanted.edge}
        found = self._read("records", "records", scenario=scenario, limit=wanted.limit, q=text or None, **edge)
        rows = sorted(found["records"], key=lambda row: -int(row["sequence"]))
        return Page(rows, int(found.get("total", len(rows))), len(rows) >= wanted.limit)

    def record(self, receipt: str) -> Json:
        """One record with its reports."""
        found: Json = self._read("record", "record", receipt)
        return found

    def body(self, receipt: str, part: str) -> bytes:
        """Stored bytes of `request` or `response`."""
        found: bytes = self._read("record_body", "record_body", receipt, part)
        return found

    def asks(self, scenario: str | None) -> list[Json]:
        """Asks, newest first."""
        rows: list[Json] = self._read("asks", "asks", scenario)["asks"]
        return sorted(rows, key=lambda row: str(row.get("created_at")), reverse=True)

    def progress(self, ask: Json) -> Json:
        """How far an ask is, with the activity of its step; the ask alone while no daemon answers."""
        try:
            found: Json = self.call("ask_progress", ask["id"])
        except ReefError:
            if self.state != "down":
                raise
            return ask | {"activity": []}
        return found

    def versions(self, scenario: str) -> list[Json]:
        """Versions of a scenario, newest first."""
        rows: list[Json] = self._read("releases", "releases", scenario)["releases"]
        return sorted(rows, key=lambda row: -int(row["version"]))

    def steps(self, scenario: str) -> list[Json]:
        """Steps of a scenario, newest first."""
        rows: list[Json] = self._read("steps", "steps", scenario)["steps"]
        return sorted(rows, key=lambda row: -int(row["number"]))

    def version(self, scenario: str, number: int) -> Json:
        """One version with its files."""
        found: Json = self.call("version", scenario, number)
        return found

    def diff(self, scenario: str, old: str, new: str) -> list[Json]:
        """Changed files between two versions."""
        found: list[Json] = self.call("diff", scenario, old, new)["files"]
        return found

    def step(self, scenario: str, row: Json, number: int) -> Json:
        """One step with its activity; its row alone while no daemon answers."""
        try:
            found: Json = self.call("step", scenario, number)
        except ReefError:
            if self.state != "down":
                raise
            return row
        return found
