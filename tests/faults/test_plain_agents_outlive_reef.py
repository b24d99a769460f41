"""B65: killed at its worst moment, reef leaves a person's own agents as they were, and says that it is not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from reef.harness.adapter import load_adapter
from tests.faults.wrapped import AGENTS, checksums, command, furnish, run
from tests.http.running import Home

OWN = '{"provider": "my-own", "baseUrl": "https://192.0.2.7/v1"}\n'


def test_a_kill_of_daemon_and_wrappers_leaves_every_byte_of_the_agents_own_folders(
    new_home: Callable[..., Home],
) -> None:
    home = furnish(new_home().start())
    user = Path(home.env["HOME"])
    for name in AGENTS:
        for place in load_adapter(name, home.paths).own.places:
            folder = Path(place.replace("~", str(user), 1))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "settings.json").write_text(OWN)
    before = checksums(user)
    assert before
    running: list[subprocess.Popen[str]] = []
    agents: list[int] = []
    try:
        for name in AGENTS:
            running.append(
                subprocess.Popen(
                    command(name, "--stay"), env=home.env, cwd=home.folder, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, text=True, start_new_session=True,
                )
            )  # fmt: skip
        for wrapper in running:
            assert wrapper.stdout is not None
            agents.append(json.loads(wrapper.stdout.readline())["pid"])
        assert home.process is not None
        home.process.kill()
        home.process.wait()
        for wrapper in running:
            wrapper.kill()
            wrapper.wait()
    finally:
        for pid in agents:
            os.kill(pid, signal.SIGKILL)
        for wrapper in running:
            if wrapper.stdout is not None:
                wrapper.stdout.close()
    assert checksums(user) == before
    for name in AGENTS:
        done = run(home, name, "-p", "hi", REEF_AUTOSTART="false")
        assert (done.returncode, done.stdout) == (3, ""), name
        assert done.stderr == "error: the daemon is not running\nhint: reef up\n"
    assert checksums(user) == before
