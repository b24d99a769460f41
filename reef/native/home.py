"""Where the agent finds what it runs on: its config home, its model, and the daemon that it belongs to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reef.errors import ConfigError, UsageError

HOME_VARIABLE = "REEF_NATIVE_DIR"
_START = "reef versions install --adapter native, then reef-native"


@dataclass(frozen=True)
class Model:
    """What answers."""

    name: str
    base_url: str
    """With `/v1`."""
    key: str
    """The session's token."""
    context_window: int
    max_tokens: int


@dataclass(frozen=True)
class Limits:
    """What a version may set in `settings.json`."""

    bash_timeout_s: int = 120
    tool_output_bytes: int = 16384
    tool_rounds: int = 50
    reply_tokens: int = 1 << 20
    """Most tokens of one answer; the model's own limit and an eighth of its window hold as well."""


@dataclass(frozen=True)
class Home:
    """One run's surroundings, read once at start."""

    folder: Path
    model: Model
    limits: Limits
    url: str | None
    """The daemon, None in a run without one."""
    scenario: str
    session: str | None
    """The daemon's id of this run."""

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"


def read_home(environ: Mapping[str, str] | None = None) -> Home:
    """The surroundings that the wrapper has made. Raises UsageError outside of it, ConfigError for a broken file."""
    env = os.environ if environ is None else environ
    folder, key = env.get(HOME_VARIABLE), env.get("REEF_SESSION")
    if not folder or not key:
        raise UsageError("reef's own agent runs only as reef-native, which points it at the daemon", _START)
    place = Path(folder)
    bound = _object(place / "models.json")
    try:
        model = Model(
            str(bound["model"]),
            str(bound["base_url"]).rstrip("/"),
            key,
            int(bound["context_window"]),
            int(bound["max_tokens"]),
        )
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"{place / 'models.json'} does not name a model", _START) from None
    limits = _limits(place / "settings.json")
    # A token has three bytes and more: one result takes at most a third of the window.
    most = min(limits.tool_output_bytes, max(1024, model.context_window))
    # A small model may go on until it has no room left, for minutes.
    reply = min(model.max_tokens, limits.reply_tokens, max(512, model.context_window // 8))
    return Home(
        place,
        replace(model, max_tokens=reply),
        replace(limits, tool_output_bytes=most),
        env.get("REEF_URL") or None,
        env.get("REEF_SCENARIO", ""),
        env.get("REEF_SESSION_ID") or None,
    )


def _limits(file: Path) -> Limits:
    given = _object(file) if file.is_file() else {}
    most = {"bash_timeout_s": 3600, "tool_output_bytes": 1 << 20, "tool_rounds": 1000, "reply_tokens": 1 << 20}
    found: dict[str, int] = {}
    for name, highest in most.items():
        value = given.get(name, getattr(Limits, name))
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= highest:
            raise ConfigError(f"{file}: {name} is not a whole number from 1 to {highest}", "reef versions show")
        found[name] = value
    return Limits(**found)


def _object(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", _START) from None
    if not isinstance(value, dict):
        raise ConfigError(f"{file} holds no object", _START)
    return value
