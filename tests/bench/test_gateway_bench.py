"""The gateway's bench runs and prints every row; its figures are for people on an idle machine, never a test's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.gateway import CASES
from tests.bench.gateway_report import Reached

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_quick_run_prints_every_case_of_every_target_and_every_figure_with_a_limit(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench.gateway", "--quick", "--rounds", "1", "--seconds", "0.02"]
    done = subprocess.run([*command, "--json", str(figures)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for case in CASES:
        for target in ("direct", "floor", "reef"):
            assert any(line.startswith(f"{case.name:16} {target} ") for line in done.stdout.splitlines())
    for part in ("CPU a request, 16", "p50 added, 1 conn", "p50 of paced streams, 16", "events held back"):
        lines = [line for line in done.stdout.splitlines() if line.startswith(part)]
        assert len(lines) == 1 and lines[0].endswith((" ok", " over", " not measured")), part
    assert done.stdout.count("request + reply bytes a call: 4 KB whole") == 2
    assert {row["target"] for row in json.loads(figures.read_text())["rows"]} >= {"direct", "floor", "reef"}


def test_a_figure_is_over_its_limit_only_when_it_was_measured() -> None:
    assert [Reached("", value, 1.5).verdict for value in (1.5, 1.51, None)] == ["ok", "over", "not measured"]
