"""The harness tree: a flat list of entries `{id, kind, config}` and its exact form as files.

    harness/rules/<id>.md            rules           {"text"}
    harness/skills/<id>/SKILL.md     skill           {"text", "files"?: {relative path: text}}
    harness/commands/<id>.md         agent_command   {"text"}
    harness/extensions/<id>.<ext>    code_extension  {"text", "ext"}
    harness/config/<target>.json     config          {"target", "data"}   (the id is the target)
    harness/tools/<id>.<ext>         tool            {"text", "ext"}
    harness/hooks/<id>.<ext>         hook            {"text", "ext"}
    harness/agents/<id>.md           agent           {"text"}
    harness/graphs/<id>.json         graph           {"data"}

An id is unique in a tree whatever its kind, and safe as a file name on every system. What an agent reads is made from
a tree by `reef.harness.adapter.render`; nothing here knows an agent.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from reef.errors import InvalidInput

KINDS = ("rules", "skill", "agent_command", "code_extension", "config", "tool", "hook", "agent", "graph")
"""The kinds of entry that a tree can hold; which of them an agent is given is its adapter's to say."""
PROGRAMS = ("code_extension", "tool", "hook")
"""The kinds whose text is a program, in a file with an extension of its own."""
RESERVED = "reef-"
"""Start of the ids of the entries that reef ships; no mutation may touch one."""
PREFIX = "harness/"
"""Where the tree is inside a version's content."""
MAX_NAME = 64

