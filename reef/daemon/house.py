"""The house: the rooms of one running daemon, opened in order and handed to every route through the app."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from reef.config import Resolved, Settings
from reef.daemon.engine_room import EngineRoom
from reef.daemon.feed import Feed
from reef.daemon.housekeeping import Housekeeping
from reef.daemon.indexing import Indexing
from reef.daemon.reading import Reading
from reef.daemon.rules import RulesSizes
from reef.daemon.scenarios import Scenarios
from reef.daemon.served import ServedVersions
from reef.daemon.sessions import Sessions
from reef.daemon.upgrading import Upgrading
from reef.gateway.relay import Gateway
from reef.ids import utc_now
from reef.learning.supervisor import Supervisor
from reef.paths import Paths
from reef.records.writer import Writer
from reef.versions.repository import Repository


@dataclass
class House:
    """Everything that a route may use."""

    paths: Paths
    resolved: Resolved
    writer: Writer
    reading: Reading
    repository: Repository
    publisher: ServedVersions
    scenarios: Scenarios
    sessions: Sessions
    engines: EngineRoom
    gateway: Gateway
    supervisor: Supervisor
    feed: Feed
    person_key: str
    discovery: dict[str, Any]
    """What the discovery file says; filled when the address is known."""
    indexing: Indexing
    housekeeping: Housekeeping
    upgrading: Upgrading
    stop: Callable[[bool], None] | None = None
    """Asks the daemon to end; the argument cuts running calls."""
    stopping: bool = False
    started_at: str = field(default_factory=utc_now)
    started: float = field(default_factory=time.monotonic)
    rules: RulesSizes = field(default_factory=RulesSizes)
    work: set[asyncio.Task[None]] = field(default_factory=set)
    """Background tasks, kept from being collected."""

    @property
    def settings(self) -> Settings:
        return self.resolved.settings


HOUSE: web.AppKey[House] = web.AppKey("house", House)


def house_of(request: web.Request) -> House:
    """The house that a request came to."""
    return request.app[HOUSE]
