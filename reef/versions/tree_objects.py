"""Trees as git stores them, built from paths and bytes without a work tree or an index."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from reef.errors import InvalidInput

FILE_MODE = 0o100644
FILE_MODES = (FILE_MODE, 0o100755)
TREE_MODE = 0o040000
ATTRIBUTES = ".gitattributes"

Entry: TypeAlias = tuple[bytes, int, str]
"""Object id (20 bytes), mode, name: the order in which GitPython reads and writes tree entries."""
Nested: TypeAlias = dict[str, "bytes | Nested"]
Store: TypeAlias = Callable[[bytes, bytes], bytes]
"""Writes an object of a type (`b"blob"`, `b"tree"`) and returns its 20-byte id."""


def nest(files: Mapping[str, bytes]) -> Nested:
    """`{"a/b": x}` as `{"a": {"b": x}}`. Raises InvalidInput for a path that could leave the tree or confuse git."""
    root: Nested = {}
    for path, content in files.items():
        parts = path.split("/")
        for part in parts:
            _check(part, path)
        folder = root
        for part in parts[:-1]:
            inner = folder.setdefault(part, {})
            if not isinstance(inner, dict):
                raise InvalidInput(f"{path!r} goes through a file")
            folder = inner
        if parts[-1] in folder:
            raise InvalidInput(f"{path!r} is both a file and a folder")
        folder[parts[-1]] = content
    return root


def write(nested: Nested, store: Store) -> bytes:
    """Store every blob and tree of `nested`; returns the id of its tree."""
    entries: list[Entry] = []
    for name, value in nested.items():
        if isinstance(value, dict):
            entries.append((write(value, store), TREE_MODE, name))
        else:
            entries.append((store(b"blob", value), FILE_MODE, name))
    return write_entries(entries, store)


def write_entries(entries: Iterable[Entry], store: Store) -> bytes:
    """Store one tree. Git orders a folder as if its name ended in a slash."""
    from git.objects.fun import tree_to_stream

    ordered = sorted(entries, key=lambda entry: entry[2].encode() + (b"/" if entry[1] == TREE_MODE else b""))
    stream = io.BytesIO()
    tree_to_stream(ordered, stream.write)
    return store(b"tree", stream.getvalue())


def read_entries(data: bytes) -> list[Entry]:
    """The entries of one stored tree."""
    from git.objects.fun import tree_entries_from_data

    return [(bytes(sha), int(mode), str(name)) for sha, mode, name in tree_entries_from_data(data)]


def _check(part: str, path: str) -> None:
    is_odd = part in ("", ".", "..") or any(ord(char) < 0x20 or char in "\\:" or ord(char) == 0x7F for char in part)
    # Other systems read `.GIT`, `git~1` and a name with invisible characters as `.git`; git's own check refuses them.
    visible = "".join(char for char in part if char.isprintable()).casefold().rstrip(". ")
    if is_odd or visible.startswith((".git", "git~")) or len(part.encode("utf-8", "surrogatepass")) > 255:
        raise InvalidInput(f"{path!r} cannot be a path in a version")
    if any(0xD800 <= ord(char) <= 0xDFFF for char in part):
        raise InvalidInput(f"{path!r} is not valid text")
