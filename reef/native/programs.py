"""Tools and hooks of the installed version: programs that get one JSON object and answer with one.

A tool gets its arguments and answers `{"result": text}` or plain text; it has failed when its exit status is not 0. A
hook gets `{"event", "session", "cwd"}` with what the event is about, and may answer `{"block": reason}` before a tool,
`{"result": text}` after one, or `{"note": text}` at the start of a turn, which the model then reads. No answer at all
means that there is nothing to say.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from reef.errors import Failed, ReefError
from reef.native.bounded import Ran, run_bounded
from reef.native.harness import Harness, Program
from reef.native.tools import Result
from reef.text import one_line

Json = dict[str, Any]
TOOL_S = 300
HOOK_S = 30
_HOOK_BYTES = 65536


def call_tool(program: Program, arguments: Json, cwd: Path, most_bytes: int) -> Result:
    """Run a tool of the version. What goes wrong is a result for the model."""
    try:
        ran = _run(program, arguments, cwd, TOOL_S, most_bytes)
    except ReefError as error:
        return Result(error.message, failed=True)
    if ran.timed_out or ran.status != 0:
        how = f"did not end within {TOOL_S} s" if ran.timed_out else f"ended with status {ran.status}"
        said = ran.stderr.strip() or ran.stdout.strip()
        return Result(f"the tool {program.name} {how}" + (f":\n{said}" if said else ""), failed=True)
    answer = _object(ran.stdout)
    text = answer.get("result") if answer is not None else ran.stdout.rstrip("\n")
    shown = text if isinstance(text, str) else ran.stdout.rstrip("\n")
    return Result(shown or "(no output)")


class Hooks:
    """The hooks of one turn."""

    def __init__(self, harness: Harness, session: str, cwd: Path) -> None:
        self._hooks = harness.hooks
        self._session = session
        self._cwd = cwd

    def run(self, event: str, tool: str | None = None, **about: Any) -> tuple[Json, list[str]]:
        """Run every hook of `event`, in the order of their names. Returns the answers as one, and what went wrong.

        A hook that fails before a tool blocks it: what it guards is not known to be right.
        """
        found: Json = {}
        faults: list[str] = []
        for name, (program, facts) in sorted(self._hooks.items()):
            if event not in facts.events or (tool is not None and facts.tools and tool not in facts.tools):
                continue
            given = {"event": event, "session": self._session, "cwd": str(self._cwd), **about, **found}
            given |= {"tool": tool} if tool is not None else {}
            try:
                answer = _answer(_run(program, given, self._cwd, HOOK_S, _HOOK_BYTES), name)
            except ReefError as error:
                faults.append(error.message)
                answer = {"block": error.message} if event == "before_tool" else {}
            notes = [text for text in (found.get("note"), answer.get("note")) if isinstance(text, str)]
            found |= {key: text for key, text in answer.items() if key in _ANSWERS[event] and isinstance(text, str)}
            if notes:
                found["note"] = "\n".join(notes)
            if "block" in found:
                break
        return found, faults


_ANSWERS = {
    "turn_start": ("note",),
    "before_tool": ("block",),
    "after_tool": ("result",),
    "turn_end": (),
}


def _answer(ran: Ran, name: str) -> Json:
    if ran.timed_out or ran.status != 0:
        how = f"did not end within {HOOK_S} s" if ran.timed_out else f"ended with status {ran.status}"
        said = one_line(ran.stderr or ran.stdout, 200)
        raise Failed(f"the hook {name} {how}" + (f": {said}" if said else ""))
    if not ran.stdout.strip():
        return {}
    answer = _object(ran.stdout)
    if answer is None:
        raise Failed(f"the hook {name} answered with something that is not a JSON object")
    return answer


def _run(program: Program, given: Json, cwd: Path, timeout_s: float, most_bytes: int) -> Ran:
    try:
        argv = _argv(program.file)
    except OSError as error:
        raise Failed(f"{program.file} cannot be read: {error.strerror}") from None
    return run_bounded(argv, cwd, timeout_s, most_bytes, json.dumps(given).encode())


def _argv(file: Path) -> list[str]:
    """How a program of the tree is started; its file is not executable, as no file of a version is."""
    if file.suffix == ".py":
        return [sys.executable, str(file)]
    with file.open("rb") as opened:
        first = opened.readline(256).decode("utf-8", "replace")
    if first.startswith("#!") and (named := shlex.split(first[2:])):
        return [*named, str(file)]
    return ["/bin/sh", str(file)]


def _object(text: str) -> Json | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
