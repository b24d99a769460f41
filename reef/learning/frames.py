"""The lines that a step's process sends to the daemon: one JSON object a line, on a pipe of their own.

    {"type": "activity", "kind", "text", "failed"}    something happened, for the person
    {"type": "phase", "phase"}                        `proposing`, `evaluating` or `settling`
    {"type": "step", "fields"}                        columns of the step row, known early
    {"type": "episode", "fields"}                     one run of an agent
    {"type": "result", ...}                           the last line, see `Result`

Standard output and error are not this pipe: they go to the step's `output.log`, whatever a recipe prints.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from reef.errors import Failed

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one frame."""

Outcome = Literal["candidate", "rejected", "skipped", "failed", "could_not_evaluate"]


class Result(BaseModel):
    """How a step's process ended its work."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["result"] = "result"
    outcome: Outcome
    """`candidate`: every check passed, publish it."""
    reason: str
    """One sentence for the person."""
    summary: str = ""
    mutations: list[dict[str, Any]] = []
    tree: list[dict[str, Any]] | None = None
    """The candidate's entries, once they were admitted; None before."""
    evaluation: dict[str, Any] = {}
    consumed: list[str] = []
    """Ids of the inputs that the step used up."""
    requires: list[dict[str, Any]] = []
    notes: dict[str, Any] = {}
    metrics: dict[str, float] = {}
    state: Any = None
    pending: bool = False
    """Whether it waits for the person although it passed: the change is code."""


class FrameBroken(Failed):
    """A line on the pipe is no frame."""


def parse(line: bytes) -> dict[str, Any]:
    """One frame. Raises FrameBroken."""
    try:
        value = json.loads(line)
    except ValueError:
        raise FrameBroken("the step sent a line that is no frame") from None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise FrameBroken("the step sent a line that is no frame")
    return value


def result(frame: Mapping[str, Any]) -> Result:
    """The result in a frame of that type. Raises FrameBroken that names the field."""
    try:
        return Result.model_validate(dict(frame))
    except ValidationError as error:
        key = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        raise FrameBroken(f"the step's result is not usable ({key})") from None


class FramePipe:
    """The writing end, in the step's process. Safe to use from several threads."""

    def __init__(self, handle: int) -> None:
        # A program that the recipe starts must not hold the pipe open, nor write into it.
        os.set_inheritable(handle, False)
        self._handle = handle
        self._turn = threading.Lock()

    def send(self, frame: Mapping[str, Any]) -> None:
        """Write one frame whole."""
        line = json.dumps(frame, ensure_ascii=True, default=str).encode() + b"\n"
        with self._turn:
            view = memoryview(line)
            while view:
                view = view[os.write(self._handle, view) :]

    def activity(self, kind: str, text: str, failed: bool = False) -> None:
        """Tell what happens."""
        self.send({"type": "activity", "kind": kind, "text": text, "failed": bool(failed)})
