"""`reef up --at-login`: a systemd user unit on Linux, a launchd agent on macOS, and nothing else.

The entry holds the flags as typed and never a secret: those stay in the environment or in a file of the person's.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

from reef.cli.flags import Wanted
from reef.errors import Refused
from reef.paths import Paths

UNIT = "reef.service"
LABEL = "reef.daemon"
_SECRET = ("token", "api-key")


def place() -> Path:
    """The file that makes the daemon start at login."""
    user = Path.home()
    if sys.platform == "darwin":
        return user / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else user / ".config") / "systemd" / "user" / UNIT


def enable(wanted: Wanted) -> list[str]:
    """Write the entry and switch it on. Returns what was done, a line each. Raises Refused for a secret in a flag."""
    for key, _ in wanted.pairs:
        if any(word in key for word in _SECRET):
            raise Refused(f"--{key} would write a secret into a login entry", "export it, or put it into config.yaml")
    target = place()
    content = _plist(wanted) if sys.platform == "darwin" else _unit(wanted)
    old = target.read_bytes() if target.is_file() else None
    if old != content:
        _write(target, content)
    told = [f"starts at login: {target}" if old != content else f"starts at login already: {target}"]
    return told + _switch(target, on=True)


def disable() -> list[str]:
    """Switch the entry off and remove it."""
    target = place()
    if not target.is_file():
        return ["it does not start at login"]
    told = _switch(target, on=False)
    target.unlink()
    return [f"removed: {target}", *told]


def _arguments(wanted: Wanted) -> list[str]:
    words = [sys.executable, "-P", "-m", "reef.cli.app", "serve"]
    if wanted.deployment is not None:
        words += ["-c", str(wanted.deployment)]
    return words + [f"--{key}={text}" for key, text in wanted.pairs]


def _environment() -> dict[str, str]:
    # Only what decides which home it is; a login session does not have the shell's variables.
    names = ("REEF_HOME", "REEF_BIN_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _unit(wanted: Wanted) -> bytes:
    lines = ["[Unit]", "Description=reef: serves, records and versions for coding agents", "", "[Service]"]
    lines.append("ExecStart=" + " ".join(_quoted(word, "$") for word in _arguments(wanted)))
    lines += [f"Environment={_quoted(f'{name}={value}')}" for name, value in _environment().items()]
    lines += ["Restart=on-failure", "RestartSec=5", "", "[Install]", "WantedBy=default.target", ""]
    return "\n".join(lines).encode()


def _quoted(word: str, doubled: str = "") -> str:
    # systemd reads quotes, backslashes and % everywhere, and $ in ExecStart only.
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    for sign in "%" + doubled:
        escaped = escaped.replace(sign, sign * 2)
    return f'"{escaped}"'


def _plist(wanted: Wanted) -> bytes:
    log = str(Paths.from_environ().state / "login.log")
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": _arguments(wanted),
            "EnvironmentVariables": _environment(),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "StandardErrorPath": log,
            "StandardOutPath": log,
        }
    )


def _write(target: Path, content: bytes) -> None:
    made = [folder for folder in reversed(target.parents) if not folder.exists()]
    for folder in made:
        folder.mkdir()
    # Not write_atomic's folder rule: these folders belong to the person and keep their mode.
    fresh = target.with_name(f".{target.name}.new")
    fresh.write_bytes(content)
    fresh.replace(target)


def _switch(target: Path, on: bool) -> list[str]:
    if sys.platform == "darwin":
        verb = ["load", "-w"] if on else ["unload", "-w"]
        return _tried(["launchctl", *verb, str(target)], on)
    if not on:
        return _tried(["systemctl", "--user", "disable", UNIT], on)
    _tried(["systemctl", "--user", "daemon-reload"], on)
    return _tried(["systemctl", "--user", "enable", UNIT], on)


def _tried(words: list[str], on: bool) -> list[str]:
    """Run the system's own tool; where it is not there or has no session, say what the person has to run."""
    if shutil.which(words[0]) is not None:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
        if done.returncode == 0:
            return []
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    else:
        reason = f"{words[0]} is not here"
    return [f"not switched {'on' if on else 'off'} ({reason}); run: {' '.join(words)}"]
