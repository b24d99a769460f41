"""The engines of one daemon: its own, and those that scenarios name; built once, started in the background.

A start never waits for a model: the address answers at once, and a call waits until its engine can take it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import time
from typing import Any
from urllib.parse import urlsplit

from reef import events
from reef.config import Settings
from reef.engines.discovery import build, build_multimodal
from reef.engines.engine import Engine, EngineHealth, OnChange
from reef.errors import InvalidInput, ReefError
from reef.paths import Paths
from reef.providers import provider_of
from reef.records import rows
from reef.records.writer import Writer

log = logging.getLogger("reef.daemon")
_FRESH_S = 5.0
_HEALTH_WAIT_S = 1.0
EMBEDDED = "embedded"
"""Specification of a scenario's own embedded engine."""


class EngineRoom:
    """Holds every engine and says how it stands."""

    def __init__(self, settings: Settings, paths: Paths, writer: Writer) -> None:
        self._settings = settings
        self._paths = paths
        self._writer = writer
        self._own = build(settings, paths, self._told("daemon"))
        self.multimodal = build_multimodal(settings)
        """What answers embeddings, images and speech; None: the engine of the call's scenario."""
        self._named: dict[str, Engine] = {}
        self._starts: set[asyncio.Task[None]] = set()
        self._asking: asyncio.Task[EngineHealth] | None = None
        self._asked = 0.0

    @property
    def own(self) -> Engine:
        """The engine of every scenario that names none."""
        return self._own

    def start(self) -> None:
        """Begin to start the daemon's own engine; returns at once."""
        self._begin(self._own)

    def of(self, spec: str | None) -> Engine:
        """The engine that a scenario's `engine` column means; one that is used for the first time starts now."""
        if spec is None or (spec == EMBEDDED and self._own.name == "embedded"):
            return self._own
        found = self._named.get(spec)
        if found is None:
            found = self._named[spec] = self._make(spec)
            self._begin(found)
        return found

    def check(self, spec: str) -> None:
        """Raises InvalidInput for what is no engine specification, ConfigError for one that this reef cannot build."""
        if spec != EMBEDDED:
            self._build(parse_spec(spec), None)

    async def health(self) -> None:
        """Make `describe` of the daemon's own engine fresh: asked at most every 5 s, waited for at most 1 s."""
        now = time.monotonic()
        if self._asking is None or (self._asking.done() and now - self._asked > _FRESH_S):
            self._asked = now
            self._asking = asyncio.create_task(self._own.health(), name="engine health")
        await asyncio.wait({self._asking}, timeout=_HEALTH_WAIT_S)

    async def stop(self) -> None:
        """End every engine."""
        for task in (*self._starts, *([self._asking] if self._asking is not None else [])):
            task.cancel()
        for engine in (self._own, *self._named.values(), *([self.multimodal] if self.multimodal else [])):
            await engine.stop()

    def _make(self, spec: str) -> Engine:
        from reef.engines.embedded import EmbeddedEngine

        if spec == EMBEDDED:
            return EmbeddedEngine(self._paths, self._told(EMBEDDED))
        named = parse_spec(spec)
        return self._build(named, self._told(named.get("url") or named["model"]))

    def _build(self, named: dict[str, Any], on_change: OnChange | None) -> Engine:
        """The engine of a specification that was parsed, not started."""
        from reef.engines.upstream import UpstreamEngine

        variable, model = named.get("key_env"), named.get("model")
        key = os.environ.get(variable) if variable else None
        if model is not None and is_of_a_vendor(named):
            from reef.engines.litellm_engine import LitellmEngine

            return LitellmEngine(model, named.get("url"), key, self._settings.inference.timeout_s, on_change)
        return UpstreamEngine(named["url"], model, key, on_change, variable)

    def _begin(self, engine: Engine) -> None:
        task = asyncio.create_task(self._start(engine), name=f"start {engine.name}")
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    async def _start(self, engine: Engine) -> None:
        try:
            await engine.start()
            await engine.find_dialects()
        except ReefError as error:
            log.warning("engine %s does not start: %s", engine.name, error.message)

    def _told(self, who: str) -> OnChange:
        last: dict[str, str] = {}

        def changed(health: EngineHealth) -> None:
            # A fetch tells its progress many times a second; the event is the change of state.
            if last.get("state") == health.state:
                return
            last["state"] = health.state
            log.info("engine %s is %s%s", who, health.state, f": {health.detail}" if health.detail else "")

            def write(conn: sqlite3.Connection) -> None:
                rows.add_event(conn, events.ENGINE_CHANGED, None, {"engine": who}, health.state)

            self._writer.submit(write, essential=False)

        return changed


def is_of_a_vendor(named: dict[str, Any]) -> bool:
    """Whether a parsed specification means a vendor that speaks none of the dialects, as `bedrock/…` does."""
    return "model" in named and provider_of(named["model"]) is not None


def takes_a_key(spec: str) -> bool:
    """Whether an engine of this specification is sent a key from the daemon's environment. Raises InvalidInput."""
    named = parse_spec(spec)
    return "key_env" in named or is_of_a_vendor(named)


def parse_spec(spec: str) -> dict[str, Any]:
    """A scenario's own upstream: JSON `{"url", "model"?, "key_env"?}`. Raises InvalidInput.

    The `url` may be left out of a vendor's model, `{"model": "bedrock/…"}`. Specifications are stored, so a key may
    only be named by the variable that holds it.
    """
    hint = 'use "embedded" or {"url": "http://127.0.0.1:11434", "model": "qwen3"}'
    try:
        found = json.loads(spec)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput("'engine' is neither \"embedded\" nor an upstream with a 'url'", hint)
    strange = sorted(set(found) - {"url", "model", "key_env"})
    if strange or not all(isinstance(value, str) for value in found.values()):
        raise InvalidInput(f"'engine' takes strings for url, model and key_env (given: {', '.join(strange)})", hint)
    if "url" not in found:
        if is_of_a_vendor(found):
            return found
        raise InvalidInput("'engine' is neither \"embedded\" nor an upstream with a 'url'", hint)
    try:
        parts = urlsplit(found["url"])
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        named = False
    if not named:
        raise InvalidInput("the 'url' of 'engine' is not an http address", hint)
    if parts.query or "@" in parts.netloc:
        raise InvalidInput("the 'url' of 'engine' may hold no key; name its variable in 'key_env'", hint)
    return found
