"""Whether the database and the repository of versions belong together; one of them may have been lost or put back.

Nothing is overwritten to make them fit: a database that lost everything is refused, and a scenario whose version is not
to be had is shown as broken, with the reason, while its calls are still served.
"""

from __future__ import annotations

import asyncio
import logging

from reef.daemon.scenarios import Scenarios
from reef.daemon.served import ServedVersions
from reef.errors import Failed, ReefError
from reef.paths import Paths
from reef.versions.repository import Repository

log = logging.getLogger("reef.daemon")
_NAMED = 5


async def refuse_other_database(scenarios: Scenarios, repository: Repository, paths: Paths) -> None:
    """Raises Failed for a database without any scenario beside a repository that holds versions."""
    if scenarios.all():
        return
    branches = sorted(await asyncio.to_thread(repository.branches))
    if not branches:
        return
    named = ", ".join(branches[:_NAMED]) + (", …" if len(branches) > _NAMED else "")
    copies = sorted(place.name for place in paths.data.glob(f"{paths.database.name}.schema-*"))
    kept = f" (an old copy is {copies[-1]})" if copies else ""
    raise Failed(
        f"{paths.database} holds no scenario, but {paths.versions_git.name} beside it holds versions of {named}:"
        f" put the database back from a backup{kept}, or move the versions away to begin anew",
        f"mv {paths.versions_git} {paths.versions_git}.old && reef up",
    )


async def find_broken(scenarios: Scenarios, publisher: ServedVersions, repository: Repository) -> None:
    """Find the scenarios whose served version the repository does not hold, and say so."""
    try:
        branches = await asyncio.to_thread(repository.branches)
    except ReefError as error:
        # Then each scenario says what is wrong with its own.
        log.error("the branches of %s cannot be listed: %s", repository.path.name, error.message)
        branches = {}
    whole: set[str] = set()
    for scenario in scenarios.all():
        head = publisher.head_now(scenario.name)
        if head is None or (branches.get(scenario.name) == head.release_id and head.content_id in whole):
            continue
        problem = await publisher.look(scenario.name)
        if problem is None:
            whole.add(head.content_id)
        else:
            log.error("scenario %s is broken: %s", scenario.name, problem)
    for name in sorted(set(branches) - {scenario.name for scenario in scenarios.all()}):
        log.warning("%s holds versions of %s, which the database does not know", repository.path.name, name)
