"""Forgetting records: first everything that was made from them is shown, then exactly that is removed.

Rows, parts and words go through the one writer in slices; then the step folders, the candidates in git and the lines of
the log that name them; at last the file itself is put in order. The work is blocking and runs in a thread. What a stop
leaves is finished by the next start, or by asking again.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reef.daemon.logs import forget_lines
from reef.errors import Conflict, NotFound, Unavailable
from reef.paths import Paths
from reef.records import choosing, forget, made_from, shrink
from reef.records.choosing import Chosen
from reef.records.schema import open_readonly
from reef.records.swap import KEPT
from reef.records.sweep import Freed
from reef.records.writer import Writer
from reef.versions.repository import Repository

Row = dict[str, Any]
Say = Callable[[str], None]

_BREATH_S = 0.0005
_LONG_BREATH_S = 0.02
_LOOKS = 8
_LEAST_NAME = 8
"""Characters from which a session's key is looked for in the log: a shorter one would fit lines of others."""


@dataclass(frozen=True)
class Wish:
    """What is to be forgotten: one of receipts, a session, a text."""

    receipts: tuple[str, ...] = ()
    session: str | None = None
    matching: str | None = None
    scenario: str | None = None
    """Only records of this one."""
    keep: frozenset[str] = frozenset()
    """Kinds of what was made from the records that stay."""


