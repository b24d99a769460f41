"""A room without a network: commands run where only loopback answers.

The outside (`Room`) starts this module inside `bwrap --unshare-net` and sends it one JSON line a command; programs that
one command leaves running (a daemon, a fake model server) share the room's loopback with the next.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Room:
    """The outside of one room. Every program that was started in it ends with `close`."""

    def __init__(self, bwrap: str) -> None:
        command = [bwrap, "--dev-bind", "/", "/", "--unshare-net", "--die-with-parent"]
        command += [sys.executable, "-m", "tests.e2e.room"]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        self._inside = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._started: list[int] = []

    def run(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, timeout: float = 100
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        said = self._ask(do="run", argv=list(argv), env=dict(env), cwd=str(cwd), timeout=timeout)
        return subprocess.CompletedProcess(list(argv), said["status"], said["stdout"], said["stderr"])

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, output: Path) -> int:
        """Start a program in the background, both its streams appended to `output`. Returns its pid."""
        said = self._ask(do="start", argv=list(argv), env=dict(env), cwd=str(cwd), output=str(output))
        self._started.append(said["pid"])
        return int(said["pid"])

    def wait(self, pid: int, timeout: float = 30) -> int:
        """The exit status of a program that `start` started."""
        return int(self._ask(do="wait", pid=pid, timeout=timeout)["status"])

    def close(self) -> None:
        """End what was started here, then the room."""
        for pid in self._started:
            self._ask(do="end", pid=pid)
        assert self._inside.stdin is not None and self._inside.stdout is not None
        self._inside.stdin.close()
        self._inside.wait(timeout=20)
        self._inside.stdout.close()

    def _ask(self, **what: Any) -> dict[str, Any]:
        assert self._inside.stdin is not None and self._inside.stdout is not None
        self._inside.stdin.write(json.dumps(what) + "\n")
        self._inside.stdin.flush()
        line = self._inside.stdout.readline()
        if not line:
            raise RuntimeError("the room has ended")
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise RuntimeError(said["error"])
        return said


def _run(what: dict[str, Any]) -> dict[str, Any]:
    # Whatever stays behind must not keep the pipes, or the wait would last as long as a daemon.
    out, err = Path(what["cwd"]) / ".room-out", Path(what["cwd"]) / ".room-err"
    try:
        with out.open("wb") as stdout, err.open("wb") as stderr:
            done = subprocess.run(
                what["argv"],
                env=what["env"],
                cwd=what["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                timeout=what["timeout"],
                start_new_session=True,
            )
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in (out, err)]
        return {"status": done.returncode, "stdout": texts[0], "stderr": texts[1]}
    except subprocess.TimeoutExpired:
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in (out, err)]
        return {"error": f"{what['argv']} did not end in {what['timeout']} s: {texts[0]}{texts[1]}"}
    finally:
        out.unlink(missing_ok=True)
        err.unlink(missing_ok=True)


def _start(what: dict[str, Any], children: dict[int, subprocess.Popen[bytes]]) -> dict[str, Any]:
    with Path(what["output"]).open("ab") as output:
        child = subprocess.Popen(
            what["argv"],
            env=what["env"],
            cwd=what["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    children[child.pid] = child
    return {"pid": child.pid}


def _end(child: subprocess.Popen[bytes]) -> dict[str, Any]:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is None:
            os.killpg(child.pid, number)
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                continue
    return {"status": child.wait()}


def inside() -> None:
    """Answer one command a line until standard input ends."""
    children: dict[int, subprocess.Popen[bytes]] = {}
    for line in sys.stdin:
        what = json.loads(line)
        if what["do"] == "run":
            said = _run(what)
        elif what["do"] == "start":
            said = _start(what, children)
        elif what["do"] == "end":
            said = _end(children[what["pid"]])
        else:
            try:
                said = {"status": children[what["pid"]].wait(timeout=what["timeout"])}
            except subprocess.TimeoutExpired:
                said = {"error": f"{what['pid']} still runs after {what['timeout']} s"}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    inside()
