"""What `reef status` prints. It is the command that is typed most, so it runs without typer: see `reef.cli.app`."""

from __future__ import annotations

from typing import Any

from reef.cli import output
from reef.cli.look import OUT, counted, size, span
from reef.cli.scope import daemon
from reef.paths import Paths

_LABEL = 10


def show(json: bool) -> None:
    """Print how things are, for a person or as the object of `/reef/status`."""
    with daemon(Paths.from_environ(), start=False) as client:
        found = client.status()
    if json:
        output.json_value(found)
        return
    for line in lines_of(found):
        for part in OUT.folded(line):
            output.data(part)


def lines_of(found: dict[str, Any]) -> list[str]:
    """The lines of `/reef/status` as people read them."""
    up = span(float(found.get("uptime_s") or 0)) if found.get("uptime_s") is not None else None
    lines = [OUT.joined(f"reef {found['version']}", f"up {up}" if up else None, found["url"], f"pid {found['pid']}")]
    lines.append(_row("engine", _engine(found.get("engine") or {})))
    lines += [_row(OUT.line(row["name"]), _scenario(row)) for row in found.get("scenarios") or []]
    agents = [f"{OUT.line(row['name'])} {_version(row)}" for row in found.get("agents") or []]
    if agents:
        lines.append(_row("agents", OUT.joined(*agents)))
    lines.append(_row("records", _records(found.get("records") or {}, found.get("search") or {})))
    for number, need in enumerate(found.get("needs_you") or []):
        lines.append(_row(OUT.paint(f"{'needs you':<{_LABEL}}", "needs") if number == 0 else "", _need(need)))
    return lines


def _row(label: str, text: str) -> str:
    return f"{label:<{_LABEL}} {text}"


def _engine(engine: dict[str, Any]) -> str:
    state = OUT.line(str(engine.get("state") or "unknown"))
    if state in ("failed", "down"):
        state = OUT.paint(f"{OUT.symbol('✗')} {state}", "failed")
    dialects = ", ".join(OUT.line(str(dialect)) for dialect in engine.get("dialects") or [])
    named = f"{OUT.line(str(engine.get('name') or ''))} {OUT.line(str(engine.get('model') or ''))}".strip()
    return OUT.joined(named, state, OUT.line(engine.get("detail"), 160), f"speaks {dialects}" if dialects else None)


def _scenario(row: dict[str, Any]) -> str:
    pending = ", ".join(f"v{number}" for number in row.get("pending") or [])
    facts = [
        OUT.paint(f"{OUT.symbol('✗')} broken: {OUT.line(row['problem'])}", "failed") if row.get("problem") else None,
        f"v{row['head']}" if row.get("head") else "no version yet",
        OUT.paint(f"{pending} pending, needs you", "needs") if pending else None,
        _pinned(row.get("pinned") or []),
        f"recipe {OUT.line(row['recipe'])}" if row.get("recipe") else None,
        counted(row["records"], "record") if row.get("records") else None,
        counted(row["reports"], "report") if row.get("reports") else None,
        f"{row['agent_reports']} by agents" if row.get("agent_reports") else None,
        counted(row["asks_open"], "open ask") if row.get("asks_open") else None,
        f"step {row['running_step']} runs" if row.get("running_step") else None,
    ]
    return OUT.joined(*facts)


def _pinned(pins: list[dict[str, Any]]) -> str | None:
    told = [f"v{pin['version']}" + (f" for {OUT.line(pin['adapter'])}" if pin["adapter"] else "") for pin in pins]
    return f"pinned {', '.join(told)}" if told else None


def _version(agent: dict[str, Any]) -> str:
    if agent.get("problem"):
        return OUT.paint(f"{OUT.symbol('✗')} {OUT.line(agent['problem'])}", "failed")
    return OUT.line(str(agent.get("version") or "")) if agent.get("installed") else OUT.symbol("–")


def _records(records: dict[str, Any], search: dict[str, Any]) -> str:
    last = records.get("last_at")
    lost, pruned = records.get("lost"), records.get("pruned") or {}
    return OUT.joined(
        f"{records.get('count') or 0:,}",
        size(records.get("bytes")),
        f"last {OUT.when(last)}" if last else None,
        f"{records['open']} running" if records.get("open") else None,
        f"{search['pending']:,} not searched yet" if search.get("pending") else None,
        f"bodies of {pruned['records']:,} pruned" if pruned.get("records") else None,
        OUT.paint(f"{counted(lost, 'call')} not recorded", "failed") if lost else None,
    )


def _need(need: dict[str, Any]) -> str:
    name = OUT.line(str(need.get("scenario") or ""))
    if need.get("kind") == "pending_version":
        return f"v{need['version']} of {name} changes code   reef versions show v{need['version']} -s {name}"
    return f"{OUT.line(str(need.get('kind')))} in {name}   reef tui"