class Forgetting:
    """The forgettings of one home, one at a time. Every public method blocks."""

    def __init__(self, paths: Paths, writer: Writer, repository: Repository, alone: threading.Lock) -> None:
        """`alone` is held while parts are swept: nobody else may do that meanwhile."""
        self._paths = paths
        self._writer = writer
        self._repository = repository
        self._alone = alone
        self._shown: OrderedDict[str, Wish] = OrderedDict()
        self._stop = threading.Event()
        self._rested = time.monotonic()

    def stop(self) -> None:
        """Stop at the next slice."""
        self._stop.set()

    def turn(self) -> None:
        """Between two slices: let others work, and stop when the daemon does."""
        if self._stop.is_set():
            raise Unavailable("the daemon is stopping; what is left is forgotten at its next start", "reef up")
        worked = time.monotonic() - self._rested
        time.sleep(min(max(_BREATH_S, worked / 2), _LONG_BREATH_S))
        self._rested = time.monotonic()

    def look(self, wish: Wish, say: Say) -> Row:
        """Everything that would go, and what would stay, with the `token` that `forget` wants. Changes nothing."""
        with self._reading() as conn:
            chosen = Chosen(conn)
            if wish.matching is not None:
                say("looking through every body")
            chosen.add(self._choose(conn, wish))
            running = chosen.leave_running()
            if not chosen.add(()):
                raise Conflict("these calls are still running", "reef records list")
            base = tuple(
                row[0].hex() for row in conn.execute("SELECT id FROM records WHERE sequence IN (SELECT * FROM chosen)")
            )
            say("looking for what was made from them")
            found = made_from.made_from(chosen, wish.keep)
            found["shared"] = made_from.shared_with_kept(chosen, self.turn)
        found["records"] = len(found["receipts"])
        found["running"] = running
        found["copies"] = [place.name for place in self._schema_copies()]
        found["kept_copies"] = [str(place) for place in sorted(self._paths.data.glob(f"{KEPT}*"))]
        found["token"] = made_from.token(found)
        self._shown[found["token"]] = Wish(receipts=base, keep=wish.keep)
        while len(self._shown) > _LOOKS:
            self._shown.popitem(last=False)
        return found

    def forget(self, token: str, say: Say) -> Row:
        """Remove what was shown with `token`. Raises Conflict when that would be something else by now."""
        wish = self._shown.get(token)
        if wish is None:
            raise Conflict("what would be forgotten was not shown, or too long ago", "reef records forget --help")
        with self._alone_in_the_store(say):
            with self._reading() as conn:
                chosen = Chosen(conn)
                try:
                    chosen.add(choosing.by_receipts(conn, wish.receipts))
                except NotFound as error:
                    raise _changed() from error
                plan = made_from.made_from(chosen, wish.keep)
            if made_from.token(plan) != token:
                raise _changed()
            self._writer.submit(partial(forget.write_down, plan=plan), essential=False).result()
            del self._shown[token]
            return self._run(say)

    def finish(self, say: Say) -> Row | None:
        """Go on with a forgetting that something stopped; None when there is none."""
        with self._reading() as conn:
            if forget.unfinished(conn) is None:
                return None
        with self._alone_in_the_store(say):
            return self._run(say)

    def unfinished(self) -> bool:
        """Whether a forgetting waits to be finished."""
        with self._reading() as conn:
            return forget.unfinished(conn) is not None

    def _run(self, say: Say) -> Row:
        before = shrink.size(self._paths.database)
        with self._reading() as conn:
            plan = forget.unfinished(conn)
            if plan is None:
                raise Conflict("there is nothing left to forget", "reef records list")
            say(f"removing {len(plan['receipts']):,} records and what was made from them")
            freed: Freed = forget.remove(conn, self._writer, plan, self.turn)
        say("removing step folders, candidates and lines of the log")
        self._remove_files(plan)
        say("giving free pages back to the disk")
        shrink.give_back(self._writer, self.turn)
        say("emptying the write-ahead log")
        shrink.empty_log(self._paths.database, self.turn)
        say("clearing the free room of pages")
        shrink.scrub(self._paths.database, self.turn)
        shrink.empty_log(self._paths.database, self.turn)
        self._writer.submit(partial(forget.finish, id=plan["id"]), essential=False).result()
        return {
            "records": len(plan["receipts"]),
            "bytes": freed.bytes,
            "store_before": before,
            "store_after": shrink.size(self._paths.database),
            "versions": [{"scenario": name, "version": number} for name, number in plan["versions"]],
            "keep": plan["keep"],
        }

    def _remove_files(self, plan: Row) -> None:
        """What lies outside the database. What is gone already is no error: this may be the second try."""
        for place in self._schema_copies():
            place.unlink(missing_ok=True)
        if "steps" not in plan["keep"]:
            for scenario, step, _ in plan["steps"]:
                folder = self._paths.steps / scenario / str(int(step))
                if folder.is_dir():
                    shutil.rmtree(folder)
                self._repository.drop_candidate(scenario, step)
                self.turn()
            if plan["steps"]:
                self._repository.collect(self._releases())
        names = [*plan["receipts"], *(name for name in plan["sessions"] if len(name) >= _LEAST_NAME)]
        forget_lines(self._paths.daemon_log, names)

    def _releases(self) -> list[str]:
        """Every release that the catalog names, also where a branch was lost and will be put back."""
        with self._reading() as conn:
            rows = conn.execute("SELECT release_id FROM versions WHERE state != 'conflict'").fetchall()
            kept = conn.execute("SELECT candidate FROM steps WHERE candidate IS NOT NULL").fetchall()
        return [str(row[0]) for row in (*rows, *kept)]

    def _schema_copies(self) -> list[Path]:
        """Copies of the whole store that migrations made before they changed it."""
        database = self._paths.database
        return sorted(database.parent.glob(f"{database.name}.schema-*"))

    def _choose(self, conn: Any, wish: Wish) -> list[int]:
        if wish.session is not None:
            return choosing.by_session(conn, wish.session, wish.scenario)
        if wish.matching is not None:
            return choosing.by_text(conn, wish.matching, wish.scenario, self.turn)
        return choosing.by_receipts(conn, wish.receipts)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        connection = open_readonly(self._paths.database)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _alone_in_the_store(self, say: Say) -> Iterator[None]:
        if not self._alone.acquire(blocking=False):
            say("waiting for what else is being removed")
            while not self._alone.acquire(timeout=0.1):
                self.turn()
        try:
            yield
        finally:
            self._alone.release()


def _changed() -> Conflict:
    return Conflict("something else would be forgotten now than what was shown", "reef records forget --help")
