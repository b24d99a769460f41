"""The one way to start git: nothing of the user's git reaches it.

Every `GIT_*` variable is taken out, global and system configuration are nothing, hooks are nothing, the repository's
own path alone is safe, the identity is fixed, nothing is signed and nothing is asked. A call that takes too long gets
SIGTERM first, so that git removes its own locks.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reef.errors import Failed

if TYPE_CHECKING:
    from git.cmd import Git

NAME = "reef"
EMAIL = "reef@localhost"


class GitFailed(Failed):
    """A git call ended with another status than 0; `stderr` is what it said."""

    def __init__(self, verb: str, status: int, stderr: str) -> None:
        first = next((line for line in stderr.splitlines() if line.strip()), "no reason given")
        super().__init__(f"git {verb} ended with status {status}: {first}", "reef status")
        self.status = status
        self.stderr = stderr


def environment(repository: Path) -> dict[str, str]:
    """What a child's environment says differently from the daemon's, whose own `GIT_*` variables are left out."""
    settings = {
        "safe.directory": str(repository),
        "core.hooksPath": os.devnull,
        "core.fsmonitor": "false",
        "core.autocrlf": "false",
        "commit.gpgSign": "false",
        "tag.gpgSign": "false",
        "gc.auto": "0",
        "maintenance.auto": "false",
        "core.attributesFile": os.devnull,
        "init.templateDir": "",
        # A branch must be on the disk before the catalog says that it moved; by itself git leaves that to the system.
        "core.fsync": "all",
    }
    found = {
        # A git that is older than the next two variables looks for the user's files in these folders.
        "HOME": str(repository),
        "XDG_CONFIG_HOME": str(repository),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_DEFAULT_REF_FORMAT": "files",
        "GIT_AUTHOR_NAME": NAME,
        "GIT_AUTHOR_EMAIL": EMAIL,
        "GIT_COMMITTER_NAME": NAME,
        "GIT_COMMITTER_EMAIL": EMAIL,
    }
    for place, (key, value) in enumerate(settings.items()):
        found[f"GIT_CONFIG_KEY_{place}"] = key
        found[f"GIT_CONFIG_VALUE_{place}"] = value
    return found


def _wrapper() -> type[Git]:
    """GitPython's command class. Imported on first use: the import itself runs `git version`."""
    try:
        from git.cmd import Git
    except ImportError as error:
        raise Failed("git is not installed, and versions are kept in git", "apt install git") from error
    return Git


class ChildGit:
    """Runs git on one bare repository."""

    def __init__(self, repository: Path, timeout_s: float = 30) -> None:
        self.path = repository
        self._timeout_s = timeout_s
        self._git = _wrapper()(str(repository) if repository.is_dir() else None)

    def run(self, *arguments: str, inside: bool = True) -> str:
        """Standard output of `git ARGUMENTS` as text; raises GitFailed. `inside` names the repository to git."""
        return self.run_bytes(*arguments, inside=inside).decode("utf-8", "replace")

    def run_bytes(self, *arguments: str, inside: bool = True) -> bytes:
        """Standard output of `git ARGUMENTS` byte for byte; raises GitFailed."""
        git = str(self._git.GIT_PYTHON_GIT_EXECUTABLE)
        own = environment(self.path)
        # GitPython hands every variable of this process on, and it cannot take one away.
        strays = [name for name in os.environ if name.startswith("GIT_") and name not in own]
        clean = ["env", *(part for name in strays for part in ("-u", name))] if strays else []
        place = [f"--git-dir={self.path}"] if inside else []
        process: Any = self._git.execute([*clean, git, *place, *arguments], as_process=True, env=own)
        try:
            out, err = process.proc.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            _end(process.proc)
            raise GitFailed(arguments[0], -1, f"no end after {self._timeout_s:g} s") from None
        if process.proc.returncode != 0:
            raise GitFailed(arguments[0], process.proc.returncode, err.decode("utf-8", "replace"))
        return bytes(out)


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, and SIGKILL only after two seconds: git removes its lock files on the first and cannot on the second."""
    process.terminate()
    try:
        process.communicate(timeout=2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
