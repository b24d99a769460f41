"""Which entry a line of what an agent reads was rendered from, and where the line stands in the entry's own file."""

from __future__ import annotations

from dataclasses import dataclass

from reef.errors import NotFound
from reef.harness.adapter import fitting, render
from reef.harness.adapter_file import Adapter
from reef.harness.tree import Entry, Tree


@dataclass(frozen=True)
class Place:
    """A line of a rendered file."""

    text: str
    entry: Entry
    path: str
    """The entry's file in the version."""
    line: int | None
    """The line there, from 0; None for a line that rendering made."""


def place(tree: Tree, adapter: Adapter, path: str, number: int) -> Place:
    """Where line `number` (from 1) of the rendered file `path` comes from. Raises NotFound with what there is."""
    files = render(fitting(tree, adapter)[0], adapter)
    if path not in files:
        raise NotFound(f"no version gives {adapter.title} a file {path} (files: {', '.join(sorted(files)) or 'none'})")
    lines = _lines(files[path])
    if not 1 <= number <= len(lines):
        raise NotFound(f"{path} has {len(lines)} lines, and no line {number}")
    text, at = lines[number - 1], 0
    for entry in tree.entries:
        block = _block(entry, adapter, path)
        if not block:
            continue
        start = _find(lines, block, at)
        if start is None:
            continue
        if start <= number - 1 < start + len(block):
            source, line = _source(entry, path, block, number - 1 - start)
            return Place(text, entry, source, line)
        at = start + len(block)
    raise NotFound(f"line {number} of {path} belongs to no entry: it is what {adapter.title} gets around them")


def entry_paths(entry: Entry) -> list[str]:
    """The files of an entry in a version."""
    return sorted(entry.to_files())


def _block(entry: Entry, adapter: Adapter, path: str) -> list[str]:
    """The lines that `entry` gives the file `path`."""
    if entry.kind == "rules":
        # The frame around rules stands once, whatever rules there are.
        return _lines(entry.text.strip("\n").encode()) if path == adapter.render.rules else []
    kept, _ = fitting(Tree([entry]), adapter)
    return _lines(render(kept, adapter).get(path, b""))


def _source(entry: Entry, path: str, block: list[str], offset: int) -> tuple[str, int | None]:
    """The file of the version, and the line in it, that line `offset` of `block` was made from."""
    files = {name: _lines(body) for name, body in entry.to_files().items()}
    # An entry of several files is a skill, whose files keep their names.
    name = max(files, key=lambda name: (files[name] == block, _common(name, path), name.endswith("SKILL.md")))
    before = next((count for count, line in enumerate(files[name]) if line.strip()), 0) if entry.kind == "rules" else 0
    same = [number for number, line in enumerate(files[name]) if line == block[offset]]
    return name, min(same, key=lambda number: abs(number - before - offset)) if same else None


def _common(left: str, right: str) -> int:
    """How many parts both paths have in common at their ends."""
    pairs = zip(left.split("/")[::-1], right.split("/")[::-1], strict=False)
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def _find(lines: list[str], block: list[str], at: int) -> int | None:
    fits = (start for start in range(at, len(lines) - len(block) + 1) if lines[start : start + len(block)] == block)
    return next(fits, None)


def _lines(body: bytes) -> list[str]:
    return body.decode("utf-8", "replace").splitlines()
