"""Adapters: what reef must know of one coding agent, read from `adapters/<name>/adapter.toml`.

The file says how the agent is installed, pointed at reef, given files, run without a person and read back; most agents
need nothing else. Rendering is pure: a tree and an adapter give path to bytes, and no address, key or model is in it.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from reef.errors import ConfigError, InvalidInput, NotFound, ReefError
from reef.harness.tree import PREFIX, Entry, Tree
from reef.paths import Paths, search


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True
    )


class Install(_Section):
    """How the agent itself comes onto the machine."""

    kind: Literal["npm"]
    package: str
    version: str
    """The one version that was tried; nothing else is installed."""
    binary_path: str
    """The program, relative to the install folder."""
    node: str
    """Least version of Node that runs it."""
    node_wheel: str
    """Requirement that brings a Node from the Python package registry where the machine has none that fits."""
    scripts: list[str] = []
    """Install scripts that are run; all others are not."""


class Run(_Section):
    """How the agent is started."""

    headless: list[str]
    """Arguments of one run without a person; `{prompt}` stands for the prompt."""
    version: list[str]
    reload: str | None = None
    """What a person types in a running session to read the installed files again."""
    environment: dict[str, str] = {}
    """Set for every run, where the person's shell does not set them."""
    removed: list[str] = []
    """Patterns of variables that the agent must not inherit."""
    sealed: dict[str, str] = {}
    """Set on top for a run that has no network."""


class AgentHome(_Section):
    """What else the agent would find in its config home."""

    refused: list[str] = []
    """Names that it reads as instructions, or as programs to start, and that no version holds."""


class Transcript(_Section):
    """How the agent writes down its own sessions."""

    format: str
    path: str


class Resume(_Section):
    """How the agent goes on with a session of its own."""

    arguments: list[str]
    """`{session}` stands for the session's id."""
    unless: list[str] = []
    """Arguments of a run without a person, after which nothing is said."""


class Extensions(_Section):
    """Which files a code extension may be."""

    allowed: list[str] = []


class Render(_Section):
    """Where each kind of entry goes, relative to the agent's config home. A kind that is left out is not rendered."""

    rules: str | None = None
    skill: str | None = None
    agent_command: str | None = Field(None, alias="agent_command")
    code_extension: str | None = Field(None, alias="code_extension")
    config: dict[str, str] = {}
    """File for each config target."""
    extensions: Extensions = Extensions()


class Code(_Section):
    """What in a change is code."""

    config_keys: list[str] = []
    """`target.key.path` of the settings that are not."""
    shell_interpolation: list[str] = []
    """Regular expressions that find a shell call in a command or skill text."""


class Limits(_Section):
    """Sizes that admission holds a tree to."""

    entries: int = 256
    entry_bytes: int = 65536
    rules_bytes: int = 65536
    skill_description: int = 1024


class Reach(_Section):
    """How a changed entry is looked for in the request that the agent sends."""

    skill: list[str] = ["{name}", "{description}"]
    """Texts that name a skill in the request; every one must be there."""
    escape: Literal["none", "xml"] = "none"
    """How the agent writes a name and a description."""
    body: str | None = None
    """What a person types to have a skill's whole text put into the request."""
    command: str = "/{id} {words}"
    """What a person types to run a command."""
    placeholders: str = r"\$ARGUMENTS"
    """Regular expression that finds what the agent replaces in a command's text."""


class Models(_Section):
    """Sizes assumed when the daemon does not name them."""

    context_window: int = 32768
    max_tokens: int = 8192


class Adapter(_Section):
    """One coding agent. `load_adapter` makes it."""

    name: str
    title: str
    binary: str
    dialect: Literal["chat", "responses", "messages"]
    home_variable: str
    """Variable that moves the agent's whole config home."""
    session_header: str
    install: Install | None = None
    run: Run
    home: AgentHome = AgentHome()
    transcript: Transcript | None = None
    resume: Resume | None = None
    render: Render
    code: Code = Code()
    limits: Limits = Limits()
    reach: Reach = Reach()
    models: Models = Models()
    state: dict[str, list[str]] = {}
    """For each file of the home that the agent also writes: the keys that survive the next start."""
    binding: dict[str, dict[str, Any]] = {}
    """JSON files that point the agent at reef, with placeholders."""
    defaults: dict[str, dict[str, Any]] = {}
    """JSON files with values that the tree may override, with placeholders."""

    _folder: Path = PrivateAttr()

    @property
    def folder(self) -> Path:
        """The adapter's own folder."""
        return self._folder

    @property
    def kinds(self) -> list[str]:
        """The entry kinds that this agent is given."""
        found = [kind for kind in ("rules", "skill", "agent_command") if getattr(self.render, kind)]
        found += ["code_extension"] if self.render.code_extension else []
        return found + (["config"] if self.render.config else [])


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


