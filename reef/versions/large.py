"""Large files of versions: Git LFS pointers in git, the bytes beside it, in the layout that git-lfs reads.

reef does not need git-lfs; whoever has it can check a version out with it.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from reef.errors import NotFound

PATTERNS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.ckpt")
ATTRIBUTES = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in PATTERNS).encode()
"""What `.gitattributes` of every version holds."""

_NEW = ".new-"
_PIECE = 1024 * 1024
_OID = re.compile(r"[0-9a-f]{64}\Z")
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize ([0-9]+)\n\Z")


def is_large(path: str) -> bool:
    """Whether the file at `path` is kept as a pointer."""
    return path.endswith(tuple(pattern[1:] for pattern in PATTERNS))


def store(repository: Path, content: bytes | Path) -> bytes:
    """Keep `content` under its hash in `lfs/objects`; returns the pointer file for git.

    A file on disk is read once, in pieces: a checkpoint need not fit into memory.
    """
    folder = repository / "lfs" / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    # Beside its place and not in it: what it is called is known only when it has been read.
    handle, name = tempfile.mkstemp(dir=folder, prefix=_NEW)
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in _pieces(content):
                digest.update(piece)
                size += file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        target = _place(repository, digest.hexdigest())
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            new.replace(target)
            for parent in (target.parent, target.parent.parent, folder):
                sync(parent)
    finally:
        new.unlink(missing_ok=True)
    return _pointer(digest.hexdigest(), size)


def drop_broken_off(repository: Path) -> None:
    """Remove what a killed process left of files that it was storing."""
    for file in (repository / "lfs" / "objects").glob(f"{_NEW}*"):
        file.unlink(missing_ok=True)


def drop_unnamed(repository: Path, is_there: Callable[[bytes], bool]) -> None:
    """Remove the files whose pointer git does not hold any more; `is_there` says whether it holds a file's text."""
    for file in (repository / "lfs" / "objects").glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*"):
        if _OID.match(file.name) and not is_there(_pointer(file.name, file.stat().st_size)):
            file.unlink()


def locate(repository: Path, pointer: bytes) -> Path:
    """The file that `pointer` names. Raises NotFound when it is no pointer or the file is gone."""
    match = _POINTER.match(pointer)
    if match is None:
        raise NotFound("this is not a large-file pointer")
    target = _place(repository, match.group(1).decode())
    if not target.is_file():
        raise NotFound(f"the large file {match.group(1).decode()[:12]}… is no longer on this disk")
    return target


def sync(path: Path) -> None:
    """Bring a file's content, or a folder's names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _pieces(content: bytes | Path) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _pointer(oid: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n".encode()


def _place(repository: Path, oid: str) -> Path:
    return repository / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
