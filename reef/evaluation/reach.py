"""Reach: does the agent really send what was changed?

The real agent runs without a person, once on the current tree and once on the candidate, in throwaway rooms, against a
recorder that answers with a scripted reply. What each changed entry brings must be absent from the first request and
present in the second, a removal the other way round, and the agent must end cleanly. No model and no luck are in it.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.credentials import clean_json
from reef.errors import Failed, ReefError
from reef.evaluation import recorder
from reef.evaluation.markers import Marker, changed_markers, skill_facts
from reef.evaluation.result import Group
from reef.harness.adapter import render
from reef.harness.adapter_file import Adapter
from reef.harness.agents import agent_argv, install_agent
from reef.harness.binding import Served, binding, bound_environment, filled, headless_arguments, placeholders
from reef.harness.formats import formatted
from reef.harness.tree import Change, Tree
from reef.paths import Paths, write_atomic
from reef.sandbox.room import Seal, probe, room
from reef.text import one_line

Activity = Callable[[str, str, bool], None]
"""Told each thing as it happens: kind, text, whether it failed."""

RUN_S = 90.0
"""Seconds that one run of the agent may take."""
_SPARE_S = 30.0


@dataclass(frozen=True)
class Run:
    """One run of the agent on one tree."""

    side: str
    """`current` or `candidate`."""
    prompt: str
    exit_code: int | None
    timed_out: bool
    stdout: str
    stderr: str
    seconds: float
    requests: list[dict[str, Any]]

    @property
    def fault(self) -> str | None:
        """Why the run does not count as a clean one, or None."""
        if self.timed_out:
            return f"did not end within {RUN_S:.0f} s"
        if self.exit_code != 0:
            lines = [line for line in (self.stderr or self.stdout).splitlines() if line.strip()]
            return f"ended with status {self.exit_code}" + (f": {one_line(lines[-1], 160)}" if lines else "")
        return None if self.requests else "sent no request"

    def sends(self, marker: Marker) -> bool:
        """Whether any request of the run holds the marker."""
        return any(isinstance(item["body"], dict) and marker.found(item["body"]) for item in self.requests)


@dataclass(frozen=True)
class _Runs:
    """The runs of a reach check, by prompt (None: the neutral one)."""

    current: dict[str | None, Run]
    candidate: dict[str | None, Run]

    def all(self) -> list[Run]:
        return [*self.current.values(), *self.candidate.values()]


def reach(
    current: Tree,
    candidate: Tree,
    adapter: Adapter,
    paths: Paths,
    folder: Path | None = None,
    activity: Activity | None = None,
) -> Group:
    """Run the agent on both trees and judge every changed entry.

    `folder` is the step's folder; the requests that were seen are kept in its `reach` folder. The group is `invalid`
    when the agent cannot be installed or does not even run on the current tree.
    """
    started = time.monotonic()
    tell = activity or (lambda kind, text, failed: None)

    def group(status: Any, detail: str, checks: list[dict[str, Any]], runs: Sequence[Run] = ()) -> Group:
        episodes = [_episode(run, seal) for run in runs]
        return Group("reach", status, detail, time.monotonic() - started, checks, episodes)

    seal = probe()
    try:
        install_agent(adapter, paths, lambda text: tell("install", text, False))
        argv = agent_argv(adapter, paths)
    except ReefError as error:
        tell("install", error.message, True)
        return group("invalid", error.message, [])
    changes = current.changes(candidate)
    asked = {change.entry.id: changed_markers(change, adapter) for change in changes}
    prompts = {marker.prompt for pair in asked.values() for side in pair for marker in side} or {None}
    network = "loopback only" if seal.closed else seal.reason
    tell("reach", f"running {adapter.title} on both trees ({network})", False)
    try:
        runs = _run_all(argv, (current, candidate), prompts, adapter, seal)
    except Failed as error:
        return group("invalid", error.message, [])
    if folder is not None:
        _keep(runs, folder)
    for run in runs.current.values():
        if run.fault:
            return group("invalid", f"on the current tree {adapter.title} {run.fault}", [], runs.all())
    for run in runs.candidate.values():
        if run.fault:
            return group("fail", f"on the candidate {adapter.title} {run.fault}", [], runs.all())
    checks = [_judge(change, asked[change.entry.id], runs, adapter) for change in changes]
    failed = [check for check in checks if check["status"] == "fail"]
    for check in checks:
        tell("reach", f"{check['entry']}: {check['detail']}", check["status"] == "fail")
    shown = [f"{check['entry']}: {check['detail']}" for check in (failed or checks)]
    more = f"; and {len(shown) - 3} more" if len(shown) > 3 else ""
    detail = "; ".join(shown[:3]) + more + f" ({network})"
    return group("fail" if failed else "pass", detail, checks, runs.all())


def _judge(change: Change, asked: tuple[list[Marker], list[Marker]], runs: _Runs, adapter: Adapter) -> dict[str, Any]:
    entry, agent = change.entry, adapter.title
    gained, lost = asked

    def check(status: str, detail: str) -> dict[str, Any]:
        return {"entry": entry.id, "what": f"{change.op} {entry.kind}", "status": status, "detail": detail}

    if not gained and not lost:
        if entry.kind not in ("rules", "skill", "agent_command"):
            return check("pass", f"no request shows a {entry.kind}; {agent} starts and ends cleanly with the change")
        return check("fail", f"no change: {agent} sends the same with it and without it")
    for marker in gained:
        if runs.current[marker.prompt].sends(marker):
            return check("fail", f"no change: {marker.what} is already in what {agent} sends")
        if not runs.candidate[marker.prompt].sends(marker):
            return check("fail", f"{marker.what} is not in what {agent} sends{_why(change)}")
    for marker in lost:
        if not runs.current[marker.prompt].sends(marker):
            return check("fail", f"{marker.what} was not in what {agent} sends, so nothing shows that it is gone")
        if runs.candidate[marker.prompt].sends(marker):
            return check("fail", f"{marker.what} is still in what {agent} sends")
    seen = [f"{_list(gained)} absent before, present now"] if gained else []
    seen += [f"{_list(lost)} present before, absent now"] if lost else []
    return check("pass", "; ".join(seen))


def _why(change: Change) -> str:
    """What a person can do about a skill that the agent skips."""
    entry = change.after
    if entry is None or entry.kind != "skill":
        return ""
    return " (its front matter has no description)" if not skill_facts(entry)[1] else " (the agent skips the skill)"


def _list(markers: list[Marker]) -> str:
    return ", ".join(dict.fromkeys(marker.what for marker in markers))


def _run_all(
    argv: list[str], trees: tuple[Tree, Tree], prompts: set[str | None], adapter: Adapter, seal: Seal
) -> _Runs:
    neutral = f"reach {secrets.token_hex(8)}"
    jobs = [(prompt, side) for prompt in sorted(prompts, key=str) for side in ("current", "candidate")]

    def one(job: tuple[str | None, str]) -> Run:
        prompt, side = job
        return _run(argv, trees[side == "candidate"], side, prompt or neutral, adapter, seal)

    with ThreadPoolExecutor(max_workers=2) as pool:
        done = dict(zip(jobs, pool.map(one, jobs), strict=True))
    sides = {
        side: {prompt: run for (prompt, at), run in done.items() if at == side} for side in ("current", "candidate")
    }
    return _Runs(sides["current"], sides["candidate"])


def _run(argv: list[str], tree: Tree, side: str, prompt: str, adapter: Adapter, seal: Seal) -> Run:
    with room() as place:
        files = render(tree, adapter)
        served = Served("{recorder}", recorder.MODEL)
        values = placeholders(adapter, served, place.agent, place.agent, place.work) | {"token": "recorder"}
        bound = binding(adapter, values, files)
        place.put({path: content for path, content in files.items() if path not in bound})
        bound |= {path: formatted(path, filled(seed, values)) for path, seed in adapter.home.seed.items()}
        environment = place.environment() | adapter.run.environment | adapter.run.sealed
        environment |= bound_environment(adapter, values) | {"REEF_SESSION": "recorder"}
        job = {
            "argv": [*argv, *headless_arguments(adapter, prompt, values, {entry.id for entry in tree.entries})],
            "env": environment,
            "cwd": str(place.work),
            "seconds": RUN_S,
            "reply": "done",
            "files": {str(place.agent / path): content.decode() for path, content in bound.items()},
        }
        # The file itself, not the module: inside the room nothing but the standard library is needed or loaded.
        command = seal.wrap(place.root, [sys.executable, "-I", "-S", recorder.__file__])
        outcome = _call(command, job, place.root, environment)
    return Run(side, prompt, **outcome)


def _call(command: list[str], job: dict[str, Any], root: Path, environment: dict[str, str]) -> dict[str, Any]:
    try:
        done = subprocess.run(
            command,
            input=json.dumps(job),
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=RUN_S + _SPARE_S,
            check=False,
        )
        outcome = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise Failed("the recorder did not end") from None
    except ValueError:
        lines = done.stderr.strip().splitlines()
        raise Failed(f"the recorder failed: {one_line(lines[-1], 160) if lines else 'no reason given'}") from None
    assert isinstance(outcome, dict)
    return outcome


def _episode(run: Run, seal: Seal) -> dict[str, Any]:
    """One row of the `episodes` table."""
    return {
        "side": run.side,
        "purpose": "reach",
        "task": run.prompt,
        "state": "failed" if run.fault else "complete",
        "exit_code": run.exit_code,
        "duration_ms": round(run.seconds * 1000),
        "detail": {"network": "loopback only" if seal.closed else seal.reason, "fault": run.fault},
    }


def _keep(runs: _Runs, folder: Path) -> None:
    for side, found in (("current", runs.current), ("candidate", runs.candidate)):
        for number, run in enumerate(found.values()):
            facts = {
                "side": side,
                "prompt": run.prompt,
                "exit_code": run.exit_code,
                "seconds": run.seconds,
                "requests": run.requests,
                "stdout": run.stdout,
                "stderr": run.stderr,
            }
            content = json.dumps(clean_json(json.loads(json.dumps(facts))), indent=1, ensure_ascii=False).encode()
            write_atomic(folder / "reach" / f"{side}-{number}.json", content)
