"""How far the import of a file has come: noted beside it after every batch, so that it goes on where it was stopped."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reef.errors import Conflict, Failed

_PIECE = 1024 * 1024


class Checkpoint:
    """The note beside one file: bound to its content, the home and the scenario."""

    def __init__(self, source: Path, place: Path | None, home: str, scenario: dict[str, Any]) -> None:
        self.place = place or source.with_name(f"{source.name}.reef-import.json")
        if self.place.resolve() == source.resolve():
            raise Conflict("the progress file must not be the file that is imported", "reef import --help")
        self._identity: dict[str, Any] = {
            "version": 1,
            "sha256": _sha256(source),
            "size": source.stat().st_size,
            "destination": home,
            "scenario": scenario,
        }
        self.offset = self.line = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the note for this process alone. Raises Conflict when another import of the file runs."""
        lock = self.place.with_name(self.place.name + ".lock")
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Failed(
                f"the progress of the import cannot be noted in {lock.parent}: {error.strerror}",
                "reef import FILE --progress ./progress.json",
            ) from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict("another import of this file is running", "reef status") from None
            self._read()
            yield
            lock.unlink(missing_ok=True)
        finally:
            os.close(handle)

    def note(self, offset: int, line: int) -> None:
        """Everything up to byte `offset`, which ends line number `line`, is stored."""
        self.offset, self.line = offset, line
        noted = json.dumps({**self._identity, "offset": offset, "line": line})
        partial = self.place.with_name(self.place.name + ".partial")
        with partial.open("w", encoding="utf-8") as file:
            file.write(noted)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.place)

    def done(self) -> None:
        """The whole file is stored: nothing is left to go on with."""
        self.place.unlink(missing_ok=True)

    def _read(self) -> None:
        if not self.place.is_file():
            return
        try:
            noted = json.loads(self.place.read_bytes())
        except ValueError:
            noted = None
        if not isinstance(noted, dict) or any(noted.get(name) != value for name, value in self._identity.items()):
            raise Conflict(f"{self.place.name} is the progress of another file, home or scenario", f"rm '{self.place}'")
        offset, line = noted.get("offset"), noted.get("line")
        if isinstance(offset, int) and isinstance(line, int) and 0 <= offset <= self._identity["size"]:
            self.offset, self.line = offset, line


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as source:
        while piece := source.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
