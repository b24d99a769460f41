"""One session with one version beside what is installed: `python -m reef.harness.wrapper_trial pi SCENARIO RELEASE`.

The version gets an install root of its own below `trials/`, which is gone when the session is. The installed tree, its
agent's home, the pin and the wrapper in the person's PATH stay as they are. Whoever starts this has the person's yes
for the release where it needs one. The module's name begins with that of the wrapper, by which a command among the
agent's children knows that it runs inside a session.
"""

from __future__ import annotations

import fcntl
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from reef.client import Client
from reef.errors import NotFound, ReefError, UsageError
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree, installed
from reef.harness.wrapper import run_agent
from reef.paths import Paths, ensure_private
from reef.text import told

_PROVIDED = ("env.json", "agreed.json")


@dataclass(frozen=True)
class TrialPaths(Paths):
    """The person's paths, with a harness folder and a folder for the wrapper of this trial alone."""

    root: Path

    @property
    def harness(self) -> Path:
        return self.root / "harness"

    @property
    def last_install(self) -> Path:
        return self.root / "last-install"


def main(argv: list[str]) -> int:
    """Run the agent on a release. Returns its exit status."""
    try:
        if len(argv) < 3:
            raise UsageError("a trial needs an agent, a scenario and a release", "reef versions try v3")
        return _try(argv[0], argv[1], argv[2], argv[3:])
    except ReefError as error:
        sys.stderr.write(told(error.message, error.hint))
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _try(name: str, scenario: str, release: str, arguments: list[str]) -> int:
    own = Paths.from_environ()
    # How to go on with the session is not said: its home is gone by then.
    adapter = load_adapter(name, own).model_copy(update={"resume": None})
    with Client.connect(own, start=False) as client:
        found = client.harness(scenario, release, name)
    with _root(own) as root:
        kept = {field.name: getattr(own, field.name) for field in fields(Paths)}
        paths = TrialPaths(**kept | {"bin": root / "bin"}, root=root)
        files = {path: str(text).encode() for path, text in found["files"].items()}
        done = install_tree(
            paths, scenario, adapter, found["version"], files, found["release_id"], found["content_id"],
            found.get("left_out") or (),
        )  # fmt: skip
        for file in _PROVIDED:
            theirs = own.harness / scenario / name / file
            if theirs.is_file():
                shutil.copy(theirs, done.install.folder / file)
        try:
            return run_agent(adapter, arguments, paths, scenario)
        finally:
            sys.stderr.write(f"v{found['version']} was for this session only; {_stays(own, scenario, name)}\n")


def _stays(paths: Paths, scenario: str, adapter: str) -> str:
    try:
        return f"v{installed(paths, scenario, adapter).version} stays installed"
    except NotFound:
        return "nothing is installed"


@contextmanager
def _root(paths: Paths) -> Iterator[Path]:
    """A folder that is this trial's alone and gone after it; what a killed trial left goes first."""
    above = ensure_private(paths.data / "trials")
    with (above / ".lock").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for old in above.iterdir():
            if old.is_dir() and not _runs(old):
                shutil.rmtree(old, ignore_errors=True)
        root = Path(tempfile.mkdtemp(dir=above))
        held = (root / ".held").open("a")
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
        held.close()


def _runs(folder: Path) -> bool:
    """Whether the trial of a folder still holds it."""
    try:
        with (folder / ".held").open("r") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
