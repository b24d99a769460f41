"""Finding this home's daemon, proving that it is the real one, starting it, and waiting for its end.

The daemon writes a discovery file. Whoever reads it asks the address in it to answer a random challenge under this
home's person key, so that the key never goes to a stranger who took over a port. `reef.client` re-exports all of this.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reef.errors import DaemonUnreachable, Failed, ReefError, from_json
from reef.paths import Paths, ensure_private, unusable

if TYPE_CHECKING:
    import ssl

Json = dict[str, Any]
SESSION_VARIABLE = "REEF_SESSION"
START_WAIT_S = 30.0
_WRAPPER_MODULE = b"reef.harness.wrapper"


def read_person_key(paths: Paths) -> str:
    """The key that proves the person of this home. Raises DaemonUnreachable when no daemon has made it yet."""
    try:
        return read_secret(paths.person_key)
    except FileNotFoundError:
        raise DaemonUnreachable("this home has no person key yet", "reef up") from None


def read_secret(path: Path) -> str:
    """The one line of a file with a secret of this home. Raises FileNotFoundError, and Failed for what is no secret."""
    try:
        found = path.read_bytes().strip()
    except OSError as error:
        raise unusable(error, "a key of this home cannot be read") or error from None
    text = found.decode("ascii", "replace")
    if not found.isascii() or not text.isprintable():
        raise Failed(f"{path} holds no key (without the file a new one is made)", f"rm {path} && reef up")
    return text


def read_discovery(paths: Paths) -> Json | None:
    """What the daemon wrote about itself: `{pid, port, host, url, version, started_at, facts}`; None without one."""
    try:
        found = json.loads(paths.discovery.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    except OSError as error:
        raise unusable(error, "the daemon cannot be looked for") or error from None
    return found if isinstance(found, dict) and isinstance(found.get("pid"), int) and _is_address(found) else None


def _is_address(found: Json) -> bool:
    try:
        parts = urlsplit(found["url"])
        return parts.scheme == "http" and bool(parts.hostname) and bool(parts.port)
    except (KeyError, ValueError, TypeError, AttributeError):
        return False


def is_ours(discovery: Json, paths: Paths, timeout_s: float = 5) -> bool:
    """Whether the process at that address holds this home's person key; the key itself is not sent."""
    import httpx

    nonce = secrets.token_hex(16)
    try:
        key = read_person_key(paths)
        with httpx.Client(trust_env=False, verify=no_certificates(), timeout=timeout_s) as http:
            reply = http.get(f"{discovery['url']}/healthz", headers={"x-reef-challenge": nonce})
    except (DaemonUnreachable, httpx.HTTPError):
        return False
    return hmac.compare_digest(prove(key, nonce), reply.headers.get("x-reef-proof", ""))


def no_certificates() -> ssl.SSLContext:
    """The `verify` of an httpx client that only speaks HTTP on this machine.

    It trusts nobody, so an https address would be refused. Reading the certificate store, which httpx does otherwise,
    takes longer than the call.
    """
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def prove(person_key: str, nonce: str) -> str:
    """The answer to a challenge: hex HMAC-SHA256 of `nonce` under the person key."""
    return hmac.new(person_key.encode(), nonce.encode(), hashlib.sha256).hexdigest()


def running(paths: Paths) -> Json | None:
    """The discovery facts of this home's daemon when it answers and is the real one, else None."""
    found = read_discovery(paths)
    return found if found is not None and is_ours(found, paths) else None


