"""A restore that was interrupted is finished by the next start, before anything is served from half of two homes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

from reef.records import swap
from reef.records.restore import KEPT
from tests.http.running import Home, chat

INTERRUPTED = """
import os, sys
from pathlib import Path
from reef.paths import Paths
from reef.records import restore
real, moves = Path.rename, iter(range(100))
def rename(self, target):
    if next(moves) == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
    return real(self, target)
Path.rename = rename
restore.restore(Paths.from_environ(), Path(sys.argv[1]), lambda told: None)
"""


def test_the_start_finishes_a_restore_that_was_killed_and_serves_the_backups_home(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start()
    early = chat(home.nobody, "early").headers["x-reef-agent-record-id"]
    env = os.environ | {"REEF_HOME": str(home.folder / "reef")}
    file = home.folder / "b"
    made = [sys.executable, "-m", "reef.records.backup", str(file)]
    assert subprocess.run(made, env=env, capture_output=True, timeout=60).returncode == 0
    late = chat(home.nobody, "late").headers["x-reef-agent-record-id"]
    home.stop()
    killed = subprocess.run([sys.executable, "-c", INTERRUPTED, str(file), "1"], env=env, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert (home.paths.data / swap.JOURNAL).is_file()
    home.start()
    assert not (home.paths.data / swap.JOURNAL).exists()
    assert home.person.get(f"/reef/records/{early}").status_code == 200
    assert home.person.get(f"/reef/records/{late}").status_code == 404
    assert chat(home.nobody, "and on").status_code == 200
    assert len(list(home.paths.data.glob(f"{KEPT}*/reef.db"))) == 1
