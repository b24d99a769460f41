"""The line in which a record or a report leaves one home and comes into another.

An envelope is `{"agent_record_id", "request_type", "payload"}` and nothing else. The payload of a record is its request
with two members behind it: `reef`, what is known of the call, and `response`. Both bodies stand there byte for byte
where a line can hold them so; where it cannot (no object, line breaks between the values, bytes that are no text, names
of its own that are `reef` or `response`), they stand inside `reef`, as one string.
"""

from __future__ import annotations

import base64
import json
from typing import Any

FORMAT = "reef-record/1"
"""What the `reef` member of a payload says of itself; another one is part of the request."""

TRANSCRIPT = "transcript:"
"""What the origin of a record begins with that was made from an agent's own session file."""

CALL_FACTS: dict[str, type | tuple[type, ...]] = {
    "scenario": str,
    "session": str,
    "dialect": str,
    "route": str,
    "model": str,
    "streaming": bool,
    "state": str,
    "source": str,
    "adapter": str,
    "version": int,
    "engine": str,
    "load_id": str,
    "status": int,
    "error": str,
    "started_at": str,
    "first_byte_ms": (int, float),
    "duration_ms": (int, float),
    "prompt_tokens": int,
    "completion_tokens": int,
    "cached_tokens": int,
    "expected_tokens": int,
    "prompt_cut": bool,
    "finish_reason": str,
    "side_call": bool,
    "preview": str,
    "answer_preview": str,
    "redactions": int,
    "trainable": bool,
    "follows": str,
    "reply_name": str,
    "tags": dict,
    "notes": dict,
    "attempts": list,
    "origin": str,
    "pruned_at": str,
    "cwd": str,
    "title": str,
}
"""What `reef` says of a call, each with its type; any may be null. What is left out is read from the bodies."""

REPORT_FACTS: dict[str, type | tuple[type, ...]] = {
    "scenario": str,
    "source": str,
    "session": str,
    "created_at": str,
    "withdrawn_at": str,
    "revised_at": str,
    "revisions": list,
}

BODIES = ("request", "response", "raw")
"""What `reef` may hold of a call besides its facts: a body as `{"text"}` or `{"base64"}`, or of one that is not stored
any more `{"bytes", "hash"}`."""


def write_call(receipt: str, facts: dict[str, Any], bodies: dict[str, bytes | dict[str, Any] | None]) -> bytes:
    """The envelope of a call. `facts`: by the names of `CALL_FACTS`; `bodies`: by those of `BODIES`.

    A body that is not stored any more is given as `{"bytes", "hash"}`.
    """
    head = {"format": FORMAT} | facts
    request, response = bodies.get("request"), bodies.get("response")
    if not (isinstance(request, bytes) and _fits_as_request(request)):
        head["request"] = None if request is None else _inside(request)
        request = b"{}"
    if response is not None and not (isinstance(response, bytes) and _fits(response)):
        head["response"] = _inside(response)
        response = None
    if (raw := bodies.get("raw")) is not None:
        head["raw"] = _inside(raw)
    start = request[:-1]
    pieces = [
        b'{"agent_record_id":"', receipt.encode(), b'","request_type":"inference","payload":', start,
        b"," if start.strip() != b"{" else b"", b'"reef":', _dump(head),
    ]  # fmt: skip
    if isinstance(response, bytes):
        pieces += [b',"response":', response]
    return b"".join((*pieces, b"}}"))


def write_report(report: str, said: dict[str, Any], facts: dict[str, Any]) -> bytes:
    """The envelope of a report: what it says, and `facts` by the names of `REPORT_FACTS`."""
    payload = said | {"reef": {"format": FORMAT} | facts}
    return _dump({"agent_record_id": report, "request_type": "report", "payload": payload})


def body_inside(value: Any) -> bytes | None:
    """The bytes of a body that stands inside `reef`; None for one that is not stored any more. Raises ValueError."""
    if isinstance(value, dict):
        if isinstance(text := value.get("text"), str):
            return text.encode()
        if isinstance(coded := value.get("base64"), str):
            return base64.b64decode(coded, validate=True)
        if isinstance(value.get("bytes"), int) and isinstance(value.get("hash"), str):
            return None
    raise ValueError("a body must be {text}, {base64} or {bytes, hash}")


def _inside(body: bytes | dict[str, Any]) -> dict[str, Any]:
    if isinstance(body, dict):
        return body
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _fits_as_request(body: bytes) -> bool:
    """Whether a request can be had back exactly from a payload that goes on behind its last member."""
    if body[:1] != b"{" or body[-1:] != b"}" or b'"reef"' in body or b'"response"' in body:
        return False
    return _fits(body)


def _fits(body: bytes) -> bool:
    """Whether a body may stand in a line as it is: one JSON value that fills it, in UTF-8 and without line breaks."""
    if not body or b"\n" in body or b"\r" in body or body[:1].isspace() or body[-1:].isspace():
        return False
    try:
        check_json(body)
    except ValueError:
        return False
    return True


def check_json(text: bytes) -> None:
    """Raises ValueError when `text` is not JSON in UTF-8. NaN and numbers of any length pass."""
    try:
        _LENIENT.decode(text.decode())
    except RecursionError:
        raise ValueError("nested too deep") from None


def _nothing(text: str) -> None:
    return None


_LENIENT = json.JSONDecoder(parse_int=_nothing, parse_float=_nothing)
"""Reads whole numbers of any length, which the plain one refuses beyond some thousand digits."""


def _dump(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair can only be written escaped.
        return json.dumps(value, separators=(",", ":")).encode()
