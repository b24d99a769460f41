"""Where things are on disk. Nothing else in reef builds a path from an environment variable.

`REEF_HOME` puts config, data, state and cache into one folder; without it they are the XDG folders, on Linux and
macOS alike. Folders are made 0700, secrets 0600.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reef.errors import Failed, NotFound

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_CLOSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP})


@dataclass(frozen=True)
class Paths:
    """The four folders of one reef home and the fixed places in them."""

    config: Path
    data: Path
    state: Path
    cache: Path
    bin: Path
    """Where commands are linked: `REEF_BIN_DIR`, else `~/.local/bin`."""
    home: Path | None
    """`REEF_HOME` when it is set: what a wrapper must set again to find the same daemon."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> Paths:
        """The paths that `environ` (default: the process's) names."""
        env = os.environ if environ is None else environ
        user = Path(env.get("HOME") or Path.home())
        bin_dir = Path(env.get("REEF_BIN_DIR") or user / ".local" / "bin")
        if env.get("REEF_HOME"):
            home = Path(env["REEF_HOME"]).expanduser().absolute()
            return cls(home / "config", home / "data", home / "state", home / "cache", bin_dir, home)

        def xdg(variable: str, default: str) -> Path:
            value = env.get(variable, "")
            # The XDG specification says that a relative path is to be ignored.
            base = Path(value) if value.startswith("/") else user / default
            return base / "reef"

        return cls(
            xdg("XDG_CONFIG_HOME", ".config"),
            xdg("XDG_DATA_HOME", ".local/share"),
            xdg("XDG_STATE_HOME", ".local/state"),
            xdg("XDG_CACHE_HOME", ".cache"),
            bin_dir,
            None,
        )

    @property
    def config_file(self) -> Path:
        return self.config / "config.yaml"

    @property
    def database(self) -> Path:
        return self.data / "reef.db"

    @property
    def versions_git(self) -> Path:
        return self.data / "versions.git"

    @property
    def steps(self) -> Path:
        return self.data / "steps"

    @property
    def harness(self) -> Path:
        return self.data / "harness"

    @property
    def agents(self) -> Path:
        return self.data / "agents"

    @property
    def models(self) -> Path:
        return self.data / "models"

    @property
    def discovery(self) -> Path:
        return self.state / "daemon.json"

    @property
    def lock(self) -> Path:
        return self.state / "daemon.lock"

    @property
    def daemon_log(self) -> Path:
        return self.state / "daemon.log"

    @property
    def person_key(self) -> Path:
        return self.state / "person.key"

    @property
    def current_scenario(self) -> Path:
        """Holds the name that `reef use` chose."""
        return self.state / "scenario"

    @property
    def last_install(self) -> Path:
        """Holds the scenario of the last harness install on this machine."""
        return self.state / "last-install"

    def make(self) -> None:
        """Make the four folders, private to the user."""
        for folder in (self.config, self.data, self.state, self.cache):
            ensure_private(folder)


def ensure_private(folder: Path) -> Path:
    """Make `folder` (and what is above it) and set it to 0700. Returns it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def write_atomic(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write `content` so that a reader sees the old file or the new one, whole; `mode` is set before the rename."""
    ensure_private(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def bundled(kind: str) -> Path:
    """The folder `recipes` or `adapters` that came with reef: beside the package (checkout) or inside it (wheel)."""
    package = Path(__file__).resolve().parent
    for place in (package / kind, package.parent / kind):
        if place.is_dir():
            return place
    raise NotFound(f"this installation of reef has no {kind} folder", "./install.sh")


def search(kind: str, paths: Paths) -> list[Path]:
    """The folders that may hold `recipes` or `adapters`, the user's own first."""
    own = paths.config / kind
    return [own, bundled(kind)] if own.is_dir() else [bundled(kind)]


def unusable(error: OSError, what: str) -> Failed | None:
    """A full disk, or a place that cannot be used, as the sentence for a person; None for every other error.

    `what` begins the sentence: `reef cannot start`.
    """
    named = error.filename2 or error.filename
    reason = (error.strerror or "it cannot be used").lower()
    if error.errno in _FULL and not isinstance(named, str | Path):
        # A write names no file.
        return Failed(f"{what}: {reason}", "df -h")
    if error.errno not in _FULL | _CLOSED or not isinstance(named, str | Path):
        return None
    place = Path(named)
    hint = f"df -h {place.parent}" if error.errno in _FULL else f"ls -ld {place.parent} {place}"
    return Failed(f"{what}: {place}: {reason}", hint)
