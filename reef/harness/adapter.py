"""Adapters: what reef must know of one coding agent, read from `adapters/<name>/adapter.toml`.

The file says how the agent is installed, pointed at reef, given files, run without a person and read back; most agents
need nothing else. Rendering is pure: a tree and an adapter give path to bytes, and no address, key or model is in it.
"""

from __future__ import annotations

import functools
import logging
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from reef.errors import ConfigError, InvalidInput, NotFound, ReefError
from reef.harness import frontmatter
from reef.harness.adapter_file import Adapter
from reef.harness.formats import formatted
from reef.harness.tree import PREFIX, PROGRAMS, RESERVED, Entry, Tree
from reef.paths import Paths, search

log = logging.getLogger("reef.harness")


def load_adapter(name: str, paths: Paths | None = None) -> Adapter:
    """The adapter of this name, the user's own before the bundled one.

    Raises NotFound with the known names, ConfigError that names the file and the key when it cannot be read.
    """
    places = paths or Paths.from_environ(os.environ)
    for folder in search("adapters", places):
        if name in adapter_names(places) and (folder / name / "adapter.toml").is_file():
            return _read(folder / name)
    known = ", ".join(adapter_names(places))
    raise NotFound(f"there is no adapter {name!r} (known: {known})", "reef agents list")


def adapter_names(paths: Paths | None = None) -> list[str]:
    """The names of all adapters, sorted."""
    places = paths or Paths.from_environ(os.environ)
    return sorted({file.parent.name for folder in search("adapters", places) for file in folder.glob("*/adapter.toml")})


def known_adapters(paths: Paths) -> list[tuple[str, Adapter | ReefError]]:
    """Every adapter with its name, sorted; instead of one that cannot be read, what is wrong with it."""
    found: list[tuple[str, Adapter | ReefError]] = []
    for name in adapter_names(paths):
        try:
            found.append((name, load_adapter(name, paths)))
        except ReefError as error:
            found.append((name, error))
    return found


def readable_adapters(paths: Paths) -> list[Adapter]:
    """Every adapter that a version can be installed for."""
    return [adapter for _, adapter in known_adapters(paths) if isinstance(adapter, Adapter)]


def base_entries(adapter: Adapter) -> Tree:
    """The entries that reef ships for this agent, from the adapter's `base` folder: what v1 of a scenario holds."""
    base = adapter.folder / "base"
    files = {
        PREFIX + file.relative_to(base).as_posix(): file.read_bytes() for file in base.rglob("*") if file.is_file()
    }
    return Tree.from_files(files)


def bases(paths: Paths) -> dict[str, Tree]:
    """What reef ships for each agent, by its name. One that cannot be read is named in the log and left out."""
    found: dict[str, Tree] = {}
    for name, adapter in known_adapters(paths):
        if isinstance(adapter, Adapter):
            try:
                found[name] = base_entries(adapter)
            except InvalidInput as error:
                # One that a person is writing keeps no scenario from being made.
                log.warning("the base of adapter %s cannot be read: %s", name, error.message)
    return found


def together(shipped: Mapping[str, Tree]) -> Tree:
    """The entries for all agents as one tree."""
    return Tree({entry.id: entry for base in shipped.values() for entry in base.entries}.values())


def base_of_all(paths: Paths) -> Tree:
    """The entries that reef ships for all agents: what v1 of a scenario holds.

    A scenario is bound to no agent: which of them are rendered is decided when it is installed.
    """
    return together(bases(paths))


def render(tree: Tree, adapter: Adapter) -> dict[str, bytes]:
    """What the agent reads: path relative to its config home, to bytes. Holds no address, key or model.

    The entries that reef ships for other agents are left out. Raises InvalidInput that names an entry which this agent
    cannot be given.
    """
    files = {path: text.encode() for path, text in adapter.render.files.items()}
    own = Tree(entry for entry in tree.entries if not _is_anothers(entry, adapter))
    texts = [entry.text.strip("\n") for entry in own.of_kind("rules")]
    if adapter.render.rules and (texts or adapter.render.rules_head):
        framed = [adapter.render.rules_head, *texts, adapter.render.rules_tail]
        files[adapter.render.rules] = ("\n\n".join(text for text in framed if text) + "\n").encode()
    for entry in own.entries:
        if entry.kind not in adapter.kinds:
            a = "an" if entry.kind[0] in "aeiou" else "a"
            raise InvalidInput(f"{entry.id}: {adapter.title} has no place for {a} {entry.kind}")
        if entry.kind != "rules":
            files |= _render_one(entry, adapter)
    return files


def fitting(tree: Tree, adapter: Adapter) -> tuple[Tree, list[str]]:
    """The part of `tree` that `adapter` can be given, and one sentence for each other entry that says why not.

    For an install: a scenario that learned with one agent may hold what another has no place for.
    """
    kept: list[Entry] = []
    left_out: list[str] = []
    for entry in tree.entries:
        try:
            render(Tree([entry]), adapter)
        except InvalidInput as error:
            left_out.append(error.message)
        else:
            kept.append(entry)
    return Tree(kept), left_out


def _is_anothers(entry: Entry, adapter: Adapter) -> bool:
    """Whether reef ships the entry for another agent."""
    own = f"{RESERVED}{adapter.name}"
    return entry.id.startswith(RESERVED) and entry.id != own and not entry.id.startswith(f"{own}-")


def _render_one(entry: Entry, adapter: Adapter) -> dict[str, bytes]:
    if entry.kind == "config":
        place = adapter.render.config.get(entry.id)
        if place is None:
            known = ", ".join(sorted(adapter.render.config))
            raise InvalidInput(f"{entry.id}: {adapter.title} has no config target of this name (targets: {known})")
        return {place: formatted(place, entry.config["data"])}
    template = str(getattr(adapter.render, entry.kind))
    ext = str(entry.config.get("ext", ""))
    if entry.kind in PROGRAMS and ext not in adapter.render.extensions.allowed:
        what = f".{ext} {entry.kind.removeprefix('code_')}s"
        allowed = ", ".join(adapter.render.extensions.allowed)
        raise InvalidInput(f"{entry.id}: {adapter.title} does not load {what} (it loads: {allowed})")
    place = template.replace("{id}", entry.id).replace("{ext}", ext)
    text = frontmatter.completed(entry.text, adapter.render.front_matter.get(entry.kind, []), entry.id)
    files = {place: text.encode()}
    for inner, more in entry.config.get("files", {}).items():
        files[f"{place.rpartition('/')[0]}/{inner}"] = str(more).encode()
    if entry.kind == "code_extension":
        for inner, more in adapter.render.extensions.beside.items():
            files[f"{place.rpartition('/')[0]}/{inner}"] = more.replace("{id}", entry.id).encode()
    return files


def _read(folder: Path) -> Adapter:
    file = folder / "adapter.toml"
    try:
        found = file.stat()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error}", "reef agents list") from None
    return _parsed(file, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=64)
def _parsed(file: Path, changed: int, size: int) -> Adapter:
    """The adapter in `file`. All of them are read for every new scenario, so one that did not change is kept."""
    folder = file.parent
    try:
        adapter = Adapter.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "reef agents list") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise ConfigError(f"{file}: {key}: {reason}", "reef agents list") from None
    if adapter.name != folder.name:
        raise ConfigError(f"{file} names the adapter {adapter.name!r}, its folder is {folder.name!r}", f"mv {folder} …")
    adapter.folder_is(folder)
    return adapter
