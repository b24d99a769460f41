"""One step as the daemon sees it: choose who writes, hand the job over, pass on what happens, act on the result."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reef.config import Settings
from reef.errors import Conflict, Failed, InvalidInput, ReefError
from reef.harness.tree import PREFIX, Tree
from reef.learning import ledger
from reef.learning.frames import Result
from reef.learning.job import Job
from reef.learning.ledger import Begun, ScenarioFacts
from reef.learning.manifest import manifest
from reef.learning.proposers.verbatim import WHY_EMBEDDED
from reef.learning.running import StepProcess
from reef.paths import Paths
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.catalog import Version
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository

log = logging.getLogger("reef.learning")

EMBEDDED = "embedded"


class Engine(Protocol):
    """What a step needs to know of the engine that serves its scenario."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str | None: ...


class Sessions(Protocol):
    """Makes the token with which a step reaches models."""

    async def open(self, scenario: str, kind: Any, pid: int | None) -> tuple[Any, str]:
        """A session (it has an `id`) of kind `step` and its token."""
        ...

    async def close(self, session_id: str) -> Any: ...


@dataclass(frozen=True)
class Home:
    """The parts of the daemon that a step touches."""

    writer: Writer
    repository: Repository
    publisher: Publisher
    sessions: Sessions
    settings: Settings
    paths: Paths
    url: Callable[[], str]
    """The daemon's own address."""
    engine_of: Callable[[str], Engine]
    """The engine that serves a scenario; may raise ReefError."""


@dataclass(frozen=True)
class Outcome:
    """How a step ends: columns of its row."""

    state: str
    reason: str
    fields: Mapping[str, Any]


def choose_proposer(setting: str, engine: Engine) -> tuple[str, str]:
    """Who writes the change, and why when the settings leave it open: (`model` or `verbatim`, sentence)."""
    if setting == "auto":
        return ("verbatim", WHY_EMBEDDED) if engine.name == EMBEDDED else ("model", "")
    return setting, ""


