"""Model servers on this machine: known ports, asked only when their socket is this user's, known by their own shape.

Nothing outside the loopback address is ever contacted from here.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
_TIMEOUT_S = 1.0
_LISTEN = "0A"
_REPLY_LIMIT = 1 << 20


@dataclass(frozen=True)
class Known:
    """One kind of model server: its usual port, and how it shows what it is."""

    kind: str
    port: int
    check: Callable[[Callable[[str], Any]], list[str] | None]
    """Gets a function that fetches a path as JSON (None when that fails); returns its model ids, or None: not it."""


@dataclass(frozen=True)
class Server:
    """A socket on a known port."""

    kind: str
    url: str
    models: tuple[str, ...] = ()
    why_not: str | None = None
    """Why it is not offered; None when it may be."""


def _names(reply: Any, key: str, field: str) -> list[str]:
    items = reply.get(key) if isinstance(reply, dict) else None
    return [str(item[field]) for item in items or [] if isinstance(item, dict) and item.get(field)]


def _owned_by(get: Callable[[str], Any], owner: str) -> list[str] | None:
    reply = get("/v1/models")
    items = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(items, list) or not any(
        isinstance(item, dict) and item.get("owned_by") == owner for item in items
    ):
        return None
    return _names(reply, "data", "id")


def _ollama(get: Callable[[str], Any]) -> list[str] | None:
    version = get("/api/version")
    if not (isinstance(version, dict) and isinstance(version.get("version"), str)):
        return None
    tags = get("/api/tags")
    return _names(tags, "models", "name") if isinstance(tags, dict) and "models" in tags else None


def _lm_studio(get: Callable[[str], Any]) -> list[str] | None:
    reply = get("/api/v0/models")
    items = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and "type" in item for item in items):
        return None
    return [str(item["id"]) for item in items if item.get("id") and item["type"] in ("llm", "vlm")]


def _vllm(get: Callable[[str], Any]) -> list[str] | None:
    version = get("/version")
    return _owned_by(get, "vllm") if isinstance(version, dict) and "version" in version else None


def _sglang(get: Callable[[str], Any]) -> list[str] | None:
    info = get("/get_model_info")
    return _owned_by(get, "sglang") if isinstance(info, dict) and "model_path" in info else None


def _llama_cpp(get: Callable[[str], Any]) -> list[str] | None:
    health = get("/health")
    return _owned_by(get, "llamacpp") if isinstance(health, dict) and "status" in health else None


KNOWN = (
    Known("ollama", 11434, _ollama),
    Known("llama.cpp", 8080, _llama_cpp),
    Known("lm-studio", 1234, _lm_studio),
    Known("vllm", 8000, _vllm),
    Known("sglang", 30000, _sglang),
)


def find(known: tuple[Known, ...] = KNOWN, proc: Path = Path("/proc")) -> list[Server]:
    """The servers that listen on the known ports, each with the reason when it is not to be used."""
    found = []
    for candidate in known:
        url = f"http://{HOST}:{candidate.port}"
        owners = listeners(candidate.port, proc)
        if not owners:
            continue
        strangers = owners - {os.getuid()}
        if strangers:
            uid = min(strangers)
            found.append(Server(candidate.kind, url, why_not=f"its socket belongs to another user ({_user(uid)})"))
            continue
        models = candidate.check(lambda path, port=candidate.port: fetch_json(port, path))  # type: ignore[misc]
        if models is None:
            found.append(
                Server(candidate.kind, url, why_not=f"what listens on port {candidate.port} is not {candidate.kind}")
            )
        elif not models:
            found.append(Server(candidate.kind, url, why_not="it offers no model"))
        else:
            found.append(Server(candidate.kind, url, tuple(models)))
    return found


def listeners(port: int, proc: Path = Path("/proc")) -> set[int] | None:
    """The user ids that own a socket which would take a connection to loopback `port`; None where that is unknown."""
    if not (proc / "net" / "tcp").is_file():
        return None
    return {uid for address, number, uid in _sockets(proc) if number == port and _takes_loopback(address)}


def _sockets(proc: Path) -> Iterator[tuple[str, int, int]]:
    """Address in hex, port and owner of every listening TCP socket."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 7 and fields[3] == _LISTEN:
                address, _, number = fields[1].partition(":")
                yield address, int(number, 16), int(fields[7])


def _takes_loopback(address: str) -> bool:
    """Whether a socket bound to this hex address takes connections to 127.0.0.1: bound to it, or to every address."""
    if len(address) == 8:
        return bytes.fromhex(address)[::-1][0] == 127 or set(address) == {"0"}
    return set(address) == {"0"} or address.upper().startswith("0000000000000000FFFF0000")


def fetch_json(port: int, path: str) -> Any:
    """A small JSON reply from loopback `port`, None for anything else."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"accept": "application/json"})
        reply = connection.getresponse()
        return json.loads(reply.read(_REPLY_LIMIT)) if reply.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
