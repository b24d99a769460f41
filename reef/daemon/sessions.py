"""Sessions: the tokens of agent runs and steps, each bound to one scenario, kept hashed, dead with its process.

A token is looked up on every call, so the open ones are held in memory; the database holds their hashes, so that a
restart of the daemon does not end a running agent.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from dataclasses import dataclass
from typing import Any, Literal

from reef.daemon.access import digest
from reef.errors import InvalidInput, NotFound, ReefError
from reef.ids import from_blob, new_id, new_token
from reef.processes import is_alive, start_time
from reef.records import rows
from reef.records.writer import Writer

log = logging.getLogger("reef.daemon")
_SWEEP_S = 5.0


@dataclass(frozen=True)
class Session:
    """One open session."""

    id: str
    scenario: str
    kind: Literal["agent", "step"]
    key: str
    adapter: str | None
    version: int | None
    pid: int | None
    pid_started: int | None
    """Clock ticks from boot to the start of that process, which tell it from a later one of its number."""

    @property
    def alive(self) -> bool:
        """Whether the process that it belongs to still runs."""
        if self.pid is None:
            return True
        return is_alive(self.pid) if self.pid_started is None else start_time(self.pid) == self.pid_started


class Sessions:
    """All open sessions of this home."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._by_digest: dict[bytes, Session] = {}

    def find(self, token_digest: bytes) -> Session | None:
        """The open session of a token, given as its SHA-256."""
        return self._by_digest.get(token_digest)

    def running(self, scenario: str, adapter: str) -> Session | None:
        """An open session of that agent in that scenario whose process still runs."""
        mine = (session for session in self._by_digest.values() if session.adapter == adapter)
        return next((session for session in mine if session.scenario == scenario and session.alive), None)

    async def load(self) -> None:
        """Read the open sessions of an earlier daemon and close those whose process is gone."""
        for token_digest, session in await self._writer.write(_open_rows):
            self._by_digest[token_digest] = session
        await self.sweep()

    async def open(
        self,
        scenario: str,
        kind: Literal["agent", "step"],
        pid: int | None,
        adapter: str | None = None,
        version: int | None = None,
        cwd: str | None = None,
        key: str | None = None,
        step: int | None = None,
    ) -> tuple[Session, str]:
        """A new session and its token; the token is not kept anywhere in clear."""
        if pid is not None and not is_alive(pid):
            raise InvalidInput(f"there is no process {pid} that the session could belong to")
        token, id = new_token(), new_id()
        born = None if pid is None else start_time(pid)
        session = Session(id, scenario, kind, key or id, adapter, version, pid, born)

        def write(conn: sqlite3.Connection) -> str:
            return rows.open_session(
                conn, scenario, kind=kind, adapter=adapter, version=version, step=step, key=session.key, cwd=cwd,
                token_hash=digest(token), pid=pid, pid_started=born, id=id,
            )  # fmt: skip

        await self._writer.write(write)
        self._by_digest[digest(token)] = session
        return session, token

    async def close(self, session_id: str) -> Session:
        """End a session: its token opens nothing from now on. Raises NotFound."""
        for token_digest, session in self._by_digest.items():
            if session.id == session_id:
                del self._by_digest[token_digest]
                await self._writer.write(lambda conn: rows.close_session(conn, session_id))
                return session
        raise NotFound(f"there is no open session {session_id[:64]!r}", "reef sessions list")

    async def sweep(self) -> None:
        """Close every session whose process has ended."""
        for session in [session for session in self._by_digest.values() if not session.alive]:
            log.info("session %s of %s ended with its process", session.id, session.scenario)
            try:
                await self.close(session.id)
            except ReefError as error:
                # Closed by its wrapper meanwhile; or the disk is full, and the next start closes the row.
                log.info("session %s: %s", session.id, error.message)

    async def watch(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            await self.sweep()


def _open_rows(conn: sqlite3.Connection) -> list[tuple[bytes, Session]]:
    found: list[Any] = conn.execute(
        "SELECT token_hash, id, scenario, kind, key, adapter, version, pid, pid_started FROM sessions"
        " WHERE closed_at IS NULL AND token_hash IS NOT NULL"
    ).fetchall()
    return [(bytes(row[0]), Session(from_blob(row[1]), *row[2:])) for row in found]
