"""One person's home in one sealed room: their files, their reef, their shell."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.e2e.room import ROOT, Room

T = TypeVar("T")
PROGRAMS = Path(sys.executable).parent
OWN_FILES = {
    ".gitconfig": "[user]\n\tname = Ada\n[commit]\n\tgpgsign = true\n",
    ".bashrc": "alias ll='ls -l'\n",
    ".profile": 'PATH="$HOME/bin:$PATH"\n',
    ".zshrc": "setopt autocd\n",
    ".npmrc": "fund=false\n",
    ".pi/agent/settings.json": '{"theme": "dark"}\n',
    ".pi/agent/AGENTS.md": "Use tabs.\n",
    ".npm-global/lib/node_modules/own/package.json": '{"name": "own", "version": "1.0.0"}\n',
}


class Home:
    """A HOME with a person's own files, reef in its XDG folders, and commands that run in the room."""

    def __init__(self, folder: Path, room: Room) -> None:
        self.folder = folder
        self.room = room
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        for name, text in OWN_FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        self.data = folder / ".local/share/reef"
        self.bin = folder / ".local/bin"
        self.env = {
            "HOME": str(folder),
            "PATH": f"{self.bin}:{PROGRAMS}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def sh(
        self, line: str, timeout: float = 100, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one line as typed into bash."""
        return self.room.run(["bash", "-c", line], self.env | env, cwd or self.project, timeout)

    def ok(self, line: str, timeout: float = 100, **env: str) -> str:
        """Run one line, which must end with 0. Returns its stdout."""
        ran = self.sh(line, timeout, **env)
        assert ran.returncode == 0, (
            f"{line} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}\n{self.daemon_log()}"
        )
        return ran.stdout

    def json(self, line: str, **env: str) -> Any:
        """Run one reef command with `--json`. Returns what it printed, parsed."""
        return json.loads(self.ok(f"{line} --json", **env))

    def start(self, line: str, **env: str) -> tuple[int, Path]:
        """Start one line in the background. Returns its pid and the file that it writes to."""
        output = self.folder.parent / f"{len(list(self.folder.parent.glob('*.out')))}.out"
        words = shlex.split(line)
        return self.room.start(words, self.env | env, self.project, output), output

    @property
    def upstream_log(self) -> Path:
        """Where the scripted model server logs its requests."""
        return self.folder.parent / "upstream.jsonl"

    def fake_upstream(self, flags: str = "") -> tuple[str, Path]:
        """Start the scripted model server. Returns its address and the file that logs its requests."""
        log = self.upstream_log
        log.touch()
        command = f"{sys.executable} -m tests.fakes.openai_server --port 0 --log {log} {flags}"
        _, output = self.start(command, PYTHONPATH=str(ROOT))
        line = until(lambda: output.read_text() if "listening" in output.read_text() else None, "the fake server")
        return line.split("listening ")[1].split()[0], log

    def daemon(self, flags: str, **env: str) -> int:
        """`reef serve FLAGS`, started and answering. Returns its pid."""
        pid, output = self.start(f"reef serve {flags}", **env)
        discovery = self.folder / ".local/state/reef/daemon.json"
        until(lambda: discovery.is_file() or None, "the daemon", lambda: output.read_text())
        until(lambda: self.sh("reef status").returncode == 0 or None, "the daemon", lambda: output.read_text())
        return pid

    def daemon_log(self) -> str:
        """The end of the daemon's log, for messages."""
        log = self.folder / ".local/state/reef/daemon.log"
        return log.read_text(errors="replace")[-3000:] if log.is_file() else ""

    def checksums(self) -> dict[str, str]:
        """Hash of each of the person's own files."""
        return {name: hashlib.sha256((self.folder / name).read_bytes()).hexdigest() for name in OWN_FILES}


def requests_of(log: Path) -> list[dict[str, Any]]:
    """The bodies of the chat requests that the fake server got, parsed, oldest first."""
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [json.loads(entry["body"]) for entry in found if entry["event"] == "request"]


def until(look: Callable[[], T | None], what: str, why: Callable[[], str] = lambda: "", seconds: float = 30) -> T:
    """Look again and again until there is something; fail with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come in {seconds} s: {why()}")


def linked(store: Path, target: Path) -> None:
    """Make what was fetched once into `store` appear at `target`, at no cost."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target.symlink_to(store, target_is_directory=True)