_FOLDERS = {
    "rules": "rules",
    "skill": "skills",
    "agent_command": "commands",
    "code_extension": "extensions",
    "config": "config",
    "tool": "tools",
    "hook": "hooks",
    "agent": "agents",
    "graph": "graphs",
}
_DATA = ("config", "graph")
"""The kinds that hold a JSON object instead of a text."""
_DEFAULT_EXT = {"code_extension": "ts", "tool": "py", "hook": "py"}
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_EXT = re.compile(r"[a-z0-9]{1,8}\Z")
_DEVICES = frozenset(["con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))])
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}\Z")


@dataclass(frozen=True)
class Entry:
    """One part of a harness. Build it with `Entry.parse`, which checks the config's shape."""

    id: str
    kind: str
    config: Mapping[str, Any]

    @classmethod
    def parse(cls, id: object, kind: object, config: object) -> Entry:
        """Check id, kind and config and return the entry.

        Raises InvalidInput with one sentence that names the entry and what is wrong with it.
        """
        name = entry_id(id)
        if kind not in KINDS:
            raise InvalidInput(f"{name}: there is no entry kind {_shown(kind)} (kinds: {', '.join(KINDS)})")
        if not isinstance(config, Mapping):
            raise InvalidInput(f"{name}: the config is not an object")
        unknown = set(config) - _KEYS.get(str(kind), {"text"})
        if unknown:
            raise InvalidInput(f"{name}: a {kind} has no {_shown(sorted(map(str, unknown))[0])}")
        if kind in PROGRAMS:
            return cls(name, str(kind), _program(name, config, _DEFAULT_EXT[str(kind)]))
        return cls(name, str(kind), _CHECKS.get(str(kind), _text_only)(name, config))

    @property
    def text(self) -> str:
        """The entry's text; for `config` and `graph` its data as JSON."""
        if self.kind in _DATA:
            return _json(self.config["data"])
        return str(self.config["text"])

    def to_files(self) -> dict[str, bytes]:
        """The entry as files: path inside a version's content to bytes."""
        folder = f"{PREFIX}{_FOLDERS[self.kind]}"
        if self.kind == "skill":
            files = {f"{folder}/{self.id}/SKILL.md": self.text.encode()}
            for path, text in self.config.get("files", {}).items():
                files[f"{folder}/{self.id}/{path}"] = text.encode()
            return files
        ext = self.config["ext"] if self.kind in PROGRAMS else "json" if self.kind in _DATA else "md"
        return {f"{folder}/{self.id}.{ext}": self.text.encode()}

    def to_json(self) -> dict[str, Any]:
        """`{"id", "kind", "config"}`."""
        return {"id": self.id, "kind": self.kind, "config": dict(self.config)}


@dataclass(frozen=True)
class Change:
    """The difference of one entry between two trees."""

    op: Literal["create", "update", "remove"]
    before: Entry | None
    after: Entry | None

    @property
    def entry(self) -> Entry:
        """The entry after the change, or the removed one."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True, init=False)
class Tree:
    """Entries ordered by id. Two trees with equal entries are equal."""

    entries: tuple[Entry, ...] = field(default=())

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        ordered = tuple(sorted(entries, key=lambda entry: entry.id))
        for left, right in itertools.pairwise(ordered):
            if left.id == right.id:
                raise InvalidInput(f"{left.id}: there are two entries of this id")
        object.__setattr__(self, "entries", ordered)

    def get(self, id: str) -> Entry | None:
        """The entry of this id, or None."""
        return next((entry for entry in self.entries if entry.id == id), None)

    def of_kind(self, kind: str) -> list[Entry]:
        """The entries of one kind, ordered by id."""
        return [entry for entry in self.entries if entry.kind == kind]

    @property
    def rules_bytes(self) -> int:
        """The bytes of all rules together, with the blank line between two of them."""
        return sum(len(entry.text.encode()) + 2 for entry in self.of_kind("rules"))

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> Tree:
        """The tree inside a version's content; paths outside `harness/` belong to other components and are skipped.

        Raises InvalidInput when a path under `harness/` is none of the known forms or is not UTF-8 text.
        """
        return cls(_read(files))

    def to_files(self) -> dict[str, bytes]:
        """Every entry as files, path to bytes; `Tree.from_files` gives the same tree back."""
        files: dict[str, bytes] = {}
        for entry in self.entries:
            files |= entry.to_files()
        return files

    def to_json(self) -> list[dict[str, Any]]:
        """The entries as JSON values."""
        return [entry.to_json() for entry in self.entries]

    @classmethod
    def from_json(cls, entries: Sequence[Mapping[str, Any]]) -> Tree:
        """The tree of `to_json`. Raises InvalidInput."""
        return cls(Entry.parse(item.get("id"), item.get("kind"), item.get("config")) for item in entries)

    def apply(self, mutations: Iterable[Mapping[str, Any]]) -> Tree:
        """The tree after the mutations, in their order.

        A mutation is `{"op": "create" | "update" | "remove", "id", "kind", "config"}`; `kind` may be left out of an
        update and must not change, `config` replaces the old one whole. Raises InvalidInput that names the entry.
        """
        entries = {entry.id: entry for entry in self.entries}
        for mutation in mutations:
            _apply(entries, mutation)
        return Tree(entries.values())

    def changes(self, candidate: Tree) -> list[Change]:
        """What `candidate` creates, updates and removes, ordered by id."""
        before = {entry.id: entry for entry in self.entries}
        after = {entry.id: entry for entry in candidate.entries}
        found: list[Change] = []
        for name in sorted(before | after):
            old, new = before.get(name), after.get(name)
            if old != new:
                found.append(Change("create" if old is None else "remove" if new is None else "update", old, new))
        return found


def entry_id(id: object) -> str:
    """Check an entry's id and return it: 1-64 lower-case letters, digits and single hyphens, no device name.

    Raises InvalidInput that names it.
    """
    if not isinstance(id, str) or len(id) > MAX_NAME or _ID.match(id) is None or id in _DEVICES:
        raise InvalidInput(
            f"{_shown(id)} is not an entry id (1 to {MAX_NAME} lower-case letters, digits and single hyphens)"
        )
    return id


def entry_of(path: str) -> tuple[str, str] | None:
    """Kind and id of the entry that a path inside a version's content belongs to; None outside the tree."""
    folder, _, rest = path.removeprefix(PREFIX).partition("/") if path.startswith(PREFIX) else ("", "", "")
    kind = next((kind for kind, place in _FOLDERS.items() if place == folder), None)
    if kind is None or not rest:
        return None
    return kind, rest.partition("/")[0] if kind == "skill" else rest.rpartition(".")[0]


def relative_path(path: object, owner: str) -> str:
    """Check a path inside an entry's own folder and return it. Raises InvalidInput that names `owner`."""
    parts = path.split("/") if isinstance(path, str) else []
    safe = all(
        _SEGMENT.match(part) and not part.endswith(".") and part.partition(".")[0].lower() not in _DEVICES
        for part in parts
    )
    if not isinstance(path, str) or not 0 < len(parts) <= 8 or not safe:
        raise InvalidInput(f"{owner}: {_shown(path)} is not a path inside the entry's folder")
    return path


def _apply(entries: dict[str, Entry], mutation: Mapping[str, Any]) -> None:
    op = mutation.get("op")
    if op not in ("create", "update", "remove"):
        raise InvalidInput(f"{_shown(op)} is not an operation (create, update, remove)")
    name = entry_id(mutation.get("id"))
    old = entries.get(name)
    if (op == "create") != (old is None):
        raise InvalidInput(f"{name}: " + ("there is such an entry already" if old else f"there is no entry to {op}"))
    if op == "remove":
        del entries[name]
        return
    kind = mutation.get("kind") or (old.kind if old else None)
    if old and kind != old.kind:
        raise InvalidInput(f"{name}: an update cannot turn a {old.kind} into a {_shown(kind)}")
    entries[name] = Entry.parse(name, kind, mutation.get("config"))


def _read(files: Mapping[str, bytes]) -> list[Entry]:
    found: list[Entry] = []
    skills: dict[str, dict[str, str]] = {}
    for path in sorted(files):
        if not path.startswith(PREFIX):
            continue
        try:
            text = files[path].decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInput(f"{path} is not UTF-8 text") from None
        folder, _, rest = path.removeprefix(PREFIX).partition("/")
        if folder == "skills" and "/" in rest:
            name, _, inner = rest.partition("/")
            skills.setdefault(name, {})[inner] = text
        elif "/" in rest or "." not in rest:
            raise InvalidInput(f"{path} is not a file of a harness tree")
        else:
            found.append(_single(path, folder, rest, text))
    for name, parts in skills.items():
        if "SKILL.md" not in parts:
            raise InvalidInput(f"{name}: the skill has no SKILL.md")
        extra = {path: text for path, text in parts.items() if path != "SKILL.md"}
        config: dict[str, Any] = {"text": parts["SKILL.md"]}
        found.append(Entry.parse(name, "skill", config | ({"files": extra} if extra else {})))
    return found


def _single(path: str, folder: str, rest: str, text: str) -> Entry:
    name, _, ext = rest.rpartition(".")
    kind = next((kind for kind, place in _FOLDERS.items() if place == folder and kind != "skill"), None)
    if kind in _DATA and ext == "json":
        try:
            data = json.loads(text)
        except ValueError:
            raise InvalidInput(f"{path} is not JSON") from None
        return Entry.parse(name, kind, {"data": data} | ({"target": name} if kind == "config" else {}))
    if kind in PROGRAMS:
        return Entry.parse(name, kind, {"text": text, "ext": ext})
    if kind is None or ext != "md":
        raise InvalidInput(f"{path} is not a file of a harness tree")
    return Entry.parse(name, kind, {"text": text})


def _text(name: str, config: Mapping[str, Any]) -> str:
    text = config.get("text")
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(f"{name}: there is no text")
    return _clean(name, text)


def _clean(name: str, text: str) -> str:
    if any(
        (ord(char) < 32 and char not in "\n\t\r") or 0xD800 <= ord(char) < 0xE000 or ord(char) == 127 for char in text
    ):
        raise InvalidInput(f"{name}: the text holds control characters")
    return text


def _text_only(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": _text(name, config)}


def _skill(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    checked: dict[str, Any] = {"text": _text(name, config)}
    files = config.get("files") or {}
    if not isinstance(files, Mapping):
        raise InvalidInput(f"{name}: the files are not an object of path to text")
    seen: set[str] = {"skill.md"}
    kept: dict[str, str] = {}
    for path in sorted(files, key=str):
        inner = relative_path(path, name)
        if inner.lower() in seen or any(other.startswith(inner.lower() + "/") for other in seen):
            raise InvalidInput(f"{name}: {_shown(path)} is there twice, or differs from another only in case")
        if not isinstance(files[path], str):
            raise InvalidInput(f"{name}: {_shown(path)} is not text")
        seen.add(inner.lower())
        kept[inner] = _clean(name, files[path])
    return checked | ({"files": kept} if kept else {})


def _program(name: str, config: Mapping[str, Any], default: str) -> dict[str, Any]:
    ext = config.get("ext", default)
    if not isinstance(ext, str) or _EXT.match(ext) is None:
        raise InvalidInput(f"{name}: {_shown(ext)} is not a file extension")
    return {"text": _text(name, config), "ext": ext}


def _config(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    target = config.get("target", name)
    if target != name:
        raise InvalidInput(f"{name}: the id of a config entry is its target, which is {_shown(target)}")
    return {"target": name} | _data(name, config)


def _data(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    data = config.get("data")
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{name}: the data is not an object")
    try:
        plain = json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError):
        raise InvalidInput(f"{name}: the data is not JSON") from None
    return {"data": plain}


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _shown(value: object) -> str:
    return repr(value)[:80]


_CHECKS = {"skill": _skill, "config": _config, "graph": _data}
_KEYS = {
    "skill": {"text", "files"},
    "config": {"target", "data"},
    "graph": {"data"},
    **{kind: {"text", "ext"} for kind in PROGRAMS},
}