def base_entries(adapter: Adapter) -> Tree:
    """The entries that reef ships for this agent, from the adapter's `base` folder: what v1 of a scenario holds."""
    base = adapter.folder / "base"
    files = {
        PREFIX + file.relative_to(base).as_posix(): file.read_bytes() for file in base.rglob("*") if file.is_file()
    }
    return Tree.from_files(files)


def render(tree: Tree, adapter: Adapter) -> dict[str, bytes]:
    """What the agent reads: path relative to its config home, to bytes. Holds no address, key or model.

    Raises InvalidInput that names an entry which this agent cannot be given.
    """
    files: dict[str, bytes] = {}
    rules = tree.of_kind("rules")
    if rules and adapter.render.rules:
        files[adapter.render.rules] = ("\n\n".join(entry.text.strip("\n") for entry in rules) + "\n").encode()
    for entry in tree.entries:
        if entry.kind not in adapter.kinds:
            raise InvalidInput(f"{entry.id}: {adapter.title} has no place for a {entry.kind}")
        if entry.kind != "rules":
            files |= _render_one(entry, adapter)
    return files


def _render_one(entry: Entry, adapter: Adapter) -> dict[str, bytes]:
    if entry.kind == "config":
        place = adapter.render.config.get(entry.id)
        if place is None:
            known = ", ".join(sorted(adapter.render.config))
            raise InvalidInput(f"{entry.id}: {adapter.title} has no config target of this name (targets: {known})")
        return {place: entry.text.encode()}
    template = str(getattr(adapter.render, entry.kind))
    ext = str(entry.config.get("ext", ""))
    if entry.kind == "code_extension" and ext not in adapter.render.extensions.allowed:
        allowed = ", ".join(adapter.render.extensions.allowed)
        raise InvalidInput(f"{entry.id}: {adapter.title} does not load .{ext} extensions (it loads: {allowed})")
    place = template.replace("{id}", entry.id).replace("{ext}", ext)
    files = {place: entry.text.encode()}
    for inner, text in entry.config.get("files", {}).items():
        files[f"{place.rpartition('/')[0]}/{inner}"] = str(text).encode()
    return files


def binding(
    adapter: Adapter,
    url: str,
    model: str,
    context_window: int | None = None,
    max_tokens: int | None = None,
    rendered: Mapping[str, bytes] | None = None,
) -> dict[str, bytes]:
    """The files that point the agent at a reef daemon or a recorder at `url` (without `/v1`).

    A file that `rendered` also holds is merged: the adapter's defaults, then the tree's values, then the binding. The
    key in them is the name of the variable `REEF_SESSION`, never a value. Sizes are in tokens; None means that the
    server did not say.
    """
    window = context_window or adapter.models.context_window
    values: dict[str, str | int] = {
        "base_url": url.rstrip("/") + ("" if adapter.dialect == "messages" else "/v1"),
        "model": model,
        "context_window": window,
        "max_tokens": max_tokens or min(adapter.models.max_tokens, window // 4),
        "reserve_tokens": min(16384, window // 4),
        "keep_tokens": min(20000, window // 3),
    }
    files: dict[str, bytes] = {}
    for place in sorted({*adapter.binding, *adapter.defaults}):
        merged = merge_json(
            _filled(adapter.defaults.get(place, {}), values), json.loads((rendered or {}).get(place, b"{}"))
        )
        merged = merge_json(merged, _filled(adapter.binding.get(place, {}), values))
        files[place] = (json.dumps(merged, indent=2, ensure_ascii=False) + "\n").encode()
    return files


def _filled(value: Any, values: Mapping[str, str | int]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if isinstance(value, str) and value[:1] == "{" and value[-1:] == "}" and value[1:-1] in values:
        return values[value[1:-1]]
    return value


def merge_json(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """Two JSON objects as one; `high` wins, objects are merged key by key."""
    both = dict(low)
    for key, value in high.items():
        old = both.get(key)
        both[key] = merge_json(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def _read(folder: Path) -> Adapter:
    file = folder / "adapter.toml"
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
    adapter._folder = folder
    return adapter
