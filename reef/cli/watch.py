"""Following one ask until it is settled: what happens on stderr, the outcome on stdout, and an exit status."""

from __future__ import annotations

import time
from typing import Any

from reef.cli import output
from reef.cli.look import ERR, OUT, parse_time, span
from reef.client import Client
from reef.text import one_line

PUBLISHED = ("published", "pending")
_POLL_S = (0.2, 0.5, 1.0)
_SIGNS = {"pass": "✓", "fail": "✗", "invalid": "✗", "not run": "–"}


def follow(client: Client, ask_id: str, timeout_s: float, scenario: str) -> tuple[dict[str, Any], int]:
    """Follow until settled. Returns the last progress and a status: 0 published or pending, 1 not, 2 not in time."""
    progress = output.Progress()
    deadline = time.monotonic() + timeout_s
    told = 0
    turn = 0
    now: dict[str, Any] = {}
    try:
        while True:
            now = client.ask_progress(ask_id)
            activity = now.get("activity") or []
            for item in activity[told:]:
                progress.keep(activity_line(item, now.get("started_at")))
            told = len(activity)
            if now["settled"]:
                return now, 0 if now["state"] in PUBLISHED else 1
            if time.monotonic() >= deadline:
                return now, 2
            if progress.live:
                progress.show(f"  {ERR.line(now['state'])}{_since(now)}")
            time.sleep(_POLL_S[min(turn // 5, len(_POLL_S) - 1)])
            turn += 1
    except KeyboardInterrupt:
        progress.clear()
        output.say(f"the ask goes on: reef asks watch {now.get('number') or ask_id} -s {scenario}")
        raise
    finally:
        progress.clear()


def activity_line(item: dict[str, Any], started_at: str | None) -> str:
    """One line of what a step did: `  proposing    wrote 1 rule   0:41`."""
    text = one_line(str(item.get("text") or ""), 200)
    sign = ERR.paint(f" {ERR.symbol('✗')}", "failed") if item.get("failed") else ""
    then, start = parse_time(str(item.get("at"))), parse_time(str(started_at))
    took = f"   {ERR.paint(_clock((then - start).total_seconds()), 'dim')}" if then and start else ""
    return f"  {one_line(str(item.get('kind') or ''), 12):<12} {text}{sign}{took}"


def outcome(now: dict[str, Any], scenario: str) -> None:
    """Print how an ask ended, why, and what to do next."""
    state, version = str(now["state"]), now.get("version")
    style = {"published": "good", "pending": "needs", "failed": "failed"}.get(state, "strong")
    named = OUT.paint(OUT.line(state), style) + (f" v{version}" if version else "")
    for line in OUT.folded(OUT.joined(named, OUT.line(now.get("reason") or now.get("meaning"), 160))):
        output.data(line)
    for line in evaluation_lines(now.get("evaluation")):
        output.data(line)
    if not version:
        if now.get("step"):
            output.say(f"{ERR.paint('next', 'dim')}   reef steps show {now['step']} -s {scenario}")
        return
    number = int(version)
    before = f"v{number - 1}"
    both = ERR.joined(
        f"reef versions diff {before} v{number} -s {scenario}", f"reef versions install v{number} -s {scenario}"
    )
    output.say(f"{ERR.paint('next', 'dim')}   {both}")


def evaluation_lines(evaluation: dict[str, Any] | None) -> list[str]:
    """The groups of an evaluation, a line each; empty when nothing was evaluated."""
    if not evaluation:
        return []
    lines = []
    for group in evaluation.get("groups") or []:
        status = str(group.get("status"))
        seconds = group.get("seconds")
        words = [f"{OUT.symbol(_SIGNS.get(status, '–'))} {OUT.line(status)}", OUT.line(group.get("detail"), 300)]
        took = f"   {OUT.paint(span(float(seconds)), 'dim')}" if seconds is not None else ""
        lines += OUT.folded(f"  {OUT.line(str(group.get('name'))):<12} {OUT.joined(*words)}{took}")
    policy = evaluation.get("policy")
    return [*lines, f"  {'policy':<12} {OUT.line(str(policy))}"] if policy else lines


def _since(now: dict[str, Any]) -> str:
    from datetime import UTC, datetime

    start = parse_time(str(now.get("started_at")))
    return "" if start is None else f"  {_clock((datetime.now(UTC) - start).total_seconds())}"


def _clock(seconds: float) -> str:
    whole = max(0, int(seconds))
    return f"{whole // 60}:{whole % 60:02d}"
