"""The lines that a step's process sends to the daemon: one JSON object a line, on a pipe of their own.

    {"type": "activity", "kind", "text", "failed"}    something happened, for the person
    {"type": "phase", "phase"}                        `proposing`, `evaluating` or `settling`
    {"type": "step", "fields"}                        columns of the step row, known early
    {"type": "episode", "fields"}                     one run of an agent
    {"type": "result", ...}                           the last line, see `Result`

Standard output and error are not this pipe: they go to the step's `output.log`, whatever a recipe prints.

Whoever wrote the recipe, a frame is read as untrusted: credentials are cut out of it, half surrogate pairs replaced,
and what lists show is held to a length, before anything of it is acted on or stored.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from reef.credentials import clean_json, redact
from reef.errors import Failed
from reef.ids import is_id

Model = TypeVar("Model", bound=BaseModel)

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one frame."""

MAX_SUMMARY = 200
"""Characters of a summary, which is one line of a list."""
MAX_REASON = 2_000
"""Characters of a reason."""

WITH_CREDENTIAL = "the change holds a credential, which no version may hold"
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")

Outcome = Literal["candidate", "rejected", "skipped", "failed", "could_not_evaluate"]


def _flat(text: str) -> str:
    """A summary as one line of bounded length."""
    return _cut(" ".join(text[: 10 * MAX_SUMMARY].split()), MAX_SUMMARY)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _ids(names: list[str]) -> list[str]:
    if not all(is_id(name) for name in names):
        raise ValueError("not ids")
    return names


Summary = Annotated[str, AfterValidator(_flat)]
Reason = Annotated[str, AfterValidator(lambda text: _cut(text, MAX_REASON))]


class Early(BaseModel):
    """Columns of the step row that may be known before the result."""

    model_config = ConfigDict(frozen=True)

    summary: Summary | None = None
    mutations: list[dict[str, Any]] = []
    notes: dict[str, Any] = {}
    metrics: dict[str, float] = {}


class Result(BaseModel):
    """How a step's process ended its work."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["result"] = "result"
    outcome: Outcome
    """`candidate`: every check passed, publish it."""
    reason: Reason
    """One sentence for the person."""
    summary: Summary = ""
    mutations: list[dict[str, Any]] = []
    tree: list[dict[str, Any]] | None = None
    """The candidate's entries, once they were admitted; None before."""
    evaluation: dict[str, Any] = {}
    consumed: Annotated[list[str], AfterValidator(_ids)] = []
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
    """One frame, cleaned. Raises FrameBroken."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise FrameBroken("the step sent a line that is no frame") from None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise FrameBroken("the step sent a line that is no frame")
    if redact(line)[1]:
        _refuse_tree(value)
        return dict(clean_json(value))
    return dict(clean_json(value)) if _HALF_PAIR.search(line) else value


def _refuse_tree(frame: dict[str, Any]) -> None:
    """Take a candidate with a credential out of its frame: changed content would be another candidate than was judged.

    Admission refuses what is shaped like a key; the keys of this process are known only here.
    """
    if not frame.get("tree") or not redact(json.dumps(frame["tree"]).encode())[1]:
        return
    frame["tree"] = None
    if frame.get("outcome") == "candidate":
        frame |= {"outcome": "rejected", "reason": WITH_CREDENTIAL}


def whole_pairs(value: Any) -> Any:
    """A copy of a JSON value in which half a surrogate pair is `?`: no file and no other process could take it."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def early(frame: Mapping[str, Any]) -> dict[str, Any]:
    """The columns in a `step` frame; what is no column is left out. Raises FrameBroken that names the field."""
    return _checked(Early, frame.get("fields"), "row").model_dump(exclude_unset=True)


def result(frame: Mapping[str, Any]) -> Result:
    """The result in a frame of that type. Raises FrameBroken that names the field."""
    return _checked(Result, dict(frame), "result")


def _checked(kind: type[Model], value: object, what: str) -> Model:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        key = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        raise FrameBroken(f"the step's {what} is not usable ({key[:80]})") from None


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
