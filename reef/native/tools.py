"""The agent's own four tools: read, write, edit, bash. Each takes the model's arguments and gives a text back."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.errors import InvalidInput, ReefError
from reef.native.bounded import run_bounded
from reef.native.home import Limits

Json = dict[str, Any]
MOST_BASH_S = 3600
_READ_LINES = 2000
_READ_MAX = 10 << 20


@dataclass(frozen=True)
class Result:
    """What the model is told of a tool call."""

    text: str
    failed: bool = False


def schema(name: str, description: str, parameters: Mapping[str, Any]) -> Json:
    """A tool as chat completions offer it."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _parameters(required: list[str], **properties: str) -> Json:
    kinds = {"offset": "integer", "limit": "integer", "timeout": "integer"}
    shown = {name: {"type": kinds.get(name, "string"), "description": text} for name, text in properties.items()}
    return {"type": "object", "properties": shown, "required": required}


BUILT_IN: dict[str, tuple[str, Json]] = {
    "read": (
        "Read a text file, or list a folder",
        _parameters(["path"], path="file or folder", offset="first line, from 1", limit="how many lines"),
    ),
    "write": (
        "Write a whole file; folders are made",
        _parameters(["path", "content"], path="file", content="the whole text"),
    ),
    "edit": (
        "Replace a text in a file; it must be there exactly once",
        _parameters(["path", "old", "new"], path="file", old="the text as it is", new="what stands in its place"),
    ),
    "bash": (
        "Run a shell command in the working directory",
        _parameters(["command"], command="the command", timeout="seconds"),
    ),
}
"""Name to description and parameters."""


def built_in(name: str, arguments: Json, cwd: Path, limits: Limits) -> Result:
    """Run one of the four. Whatever goes wrong is a result that the model reads; only an interrupt is raised."""
    run: Callable[[Json, Path, Limits], Result] = {"read": _read, "write": _write, "edit": _edit, "bash": _bash}[name]
    try:
        return run(arguments, cwd, limits)
    except ReefError as error:
        return Result(error.message, failed=True)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return Result(f"{where}{error.strerror or error}", failed=True)


def cut(text: str, most_bytes: int, what: str = "output") -> str:
    """`text` with its middle left out when it is longer than `most_bytes`, which a note says."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most_bytes:
        return text
    half = most_bytes // 2
    head, tail = raw[:half].decode("utf-8", "ignore"), raw[-half:].decode("utf-8", "ignore")
    return f"{head}\n… {len(raw) - 2 * half:,} bytes of the {what} are left out here …\n{tail}"


def _read(arguments: Json, cwd: Path, limits: Limits) -> Result:
    place = cwd / _text(arguments, "path")
    if place.is_dir():
        names = sorted(item.name + ("/" if item.is_dir() else "") for item in place.iterdir())
        return Result(cut("\n".join(names) or "(an empty folder)", limits.tool_output_bytes, "list"))
    if not place.is_file():
        raise InvalidInput(f"{place} is not there" if not place.exists() else f"{place} is no file that can be read")
    with place.open("rb") as file:
        raw = file.read(_READ_MAX)
    if b"\x00" in raw[:8192]:
        raise InvalidInput(f"{place} is not a text file")
    lines = raw.decode("utf-8", "replace").splitlines()
    first = max(1, _number(arguments, "offset", 1))
    count = max(1, _number(arguments, "limit", _READ_LINES))
    shown = lines[first - 1 : first - 1 + count]
    kept: list[str] = []
    size = 0
    for line in shown:
        size += len(line.encode("utf-8", "replace")) + 1
        if size > limits.tool_output_bytes and kept:
            break
        kept.append(cut(line, limits.tool_output_bytes, "line"))
    text = "\n".join(kept)
    after = first - 1 + len(kept)
    if after < len(lines):
        text += f"\n… {len(lines) - after:,} more lines; read on with offset {after + 1} …"
    return Result(text or "(nothing in it)")


def _write(arguments: Json, cwd: Path, limits: Limits) -> Result:
    place, content = cwd / _text(arguments, "path"), arguments.get("content")
    if not isinstance(content, str):
        raise InvalidInput("'content' is not a text")
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(content)
    return Result(f"wrote {len(content.encode('utf-8', 'replace')):,} bytes to {place}")


def _edit(arguments: Json, cwd: Path, limits: Limits) -> Result:
    place, old, new = cwd / _text(arguments, "path"), _text(arguments, "old"), arguments.get("new")
    if not isinstance(new, str):
        raise InvalidInput("'new' is not a text")
    try:
        text = place.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{place} is not a text file in UTF-8") from None
    if old not in text and "\r\n" in text:
        # A model is shown lines without their ends, so it cannot write those of such a file.
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    times = text.count(old)
    if times != 1:
        found = "is not in it" if times == 0 else f"is in it {times} times; give more of the text around it"
        raise InvalidInput(f"{place} was not changed: the old text {found}")
    place.write_bytes(text.replace(old, new).encode("utf-8", "replace"))
    return Result(f"changed {place}")


def _bash(arguments: Json, cwd: Path, limits: Limits) -> Result:
    command = _text(arguments, "command")
    timeout = min(max(1, _number(arguments, "timeout", limits.bash_timeout_s)), MOST_BASH_S)
    shell = shutil.which("bash") or "/bin/sh"
    ran = run_bounded([shell, "-c", command], cwd, timeout, limits.tool_output_bytes, together=True)
    text = ran.stdout.rstrip("\n")
    if ran.timed_out:
        return Result(f"{text}\n(ended after {timeout} s: the time limit)".lstrip("\n"), failed=True)
    if ran.status != 0:
        how = f"signal {-ran.status}" if ran.status < 0 else f"exit status {ran.status}"
        return Result(f"{text}\n({how})".lstrip("\n"), failed=True)
    return Result(text or "(no output)")


def _text(arguments: Json, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name!r} is missing" if not value else f"{name!r} is not a text")
    if "\x00" in value:
        raise InvalidInput(f"{name!r} holds a null character")
    return value


def _number(arguments: Json, name: str, default: int) -> int:
    value = arguments.get(name)
    if value is None:
        return default
    if isinstance(value, str) and value.strip().isdigit():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{name!r} is not a number")
    return int(value)
