"""What records cost: the space that agent sessions take, the rows that are durable in a second, the wait of a reader.

`python -m tests.bench.records [--quick] [--transcript FILE] [--json FILE]`. All limits are ratios within one run,
but the reader's wait, which holds for an idle machine. A full run takes about three minutes, a quick one under one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.bench.gateway_report import Reached, print_reached
from tests.bench.records_growth import Growth, measure_growth, transcript
from tests.bench.records_many import Wait, fill, measure_waits
from tests.bench.records_rates import Rate, measure_rates
from tests.bench.records_sessions import DIALECTS, agent_session

PLAIN_LIMIT, INDEXED_LIMIT, IMAGE_LIMIT, RAW_LIMIT = 1.6, 2.6, 1.4, 3.0
RATE_LIMIT = 2.0
WAIT_LIMIT_MS = 50.0


def growths(turns: int, file: Path | None) -> list[Growth]:
    """A session of every dialect, without an image and with one, and the real one that was given."""
    found = []
    for dialect in DIALECTS:
        for image in (False, True):
            name = f"{dialect}{' with an image' if image else ''}"
            found.append(measure_growth(name, dialect, list(agent_session(dialect, turns, image))))
    if file is not None:
        found.append(measure_growth(f"{file.name[:24]}", "messages", list(transcript(file))))
    return found


def print_growths(found: list[Growth]) -> None:
    """A row a session; KB are 1000 bytes."""
    print("growth of the file by one session (what an empty store takes left out), KB; parts: each unique part")
    print("(message, system text, tool list, reply) compressed by itself")
    head = ("calls", "raw", "parts", "grown", "indexed", "/ parts", "indexed", "% of raw", "exact")
    print(f"{'session':24}" + "".join(f"{name:>10}" for name in head))
    for row in found:
        sizes = [f"{size / 1000:.0f}" for size in (row.raw, row.parts, row.grown, row.indexed)]
        ratios = [f"{row.grown / row.parts:.2f}", f"{row.indexed / row.parts:.2f}", f"{row.indexed / row.raw:.2%}"]
        cells = [str(row.calls), *sizes, *ratios, "yes" if row.exact else "NO"]
        print(f"{row.name:24}" + "".join(f"{cell:>10}" for cell in cells))


def print_rates(found: list[Rate]) -> None:
    """A row for each setting."""
    print(f"\n{'16 writers, rows a second':24}{'reef':>10}{'bare':>10}{'of bare':>10}")
    for rate in found:
        name = f"{rate.bodies}, {rate.synchronous}"
        print(f"{name:24}{rate.reef:>10.0f}{rate.bare:>10.0f}{rate.reef / rate.bare:>10.2f}")


def print_waits(count: int, found: list[Wait]) -> None:
    """A row for each question."""
    print(f"\n{f'{count} records, ms':24}{'p50':>10}{'p95':>10}")
    for wait in found:
        print(f"{f'{wait.kind}: {wait.name}':24}{wait.p50:>10.2f}{wait.p95:>10.2f}")


def reached(grown: list[Growth], rates: list[Rate], waits: list[Wait]) -> list[Reached]:
    """The figures that have a limit: of each kind the worst."""
    made = grown[: 2 * len(DIALECTS)]
    plain, images = made[::2], made[1::2]
    full = rates[0]
    lines = [
        Reached("grown without an image / parts", max(row.grown / row.parts for row in plain), PLAIN_LIMIT),
        Reached("the same with the index", max(row.indexed / row.parts for row in plain), INDEXED_LIMIT),
        Reached("grown and indexed with an image / parts", max(row.indexed / row.parts for row in images), IMAGE_LIMIT),
        Reached("grown and indexed / raw", max(row.indexed / row.raw for row in made) * 100, RAW_LIMIT, " %"),
        Reached("not given back exactly", float(sum(not row.exact for row in grown)), 0),
        Reached("durable rows a second, bare / reef", full.bare / full.reef, RATE_LIMIT),
    ]
    for kind in ("list", "search"):
        worst = max(wait.p95 for wait in waits if wait.kind == kind)
        lines.append(Reached(f"{kind}, p95", worst, WAIT_LIMIT_MS, " ms"))
    return lines


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.records", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer records and shorter rounds; sessions as long")
    parser.add_argument("--transcript", type=Path, metavar="FILE", help="a session file of Claude Code or pi as well")
    parser.add_argument("--turns", type=int, default=200, help="calls of a session")
    parser.add_argument("--count", type=int, help="records of the store that is read")
    parser.add_argument("--rounds", type=int, help="how often the writers take turns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    asked = parser.parse_args()
    grown = growths(asked.turns, asked.transcript)
    print_growths(grown)
    rates = measure_rates(asked.rounds or (2 if asked.quick else 6), 0.4 if asked.quick else 1.5)
    print_rates(rates)
    count = asked.count or (10_000 if asked.quick else 100_000)
    with tempfile.TemporaryDirectory(prefix="reef-bench-") as folder:
        path = Path(folder) / "reef.db"
        waits = measure_waits(path, fill(path, count), 40 if asked.quick else 200)
    print_waits(count, waits)
    lines = reached(grown, rates, waits)
    print()
    print_reached(lines)
    if asked.json:
        tables = {"growth": grown, "rates": rates, "waits": waits}
        rows = {name: [asdict(row) for row in table] for name, table in tables.items()}  # type: ignore[attr-defined]
        verdicts = [asdict(line) | {"verdict": line.verdict} for line in lines]
        asked.json.write_text(json.dumps(rows | {"reached": verdicts}, indent=1))


if __name__ == "__main__":
    main()
