"""Runs Terminus 2 on one Harbor task folder, or on an instruction, in the working directory and pointed at reef.

Started with the Python of Terminus' own environment; it knows nothing of reef but the files in `REEF_TERMINUS_DIR` and
the token in `REEF_SESSION`. Terminus works through a tmux session on this machine, not in a container: what a task's
`environment` folder builds is not there, and its tests are not run.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

USAGE = """usage: reef-terminus [--turns N] TASK_FOLDER | "instruction"

Runs Terminus 2 on the instruction of a Harbor task folder, or on the words, in this directory.
  --turns N    end after that many answers of the model
"""
TURNS_VARIABLE = "REEF_TERMINUS_TURNS"
AGENT_LOGS = "/logs/agent"
"""Where Terminus writes in a container; here a folder of its own stands in its place."""


def main(argv: list[str]) -> int:
    """Run one task. Returns the exit status."""
    if argv == ["--version"]:
        sys.stdout.write(f"{version('harbor')}\n")
        return 0
    if argv in (["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return 0
    turns = os.environ.get(TURNS_VARIABLE)
    if argv[:1] == ["--turns"]:
        turns, argv = (argv[1] if len(argv) > 1 else "?"), argv[2:]
    if turns is not None and not (turns.isdigit() and int(turns) > 0):
        return _refused("--turns needs a whole number from 1 on", "reef-terminus --help")
    if len(argv) != 1 or not argv[0].strip() or argv[0].startswith("-"):
        return _refused("one task folder or one instruction is wanted", "reef-terminus --help")
    home, token = os.environ.get("REEF_TERMINUS_DIR"), os.environ.get("REEF_SESSION")
    if not home or not token:
        return _refused("Terminus 2 runs only as reef-terminus, which points it at the daemon", "reef agents list")
    if shutil.which("tmux") is None:
        return _refused("Terminus 2 works through tmux, which is not installed", "apt-get install tmux")
    try:
        instruction, limit_s = _task(argv[0])
    except (OSError, ValueError) as error:
        return _refused(str(error), "reef-terminus --help")
    try:
        return asyncio.run(_run(instruction, limit_s, Path(home), token, int(turns) if turns else None))
    except KeyboardInterrupt:
        return 130


def _task(given: str) -> tuple[str, float | None]:
    """The instruction, and how many seconds the task allows. Raises ValueError, OSError."""
    folder = Path(given)
    if not (len(given) < 4096 and "\n" not in given and folder.is_dir()):
        return given, None
    file = folder / "instruction.md"
    if not file.is_file():
        raise ValueError(f"{folder} is no Harbor task folder: it has no instruction.md")
    limit = None
    if (folder / "task.toml").is_file():
        try:
            agent = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8")).get("agent", {})
            limit = agent.get("timeout_sec")
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{folder / 'task.toml'} cannot be read: {error}") from None
    return file.read_text(encoding="utf-8"), float(limit) if limit else None


async def _run(instruction: str, limit_s: float | None, home: Path, token: str, turns: int | None) -> int:
    model = json.loads((home / "models.json").read_text(encoding="utf-8"))
    rules = home / "rules.md"
    if rules.is_file():
        instruction = f"{rules.read_text(encoding='utf-8').strip()}\n\n{instruction}"
    name = f"{time.strftime('%Y-%m-%dT%H-%M-%S', time.gmtime())}_{os.getpid()}"
    logs = home / "sessions" / name
    logs.mkdir(parents=True, mode=0o700)
    # A tmux server of its own: Terminus ends it without touching the person's.
    with tempfile.TemporaryDirectory(prefix="reef-tmux-") as sockets:
        around = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}
        here = Here(Path.cwd(), logs, {**around, "TMUX_TMPDIR": sockets})
        try:
            work = _work(instruction, here, model, token, name, home / "skills", turns)
            await asyncio.wait_for(work, limit_s)
        except TimeoutError:
            return _refused(f"the task's time of {limit_s:.0f} s is over", None)
        except Exception as error:
            # The edge of a foreign program: its errors are of many kinds, and the person is to read one line.
            return _refused(f"Terminus 2 ended: {type(error).__name__}: {' '.join(str(error).split())[:500]}", None)
        finally:
            await here.exec("tmux kill-server")
    sys.stdout.write(f"trajectory: {logs / 'trajectory.json'}\n")
    return 0


async def _work(
    instruction: str, here: Here, model: dict[str, Any], token: str, name: str, skills: Path, turns: int | None
) -> None:
    from harbor.agents.terminus_2 import Terminus2
    from harbor.models.agent.context import AgentContext

    window, most = int(model["context_window"]), int(model["max_tokens"])
    sizes = {"max_tokens": window, "max_input_tokens": window, "max_output_tokens": most}
    agent = Terminus2(
        logs_dir=here.logs,
        model_name=f"openai/{model['model']}",
        api_base=model["base_url"],
        llm_kwargs={"api_key": token},
        model_info={**sizes, "input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
        session_id=name,
        session_id_headers=["x-reef-session"],
        llm_call_kwargs={"max_tokens": most},
        skills_dir=str(skills.resolve()) if skills.is_dir() else None,
        record_terminal_session=False,
        max_turns=turns,
        suppress_max_turns_warning=True,
    )
    await agent.setup(here)
    await agent.run(instruction, here, AgentContext())


class Here:
    """What Terminus takes for its container: this machine, this directory."""

    default_user = None
    session_id = "reef"

    def __init__(self, cwd: Path, logs: Path, environ: dict[str, str]) -> None:
        self.logs = logs
        self._cwd = cwd
        # The token is for the model's calls; the task's own commands do not need it.
        self._environ = {key: value for key, value in environ.items() if key != "REEF_SESSION"}

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> Any:
        """Run a shell command. Nothing is ever done as another user."""
        from harbor.environments.base import ExecResult

        done = await asyncio.to_thread(
            subprocess.run,
            ["/bin/sh", "-c", command.replace(AGENT_LOGS, str(self.logs))],
            cwd=cwd or self._cwd,
            env={**self._environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_sec,
        )
        return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=done.returncode)

    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        """Whether there is such a folder."""
        return Path(path).is_dir()


def _refused(message: str, hint: str | None) -> int:
    sys.stderr.write(f"error: {message}\n" + (f"hint: {hint}\n" if hint else ""))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
