"""What an idle daemon holds in memory, and what it must not load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.http.running import Home, chat

HEAVY = ("typer", "click", "textual", "rich", "litellm", "torch", "transformers", "xllamacpp", "httpx", "yaml.cyaml")
LIMIT_MB = 80


def rss_mb(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def test_an_idle_daemon_stays_under_80_mb_after_calls_and_questions(home: Home) -> None:
    assert home.process is not None
    for _ in range(20):
        chat(home.nobody, "hello")
    for path in ("/reef/status", "/reef/records", "/reef/scenarios", "/reef/harness", "/reef/recipes", "/reef/config"):
        assert home.person.get(path).status_code == 200
    assert rss_mb(home.process.pid) < LIMIT_MB


def test_the_daemon_loads_no_screen_no_command_line_and_no_training_stack() -> None:
    question = "import json, sys, reef.daemon.lifecycle; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", question], capture_output=True, check=True).stdout)
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]
