"""A throwaway root for one run of an agent, and the seal around it.

The agent sees the machine read-only, may write only inside its root, has a home of its own there, and reaches nothing
but loopback of a network of its own. The seal is bubblewrap, tried once with the very flags that are used later; where
the system refuses it, the run may go on unsealed only if the caller says so in what it reports (`Seal.reason`).
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

NETWORK_OPEN = "network open"
"""What an evaluation says when a run was not sealed."""
_PREFIX = "reef-room-"
_KEPT_S = 6 * 3600.0
_PROBE_S = 20
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Seal:
    """Whether this machine lets reef close a room's network, and why not."""

    program: str | None
    """Path of bubblewrap when it works, else None."""
    reason: str
    """`sealed`, or `network open (…)`."""

    @property
    def closed(self) -> bool:
        return self.program is not None

    def wrap(self, root: Path, argv: list[str]) -> list[str]:
        """`argv` inside the seal, or as it is where there is none."""
        return [self.program, *_flags(root), *argv] if self.program else argv


@dataclass(frozen=True)
class Room:
    """The folders of one throwaway root."""

    root: Path

    @property
    def home(self) -> Path:
        """What `HOME` is inside."""
        return self.root / "home"

    @property
    def agent(self) -> Path:
        """The agent's config home."""
        return self.root / "agent"

    @property
    def work(self) -> Path:
        """The working directory."""
        return self.root / "work"

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write `files` into the agent's config home."""
        for path, content in files.items():
            place = self.agent / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """A bare environment: where programs are found and which language is spoken, and nothing else of the person's.

        Keys, tokens and addresses of the person's shell stay outside.
        """
        source = os.environ if environ is None else environ
        kept = {name: source[name] for name in _KEPT if name in source}
        home = str(self.home)
        return kept | {"HOME": home, "TMPDIR": str(self.root / "tmp"), "XDG_CONFIG_HOME": f"{home}/.config"}


@contextmanager
def room() -> Iterator[Room]:
    """A fresh room, deleted at the end.

    It is in the system's folder for temporary files and not below the person's home: agents read instruction files of
    every folder above their working directory.
    """
    _sweep()
    made = Room(Path(tempfile.mkdtemp(prefix=_PREFIX)))
    try:
        for folder in (made.home, made.agent, made.work, made.root / "tmp"):
            folder.mkdir()
        yield made
    finally:
        shutil.rmtree(made.root, ignore_errors=True)


def _sweep() -> None:
    """Remove what killed runs left behind."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            facts = left.lstat()
            if facts.st_uid == os.getuid() and facts.st_mtime < time.time() - _KEPT_S:
                shutil.rmtree(left, ignore_errors=True)


def probe() -> Seal:
    """Try the seal once in this process, with the flags that are used later, and remember the outcome."""
    return _probe(os.environ.get("PATH", ""))


@functools.cache
def _probe(path: str) -> Seal:
    program = shutil.which("bwrap", path=path)
    if program is None:
        missing = "bubblewrap works on Linux only" if sys.platform != "linux" else "bubblewrap is not installed"
        return Seal(None, f"{NETWORK_OPEN} ({missing})")
    with tempfile.TemporaryDirectory(prefix="reef-probe-") as folder:
        (Path(folder) / "work").mkdir()
        try:
            tried = subprocess.run(
                [program, *_flags(Path(folder)), "true"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Seal(None, f"{NETWORK_OPEN} (bubblewrap does not run: {type(error).__name__})")
    if tried.returncode != 0:
        lines = tried.stderr.decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else f"status {tried.returncode}"
        return Seal(None, f"{NETWORK_OPEN} (bubblewrap is refused: {said})")
    return Seal(program, "sealed")


def _flags(root: Path) -> list[str]:
    # `--ro-bind / /` keeps every program where it is; the root is bound again, writable. A network namespace of its own
    # starts with loopback alone, which bubblewrap brings up. With process numbers of its own, all that runs inside ends
    # with its first process, and that one with whoever started it.
    place = str(root)
    flags = ["--die-with-parent", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    return [*flags, "--bind", place, place, "--chdir", str(root / "work"), "--"]
