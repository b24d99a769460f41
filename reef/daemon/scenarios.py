"""Scenarios: known by name in memory, created with a base version, finished or undone when a creation broke off.

The daemon is the only writer, so what is in memory is what is in the database; a model call looks a name up without
touching the disk.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reef.config import Settings, canonical_recipe
from reef.credentials import find_credentials
from reef.daemon.served import ServedVersions
from reef.errors import Conflict, InvalidInput, NotFound, ReefError
from reef.harness.adapter import base_of_all, load_adapter
from reef.ids import scenario_name
from reef.learning.manifest import manifest
from reef.paths import Paths
from reef.records import rows
from reef.records.writer import Writer

log = logging.getLogger("reef.daemon")
DEFAULT = "default"


@dataclass(frozen=True)
class Scenario:
    """One scenario row."""

    name: str
    recipe: str
    adapter: str
    engine: str | None
    """None: the daemon's own; `embedded`; or an upstream specification as JSON."""
    created_at: str
    ready: bool
    """False while, or because, its creation has not ended."""
    config: dict[str, Any]
    archived: bool = False
    """Takes no calls, reports, asks or decisions; what it holds can be read, and it can be brought back."""


class Scenarios:
    """All scenarios of this home."""

    def __init__(
        self,
        writer: Writer,
        publisher: ServedVersions,
        settings: Settings,
        paths: Paths,
        check_engine: Callable[[str], None],
    ) -> None:
        """`check_engine` raises for an engine specification that cannot be built."""
        self._writer = writer
        self._publisher = publisher
        self._settings = settings
        self._paths = paths
        self._check_engine = check_engine
        self._rows: dict[str, Scenario] = {}
        self._turn = asyncio.Lock()

    async def load(self) -> None:
        """Read every row; called once, before anything else."""
        for scenario in await self._writer.write(_read_rows):
            self._rows[scenario.name.casefold()] = scenario

    def all(self) -> list[Scenario]:
        """Every scenario, oldest first; also those whose creation has not ended, and archived ones."""
        return list(self._rows.values())

    def known(self, name: object, archived: bool = False) -> Scenario:
        """The scenario of exactly this name. `archived` says whether an archived one will do, as it does for reading.

        Raises InvalidInput for what is no name, NotFound with the nearest, Conflict for an archived one.
        """
        checked = scenario_name(name)
        found = self._rows.get(checked.casefold())
        if found is not None and found.name == checked:
            if found.archived and not archived:
                raise _is_archived(found)
            return found
        names = [scenario.name for scenario in self._rows.values()]
        near = [found.name] if found else difflib.get_close_matches(checked, names, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else "reef scenarios list"
        raise NotFound(f"there is no scenario {checked!r}", hint)

    async def for_call(self, name: str) -> tuple[Scenario, bool]:
        """The scenario that a model call named, made when it is new: (scenario, whether it was made now)."""
        found = self._rows.get(name.casefold())
        if found is not None and found.name == name and found.ready:
            return found, False
        checked = scenario_name(name)
        if found is None and checked != DEFAULT and not self._settings.reef.allow_implicit_scenario_creation:
            raise NotFound(f"there is no scenario {checked!r}", f"reef scenarios create {checked}")
        return await self.create(checked)

    async def create(
        self, name: object, recipe: str | None = None, engine: str | None = None, adapter: str | None = None
    ) -> tuple[Scenario, bool]:
        """Make a scenario with its base version, or return the one that is there: (scenario, whether it was made).

        Raises Conflict when it is there with another recipe, engine or adapter than asked for.
        """
        checked = scenario_name(name)
        async with self._turn:
            found = self._rows.get(checked.casefold())
            if found is None:
                found = await self._begin(checked, recipe, engine, adapter)
            elif found.name != checked:
                raise InvalidInput(
                    f"{checked!r} differs from scenario {found.name!r} only by case", f"use {found.name!r}"
                )
            else:
                if found.archived:
                    raise _is_archived(found)
                _check_same(found, recipe, engine, adapter)
                if found.ready:
                    return found, False
            return await self._finish(found), True

    async def finish_half_made(self) -> None:
        """Finish what an earlier daemon began to make; undo what cannot be finished."""
        for scenario in [row for row in self._rows.values() if not (row.ready or row.archived)]:
            async with self._turn:
                if self._rows[scenario.name.casefold()].ready:
                    continue
                try:
                    await self._finish(scenario)
                    log.info("finished the creation of scenario %s", scenario.name)
                except ReefError as error:
                    log.warning("the creation of scenario %s is undone: %s", scenario.name, error.message)
                    await self._writer.write(partial(rows.remove_scenario, name=scenario.name))
                    del self._rows[scenario.name.casefold()]

    async def archive(self, name: str) -> Scenario:
        """Take a scenario out of use; nothing of it is lost. Twice is once.

        Raises NotFound, InvalidInput for `default`, Conflict while one of its steps runs.
        """
        return await self._move(name, "archived")

    async def restore(self, name: str) -> Scenario:
        """Bring an archived scenario back into use. Raises NotFound."""
        return await self._move(name, "ready")

    async def _move(self, name: str, state: str) -> Scenario:
        async with self._turn:
            found = self.known(name, archived=True)
            if found.name == DEFAULT:
                raise InvalidInput(
                    f"scenario {DEFAULT!r} takes every call that names none and stays", "reef scenarios list"
                )
            if not (found.ready or found.archived):
                raise Conflict(f"scenario {found.name!r} is still being created", "reef scenarios list")
            if found.archived == (state == "archived"):
                return found
            await self._writer.write(partial(rows.move_scenario, name=found.name, state=state))
            moved = replace(found, ready=state == "ready", archived=state == "archived")
            self._rows[found.name.casefold()] = moved
            return moved

    async def _begin(self, name: str, recipe: str | None, engine: str | None, adapter: str | None) -> Scenario:
        # Both are used as they are stored, so a credential in one is refused and not cut out.
        if find_credentials(name):
            raise InvalidInput("this name of a scenario is shaped like a credential", "use 'my-harness'")
        if find_credentials(engine or ""):
            raise InvalidInput("'engine' may hold no key; name its variable in 'key_env'", "reef scenarios create")
        own = self._settings.recipe
        chosen = canonical_recipe(recipe or own.implementation)
        await asyncio.to_thread(manifest, chosen, self._paths)
        agent = adapter or self._settings.harness.adapter
        load_adapter(agent, self._paths)
        if engine is not None:
            self._check_engine(engine)
        # The keys in the settings are those of the daemon's recipe, and were checked as such.
        config = dict(own.config) if chosen == own.implementation else {}
        # A value that may not be stored is taken from the settings at every step.
        config = {
            key: value for key, value in config.items() if not find_credentials(json.dumps({key: value}, default=str))
        }

        def write(conn: sqlite3.Connection) -> Scenario:
            rows.add_scenario(conn, name, recipe=chosen, adapter=agent, engine=engine, config=config)
            return _read_rows(conn, name)[0]

        scenario = self._rows[name.casefold()] = await self._writer.write(write)
        return scenario

    async def _finish(self, scenario: Scenario) -> Scenario:
        load_adapter(scenario.adapter, self._paths)
        base = await asyncio.to_thread(base_of_all, self._paths)
        await self._publisher.create_base(scenario.name, base.to_files())
        await self._writer.write(lambda conn: rows.set_scenario(conn, scenario.name, state="ready"))
        ready = self._rows[scenario.name.casefold()] = replace(scenario, ready=True)
        return ready


def _is_archived(scenario: Scenario) -> Conflict:
    return Conflict(f"scenario {scenario.name!r} is archived", f"reef scenarios restore {scenario.name}")


def _check_same(found: Scenario, recipe: str | None, engine: str | None, adapter: str | None) -> None:
    asked = {"recipe": canonical_recipe(recipe) if recipe else None, "engine": engine, "adapter": adapter}
    for field, value in asked.items():
        has = getattr(found, field)
        if value is not None and value != has:
            raise Conflict(
                f"scenario {found.name!r} is there with {field} {has or 'of the daemon'!r}, not {value!r}",
                "reef scenarios list",
            )


def _read_rows(conn: sqlite3.Connection, name: str | None = None) -> list[Scenario]:
    found: list[Any] = conn.execute(
        "SELECT name, recipe, adapter, engine, created_at, state, config_json FROM scenarios"
        " WHERE ?1 IS NULL OR name = ?1 ORDER BY sequence",
        (name,),
    ).fetchall()
    return [
        Scenario(
            name, recipe, adapter, engine, created_at, state == "ready", json.loads(config or "{}"), state == "archived"
        )
        for name, recipe, adapter, engine, created_at, state, config in found
    ]


def require_learning(scenario: Scenario) -> None:
    """Raises InvalidInput when the scenario's recipe only records."""
    if scenario.recipe == "basic":
        raise InvalidInput(
            f"scenario {scenario.name!r} records only (recipe basic), it takes no asks",
            "reef scenarios create my-harness --recipe reefine",
        )
