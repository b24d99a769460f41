"""What a backup is: one tar archive, compressed with zstd, that begins with a description of itself.

    reef-backup.json    format, reef's version, the store's schema, when it was made, how many bytes follow
    reef.db             the database, one consistent moment of it
    versions.git/…      the versions with their large files, and the refs of that same moment
    config.yaml         the settings, without secrets
    reef-backup.end     nothing comes after it

Keys and tokens are never in it: what opens a home or a provider's account is not what a backup is for.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import tarfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from types import FrameType
from typing import Any, NoReturn

from reef.errors import InvalidInput, ReefError
from reef.paths import unusable

FORMAT = 1
MANIFEST = "reef-backup.json"
DATABASE = "reef.db"
VERSIONS = "versions.git"
SETTINGS = "config.yaml"
END = "reef-backup.end"
"""The last member, so that an archive that was cut off is told."""

Tell = Callable[[dict[str, Any]], None]
_GIT = re.compile(r"versions\.git/(HEAD|config|description|packed-refs|(objects|lfs|info)/.+)\Z")
_MANIFEST_MAX = 1 << 20


@dataclass(frozen=True)
class Manifest:
    """The description at the front of a backup."""

    reef: str
    schema: int
    made_at: str
    size: int
    """Bytes of everything that follows, uncompressed."""
    records: int
    left_out: list[str]
    """Settings whose values are secrets."""
    format: int = FORMAT

    def encoded(self) -> bytes:
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


def read_manifest(archive: tarfile.TarFile) -> Manifest:
    """The first member of `archive`. Raises InvalidInput when this is no backup, or one of a later format."""
    first = archive.next()
    if first is None or first.name != MANIFEST or not first.isfile() or first.size > _MANIFEST_MAX:
        raise InvalidInput("this file is not a backup of reef")
    body = archive.extractfile(first)
    assert body is not None
    try:
        found = json.loads(body.read())
        if int(found["format"]) > FORMAT:
            raise InvalidInput(f"this backup was made by a newer reef ({found['reef']})", "./install.sh")
        return Manifest(**found)
    except (ValueError, KeyError, TypeError):
        raise InvalidInput("this file is not a backup of reef") from None


def is_known(member: tarfile.TarInfo) -> bool:
    """Whether a member may be unpacked: a plain file of a name that a backup has, in its own place."""
    plain = member.isfile() and ".." not in PurePosixPath(member.name).parts and "\0" not in member.name
    return plain and (member.name in (DATABASE, SETTINGS) or _GIT.match(member.name) is not None)


def run(work: Callable[[Tell], dict[str, Any]]) -> int:
    """Do `work` for a program: what it tells, then what it returns, one JSON object a line. Returns the exit status."""

    def ended(number: int, frame: FrameType | None) -> NoReturn:
        # So that what was half written is removed on the way out.
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, ended)
    try:
        write_line(work(write_line))
    except ReefError as error:
        write_line(error.to_json())
        return error.exit_code
    except OSError as error:
        problem = unusable(error, "this cannot be done")
        if problem is None:
            raise
        write_line(problem.to_json())
        return problem.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def write_line(value: dict[str, Any]) -> None:
    """One JSON object on stdout, at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


class Steps:
    """Tells how far a long piece of work is, not more often than a person can see."""

    def __init__(self, tell: Tell, what: str, total: int) -> None:
        self._tell = tell
        self._what = what
        self._total = total
        self._told = -1

    def at(self, done: int) -> None:
        """`done` of the total are done."""
        percent = min(100, done * 100 // self._total) if self._total else 100
        if percent != self._told:
            self._told = percent
            self._tell({"progress": {"what": self._what, "done": done, "total": self._total, "percent": percent}})
