"""What the gateway's bench prints: a row a case and target, then the ratios that reef must reach."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from tests.bench.gateway_load import PACE_MS, Case, Run, Target

CPU_LIMIT = 1.5
ADDED_LIMIT = 1.5
STREAM_LIMIT = 1.02
PEER_LIMIT = 0.25
_HEAD = (
    "req/s",
    "p50 ms",
    "+p50",
    "+p99",
    "first",
    "+first",
    "gap max",
    "CPU us",
    "later",
    "index",
    "joining",
    "stub us",
    "RSS MB",
)


@dataclass(frozen=True)
class Row:
    """One case of one target; times in ms, CPU in µs a request."""

    case: str
    target: str
    rate: float
    p50: float
    p99: float
    first: float
    gap: float
    cpu: float
    later: float
    index: float
    joining: float
    stub: float
    rss: float


@dataclass(frozen=True)
class Reached:
    """One figure that has a limit; None is one that this run cannot tell."""

    name: str
    value: float | None
    limit: float
    unit: str = ""

    @property
    def verdict(self) -> str:
        """`ok`, `over`, or that there is nothing to say."""
        return "not measured" if self.value is None else "ok" if self.value <= self.limit else "over"


def quantile(values: list[float], part: float) -> float:
    """In milliseconds."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1000 if values else 0.0


def row(case: Case, target: Target) -> Row:
    """All stretches of one case on one target."""
    runs = target.calls[case]
    calls = max(1, sum(run.count for run in runs))
    latencies = [value for run in runs for value in run.latencies]
    return Row(
        case.name,
        target.name,
        sum(run.count for run in runs) / sum(run.seconds for run in runs),
        quantile(latencies, 0.5),
        quantile(latencies, 0.99),
        quantile([value for run in runs for value in run.first_bytes], 0.5),
        quantile([value for run in runs for value in run.gaps], 1.0),
        statistics.median(_micros(run) for run in runs),
        sum(run.after_s for run in runs) / calls * 1e6,
        sum(run.index_s for run in runs) / calls * 1e6,
        sum(run.joining_s for run in runs) / (len(runs) * case.connections) * 1e6,
        sum(run.stub_s for run in runs) / calls * 1e6,
        max(run.rss_mb for run in runs),
    )


def _micros(run: Run) -> float:
    return run.cpu_s / max(1, run.count) * 1e6


def rows(cases: list[Case], targets: list[Target]) -> dict[tuple[Case, str], Row]:
    """Every row, by its case and the name of its target."""
    return {(case, target.name): row(case, target) for case in cases for target in targets}


def print_table(found: dict[tuple[Case, str], Row]) -> None:
    """The table: what is added is a quantile less the same quantile of the calls that went past every proxy."""
    print("added (+) is over direct; first: until the reply's first byte; later: CPU after the load's end until idle;")
    print("index: CPU of the background pass that makes a call findable, in no other column;")
    print("joining: CPU of a connection's first call, which is counted nowhere else; CPU is in microseconds a call")
    print(f"{'case':16} {'target':10}" + "".join(f"{name:>9}" for name in _HEAD))
    for (case, name), row in found.items():
        direct = found[case, "direct"]
        past = name == "direct"
        cells: list[str] = [f"{row.rate:.0f}", f"{row.p50:.2f}"]
        cells += ["-", "-"] if past else [f"{row.p50 - direct.p50:.2f}", f"{row.p99 - direct.p99:.2f}"]
        cells += [f"{row.first:.2f}", "-" if past else f"{row.first - direct.first:.2f}"]
        cells += [f"{row.gap:.1f}" if case.stream else "-"]
        used = (row.cpu, row.later, row.index, row.joining)
        cells += ["-"] * 4 if past else [f"{value:.0f}" for value in used]
        cells += [f"{row.stub:.0f}", f"{row.rss:.0f}"]
        print(f"{row.case:16} {name:10}" + "".join(f"{cell:>9}" for cell in cells))


def reached(found: dict[tuple[Case, str], Row]) -> list[Reached]:
    """The figures that have a limit."""
    alone, busy, streams = Case(1), Case(16), Case(16, stream=True)

    def added(name: str) -> float:
        return found[alone, name].p50 - found[alone, "direct"].p50

    gap = found[streams, "reef"].gap - found[streams, "direct"].gap
    lines = [
        Reached("CPU a request, 16 connections, reef / floor", _over(busy, "cpu", found, "floor"), CPU_LIMIT),
        Reached("p50 added, 1 connection, reef / floor", _ratio(added("reef"), added("floor")), ADDED_LIMIT),
        Reached("p50 of paced streams, 16 connections, reef / direct", _over(streams, "p50", found), STREAM_LIMIT),
        Reached("events held back: largest gap added, 16 streams", gap, PACE_MS, " ms"),
    ]
    if (busy, "reef-infra") in found:
        against = _over(busy, "cpu", found, "reef-infra")
        lines.append(Reached("CPU a request, 16 connections, reef / reef-infra", against, PEER_LIMIT))
    return lines


def _over(case: Case, what: str, found: dict[tuple[Case, str], Row], name: str = "direct") -> float | None:
    return _ratio(getattr(found[case, "reef"], what), getattr(found[case, name], what))


def _ratio(value: float, base: float) -> float | None:
    """None where the base is nothing: then the machine was too busy to tell."""
    return value / base if base > 0 else None


def print_reached(lines: list[Reached]) -> None:
    """Each figure with its limit and how it stands to it."""
    for line in lines:
        value = "-" if line.value is None else f"{line.value:.2f}{line.unit}"
        print(f"{line.name:52} {value:>9}   at most {line.limit:g}{line.unit:4} {line.verdict}")


def as_json(found: dict[tuple[Case, str], Row], lines: list[Reached]) -> dict[str, Any]:
    """All of it for a program."""
    table = [asdict(row) for row in found.values()]
    return {"rows": table, "reached": [asdict(line) | {"verdict": line.verdict} for line in lines]}
