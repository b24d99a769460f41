"""The files that a step left, as far as they are data: names and sizes, or the text of one."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from reef.errors import InvalidInput, NotFound, TooLarge

Json = dict[str, Any]
MOST_FILES = 1000
MOST_BYTES = 4 * 1024 * 1024
_ENDINGS = (".json", ".jsonl")


def inventory(folder: Path) -> Json:
    """`{"status", "files": [{"path", "bytes"}]}` of a step's folder; `missing` when it is not there any more."""
    if not folder.is_dir() or folder.is_symlink():
        return {"status": "missing", "files": []}
    found: list[Json] = []
    for above, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        for name in sorted(names):
            place = Path(above) / name
            facts = place.lstat()
            if name.endswith(_ENDINGS) and stat.S_ISREG(facts.st_mode):
                found.append({"path": place.relative_to(folder).as_posix(), "bytes": facts.st_size})
            if len(found) >= MOST_FILES:
                return {"status": "retained", "files": found}
    return {"status": "retained", "files": found}


def text_of(folder: Path, path: str) -> Json:
    """`{"status", "path", "text"}` of one file.

    Raises InvalidInput for a path that leaves the folder or goes through a link, NotFound, TooLarge.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts) or not path.endswith(_ENDINGS):
        raise InvalidInput(f"{path[:200]!r} is not the path of a JSON file in the step's folder")
    place = folder
    for part in parts:
        place = place / part
        if place.is_symlink():
            raise InvalidInput(f"{path[:200]!r} goes through a link")
    try:
        file = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"the step left no file {path[:200]!r}", "reef steps list") from None
    except OSError as error:
        raise InvalidInput(f"{path[:200]!r} cannot be read: {error.strerror}") from None
    with os.fdopen(file, "rb") as opened:
        facts = os.fstat(opened.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise InvalidInput(f"{path[:200]!r} is not a file")
        if facts.st_size > MOST_BYTES:
            raise TooLarge(f"{path[:200]!r} has {facts.st_size} bytes, at most {MOST_BYTES} are shown")
        return {"status": "retained", "path": path, "text": opened.read(MOST_BYTES).decode("utf-8", "replace")}