def start_daemon(
    paths: Paths, serve: Json, wait_s: float = START_WAIT_S, told: Callable[[list[str]], None] | None = None
) -> Json:
    """Start the daemon in the background and wait until it answers.

    `serve` is `{"flags": [[key, text]], "deployment": path|None}`, or `{"again": True}` for a start as the last one
    that a person made. `told` gets the parts of a line that says what was started, unless another process was quicker.
    Returns the discovery facts; raises the error that the daemon itself ended with, or DaemonUnreachable after `wait_s`
    seconds.
    """
    try:
        ensure_private(paths.state)
    except OSError as error:
        raise unusable(error, "the daemon cannot start") or error from None
    left_out = (
        SESSION_VARIABLE,
        "REEF_SESSION_ID",
        "REEF_VERSION",
        "REEF_TREE",
        "REEF_WRAPPER",
        "REEF_SCENARIO",
        "REEF_CONFIRM",
    )
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env["REEF_SERVE"] = json.dumps({"flags": [], "deployment": None} | serve | {"foreground": False})
    with _nameless() as complaints:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "reef.daemon"],
            env=env,
            cwd=paths.state,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            start_new_session=True,
        )
        found = _wait_started(paths, child, complaints, wait_s)
        if told is not None and found["pid"] == child.pid:
            told(_started(found))
        return found


def _nameless() -> IO[bytes]:
    """A file without a name for what a daemon says before it answers: in memory, so that a full disk can be told."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("reef-start"), "w+b")
    return tempfile.TemporaryFile()


def _started(found: Json) -> list[str]:
    engine = found.get("engine") or {}
    named = " ".join(str(engine[key]) for key in ("name", "model") if engine.get(key))
    return ["daemon started", str(found["url"]), f"engine {named} ({engine.get('reason')})"]


def _wait_started(paths: Paths, child: subprocess.Popen[bytes], complaints: IO[bytes], wait_s: float) -> Json:
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        ended = child.poll()
        if ended:
            complaints.seek(0)
            raise _start_error(complaints.read().decode("utf-8", "replace"), ended)
        found = running(paths)
        if found is not None and (ended == 0 or found["pid"] == child.pid):
            return found
        time.sleep(0.05)
    raise DaemonUnreachable(f"the daemon did not answer within {wait_s:.0f} s", "reef logs")


def _start_error(said: str, status: int) -> ReefError:
    lines = [line for line in said.splitlines() if line.strip()]
    for line in reversed(lines):
        if line.startswith("{"):
            return from_json(500, json.loads(line))
    reason = f": {lines[-1].strip()}" if lines else ""
    return Failed(f"the daemon ended with status {status} while starting{reason}", "reef logs")


def wait_stopped(discovery: Json, paths: Paths, wait_s: float) -> bool:
    """Wait until the daemon of `discovery` no longer answers; False when it still does after `wait_s` seconds."""
    deadline = time.monotonic() + wait_s
    while is_ours(discovery, paths, timeout_s=1) or _lock_held(paths):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.1)
    return True


def _lock_held(paths: Paths) -> bool:
    import fcntl

    try:
        with paths.lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def in_session() -> bool:
    """Whether this process runs inside an agent's session: by `REEF_SESSION`, or with a wrapper among its parents."""
    if os.environ.get(SESSION_VARIABLE):
        return True
    pid = os.getppid()
    for _ in range(64):
        if pid <= 1:
            return False
        command, pid = _process(pid)
        if _WRAPPER_MODULE in command:
            return True
    return False


def _process(pid: int) -> tuple[bytes, int]:
    """Command line and parent of a process; parent 0 when it cannot be read."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return Path(f"/proc/{pid}/cmdline").read_bytes(), int(stat.rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        if Path("/proc/self/stat").exists():
            return b"", 0
    asked = subprocess.run(["ps", "-o", "ppid=,command=", "-p", str(pid)], capture_output=True, check=False)
    parent, _, command = asked.stdout.strip().partition(b" ")
    return command, int(parent) if parent.isdigit() else 0


def current_scenario(paths: Paths, explicit: str | None = None) -> tuple[str, str]:
    """The scenario that a command means, and why.

    The origin is `--scenario`, `REEF_SCENARIO`, `reef use`, `last install` or `default`.
    """
    if explicit:
        return explicit, "--scenario"
    if os.environ.get("REEF_SCENARIO"):
        return os.environ["REEF_SCENARIO"], "REEF_SCENARIO"
    for place, origin in ((paths.current_scenario, "reef use"), (paths.last_install, "last install")):
        if place.is_file() and (name := place.read_text(encoding="utf-8").strip()):
            return name, origin
    return "default", "default"
