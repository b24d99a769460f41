"""Opening the house: every room in order, and the recovery that never keeps a start waiting.

What must be true before the first call is done here; what may take its time (half-made scenarios, versions that a stop
broke off, sessions without a process) runs in the background while the daemon already answers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from reef.config import Resolved
from reef.daemon.belonging import find_broken, refuse_other_database
from reef.daemon.engine_room import EngineRoom
from reef.daemon.feed import Feed
from reef.daemon.house import House
from reef.daemon.housekeeping import Housekeeping
from reef.daemon.indexing import Indexing
from reef.daemon.reading import Reading
from reef.daemon.scenarios import DEFAULT, Scenarios
from reef.daemon.secrets_on_disk import person_key
from reef.daemon.served import ServedVersions
from reef.daemon.sessions import Sessions
from reef.daemon.upgrading import Upgrading
from reef.errors import ReefError
from reef.gateway.dialects import body_of_text
from reef.gateway.relay import Gateway
from reef.learning.attempt import Home
from reef.learning.supervisor import Supervisor
from reef.paths import Paths
from reef.records import rows, swap
from reef.records.calls import mark_interrupted
from reef.records.writer import RecordingFailed, Writer
from reef.versions.repository import Repository

log = logging.getLogger("reef.daemon")
_RETRY_S = 1.0


async def open_house(resolved: Resolved, paths: Paths) -> House:
    """Open every room. Raises the ReefError of the room that cannot be opened."""
    if await asyncio.to_thread(swap.finish, paths):
        log.warning("a restore that was interrupted is finished")
    writer = await asyncio.to_thread(Writer, paths.database)
    # First in the queue of the one writer: whatever is open now belongs to a daemon that is gone.
    interrupted = writer.submit(lambda conn: mark_interrupted(conn, body_of_text))
    reading = Reading(paths.database)
    repository = Repository(paths.versions_git)
    await asyncio.to_thread(repository.ensure)
    publisher = ServedVersions(writer, repository, rows)
    await publisher.load()
    engines = EngineRoom(resolved.settings, paths, writer)
    scenarios = Scenarios(writer, publisher, resolved.settings, paths, engines.check)
    await scenarios.load()
    await refuse_other_database(scenarios, repository, paths)
    try:
        await scenarios.create(DEFAULT)
    except ReefError as error:
        # The next call to it says the same; what else is there can be used meanwhile.
        log.error("scenario %s cannot be made: %s", DEFAULT, error.message)
    sessions = Sessions(writer)
    await sessions.load()
    gateway = Gateway(writer, resolved.settings)
    discovery: dict[str, Any] = {}
    home = Home(
        writer, repository, publisher, sessions, resolved.settings, paths,
        url=lambda: str(discovery["url"]), engine_of=lambda name: engines.of(scenarios.known(name).engine),
    )  # fmt: skip
    count = await asyncio.wrap_future(interrupted)
    if count:
        log.warning("%d calls were running when the last daemon ended; they are interrupted now", count)
    supervisor = Supervisor(home)
    return House(
        paths, resolved, writer, reading, repository, publisher, scenarios, sessions, engines, gateway,
        supervisor, Feed(writer, reading), person_key(paths), discovery, Indexing(writer, paths.database),
        Housekeeping(paths, writer, repository, scenarios, resolved.settings),
        Upgrading(paths, writer, repository, publisher, scenarios, supervisor.running_step),
    )  # fmt: skip


async def recover(house: House) -> None:
    """Finish or undo what an earlier daemon left half done; no step begins before. Waits for a store that is full."""
    while True:
        try:
            return await _recover(house)
        except RecordingFailed as error:
            log.error("what the last daemon left half done waits for the record store: %s", error.message)
            await asyncio.sleep(_RETRY_S)


async def _recover(house: House) -> None:
    for sentence in await house.publisher.recover():
        log.info("%s", sentence)
    await house.scenarios.finish_half_made()
    await find_broken(house.scenarios, house.publisher, house.repository)
    # Before a step begins: one that is made from the old entries would lose its race.
    await house.upgrading.all()
    for name, number in await house.supervisor.start():
        log.warning("step %d of %s was running when the last daemon ended; it is failed now", number, name)