class Attempt:
    """One running step. It is also the listener of its process."""

    def __init__(self, home: Home, begun: Begun, facts: ScenarioFacts) -> None:
        self.begun = begun
        self.progress = "proposing"
        self.over = asyncio.Event()
        """Set when the row is settled."""
        self._home = home
        self._facts = facts
        self._folder = home.paths.steps / begun.scenario / str(begun.number)
        self._process = StepProcess(self._folder, os.environ)
        self._session: str | None = None
        self._ended: tuple[str, str] | None = None

    async def end(self, state: str, reason: str) -> None:
        """End the process and have the row settled with this state and reason; returns when it is.

        Raises Conflict when the result is there and being acted on.
        """
        if self.progress == "settling":
            raise Conflict(
                f"step {self.begun.number} of {self.begun.scenario!r} is already being settled", "reef steps list"
            )
        self._ended = self._ended or (state, reason)
        await self._process.cancel()
        await self.over.wait()

    async def run(self) -> Outcome:
        """Everything up to the outcome. Raises nothing: what goes wrong is a `failed` outcome."""
        try:
            return await self._run()
        except ReefError as error:
            return self._broken(error.message)
        except Exception as error:
            # The boundary between one step and the daemon: the row says what happened, the log says where.
            log.exception("step %s of %s failed", self.begun.number, self.begun.scenario)
            return self._broken(f"{type(error).__name__}: {error}")
        finally:
            if self._session is not None:
                with contextlib.suppress(ReefError):
                    await self._home.sessions.close(self._session)

    def _broken(self, reason: str) -> Outcome:
        state, why = self._ended or ("failed", reason)
        return Outcome(state, why, {})

    async def _run(self) -> Outcome:
        head = await self._home.publisher.head(self.begun.scenario)
        job = await self._job(head)
        if self._ended is None:
            result = await self._process.run(lambda pid: self._hand_over(job, pid), self, self._timeout())
        if self._ended is not None:
            return Outcome(*self._ended, {})
        self.progress = "settling"
        return await self._act(head, result)

    def _timeout(self) -> float:
        return self._home.settings.harness.step_timeout

    # What the process is given

    async def _job(self, head: Version) -> dict[str, Any]:
        facts, home = self._facts, self._home
        wanted = manifest(facts.recipe, home.paths)
        if not wanted.takes_asks:
            raise InvalidInput(f"recipe {wanted.name} takes no asks", "reef recipes list")
        engine = home.engine_of(facts.name)
        proposer, why = choose_proposer(home.settings.harness.proposer, engine)
        # What an agent proposed is written already.
        writer = "agent" if self.begun.proposals else proposer
        await self._note({"proposer": writer, "policy": wanted.policy})
        files = await asyncio.to_thread(home.repository.files, head.release_id, PREFIX)
        same = home.settings.recipe.implementation == facts.recipe
        return {
            "scenario": facts.name,
            "step": self.begun.number,
            "recipe": facts.recipe,
            "config": {**(home.settings.recipe.config if same else {}), **facts.config},
            "adapter": facts.adapter,
            "asks": list(self.begun.asks),
            "proposals": list(self.begun.proposals),
            "tree": Tree.from_files(files).to_json(),
            "proposer": proposer,
            "proposer_why": why,
            "policy": wanted.policy,
            "rejected": await home.writer.write(lambda conn: ledger.rejected_before(conn, facts.name)),
            "state": await home.writer.write(lambda conn: ledger.last_state(conn, facts.name)),
            "count_agent_reports": home.settings.records.count_agent_reports,
            "url": home.url(),
            "model": engine.model,
            "database": home.paths.database,
            "folder": self._folder,
        }

    async def _hand_over(self, job: dict[str, Any], pid: int) -> bytes:
        """The job's bytes for the process `pid`, to which the token is bound."""
        session, token = await self._home.sessions.open(self._facts.name, "step", pid)
        self._session = session.id
        await self._note({"pid": pid})
        return Job(token=token, **job).model_dump_json().encode()

    # What the process sends

    async def activity(self, kind: str, text: str, failed: bool) -> None:
        # Not waited for: a talkative recipe is not slowed down, and the writer keeps the order up to the row's end.
        self._home.writer.submit(lambda conn: ledger.tell(conn, self.begun, kind, text, failed), essential=False)

    async def phase(self, phase: str) -> None:
        # `settling` is the daemon's own word: until the result is here the step can be cancelled.
        if phase in ("proposing", "evaluating"):
            self.progress = phase

    async def fields(self, fields: Mapping[str, Any]) -> None:
        await self._note(fields)

    async def episode(self, fields: Mapping[str, Any]) -> None:
        step = self.begun
        await self._home.writer.write(lambda conn: rows.add_episode(conn, step.scenario, step.number, **fields))

    async def _note(self, fields: Mapping[str, Any]) -> None:
        step = self.begun
        await self._home.writer.write(lambda conn: ledger.note(conn, step.scenario, step.number, fields))

    # What follows from the result

    async def _act(self, head: Version, result: Result) -> Outcome:
        columns = _columns(result)
        if result.outcome != "candidate":
            if result.tree is not None:
                columns["candidate"] = await asyncio.to_thread(self._keep, head, result)
            return Outcome(result.outcome, result.reason, columns)
        if result.tree is None:
            raise Failed("the step sent a candidate without its tree", "reef steps list")
        version = await self._home.publisher.publish(
            Proposal(
                self.begun.scenario,
                Tree.from_json(result.tree).to_files(),
                head.release_id,
                result.summary or f"step {self.begun.number}",
                step=self.begun.number,
                pending=result.pending,
                requires=result.requires,
                evaluation=result.evaluation,
                step_fields={**columns, "reason": result.reason},
            )
        )
        return Outcome(version.state, result.reason, columns)

    def _keep(self, head: Version, result: Result) -> str:
        """Keep an admitted candidate that lost, so that it can be looked at; returns its commit."""
        scenario, number = self.begun.scenario, self.begun.number
        facts = {"scenario": scenario, "step": number, "candidate": True, "parent": head.release_id}
        files = Tree.from_json(result.tree or []).to_files()
        repository = self._home.repository
        summary = f"candidate of step {number}: {result.summary}"
        release = repository.commit(files, facts, head.release_id, summary, changes=(PREFIX.rstrip("/"),))
        repository.keep_candidate(scenario, number, release)
        return release


def _columns(result: Result) -> dict[str, Any]:
    found = {
        "summary": result.summary or None,
        "evaluation": result.evaluation,
        "mutations": result.mutations,
        "consumed": result.consumed,
        "notes": result.notes,
        "metrics": result.metrics,
    }
    return found if result.state is None else {**found, "recipe_state": result.state}
