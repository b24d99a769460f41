"""Reads a proposer's answer: one JSON object of exactly one form, or a refusal that says what was wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reef.errors import Refused
from reef.learning.models import Reply
from reef.learning.recipe import Mutation

MAX_ENTRIES = 16
_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_CODE_BLOCK = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.DOTALL)
_FIELDS = {"op", "id", "kind", "text"}


class ReplyRefused(Refused):
    """The answer cannot be used; the sentence is what the model and the person are told."""

    code = "reply_refused"


@dataclass(frozen=True)
class Answer:
    """A usable answer."""

    mutations: list[Mutation]
    summary: str


def read(reply: Reply) -> Answer:
    """The entries in a model's reply. Raises ReplyRefused.

    A leading `<think>` block is passed over, and so is one code fence around the whole answer. Names and contents are
    judged by admission, not here.
    """
    text = _THINKING.sub("", reply.text).strip()
    if reply.finish_reason == "length":
        raise ReplyRefused("the answer was cut off at the token limit")
    if not text:
        raise ReplyRefused("the answer was empty")
    block = _CODE_BLOCK.match(text)
    value = _parse(block.group(1) if block else text)
    unknown = sorted(set(value) - {"entries", "summary"})
    if unknown:
        raise ReplyRefused(f"the object has a key {unknown[0][:40]!r}, only entries and summary are known")
    entries, summary = value.get("entries"), value.get("summary", "")
    if not isinstance(entries, list):
        raise ReplyRefused("the object has no list named entries")
    if not isinstance(summary, str):
        raise ReplyRefused("the summary is not text")
    if len(entries) > MAX_ENTRIES:
        raise ReplyRefused(f"the answer has {len(entries)} entries, at most {MAX_ENTRIES}")
    mutations = [_mutation(entry, place) for place, entry in enumerate(entries, 1)]
    return Answer(mutations, " ".join(summary.split())[:200])


def _parse(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ReplyRefused("the answer is nested too deeply") from None
    except ValueError as error:
        place = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "the object"
        raise ReplyRefused(f"the answer is not one JSON object ({place}: {str(error).partition(':')[0]})") from None
    if not isinstance(value, dict):
        raise ReplyRefused(f"the answer is a JSON {type(value).__name__}, not an object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:40]!r} is there twice")
        found[key] = value
    return found


def _mutation(entry: Any, place: int) -> Mutation:
    if not isinstance(entry, Mapping):
        raise ReplyRefused(f"entry {place} is not an object")
    unknown = sorted(set(entry) - _FIELDS)
    if unknown:
        raise ReplyRefused(f"entry {place} has a field {unknown[0][:40]!r} (fields: op, id, kind, text)")
    for field in _FIELDS & set(entry):
        if not isinstance(entry[field], str) and not (field == "text" and entry[field] is None):
            raise ReplyRefused(f"entry {place}: {field} is not text")
    if entry.get("op") not in ("create", "update", "remove"):
        raise ReplyRefused(f"entry {place}: op is none of create, update, remove")
    if not entry.get("id"):
        raise ReplyRefused(f"entry {place} has no id")
    found: Mutation = {"op": entry["op"], "id": entry["id"]}
    if entry.get("kind"):
        found["kind"] = entry["kind"]
    if entry["op"] == "remove":
        return found
    if not entry.get("kind"):
        raise ReplyRefused(f"entry {place} has no kind")
    if not (entry.get("text") or "").strip():
        raise ReplyRefused(f"entry {place} has no text")
    found["config"] = _config(entry["kind"], entry["id"], entry["text"], place)
    return found


def _config(kind: str, id: str, text: str, place: int) -> dict[str, Any]:
    if kind != "config":
        return {"text": text}
    try:
        data = json.loads(text)
    except ValueError:
        raise ReplyRefused(f"entry {place}: the text of a config entry is JSON") from None
    return {"target": id, "data": data}
