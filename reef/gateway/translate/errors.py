"""Errors of an upstream in the words and the shape of the client's dialect.

| status | OpenAI `type` | Anthropic `type` |
|---|---|---|
| 400 | invalid_request_error | invalid_request_error |
| 401 | authentication_error | authentication_error |
| 403 | permission_error | permission_error |
| 404 | not_found_error | not_found_error |
| 409 | conflict_error | invalid_request_error |
| 413 | request_too_large | request_too_large |
| 429 | rate_limit_error | rate_limit_error |
| 529 | overloaded_error | overloaded_error |
| other | server_error | api_error |

The status itself and `retry-after` pass through untouched; they are no matter of the body.
"""

from __future__ import annotations

from typing import Any

from reef.engines.engine import MESSAGES
from reef.gateway.dialect import OPENAI_KINDS, error_message
from reef.gateway.lenient import parse
from reef.gateway.translate.hub import Json
from reef.gateway.translate.reply import Failure

_MORE_KINDS = {422: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error"}
_STATUS_OF_KIND = {kind: status for status, kind in {**OPENAI_KINDS, **_MORE_KINDS}.items() if status not in (415, 422)}
"""What a word for an error inside a stream, which has no status, would have been as one."""
_MORE_WORDS = {"rate_limit_exceeded": 429, "insufficient_quota": 429, "api_error": 500, "server_error": 500}


def kind_of(status: int, dialect: str) -> str:
    """A dialect's word for an error of this status."""
    if status == 409 and dialect == MESSAGES:
        return "invalid_request_error"
    known = _MORE_KINDS.get(status) or OPENAI_KINDS.get(status)
    return known or ("api_error" if dialect == MESSAGES else "server_error")


def failure_of(body: Json) -> Failure:
    """The error that a body or an event of any dialect holds."""
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    kind, code = error.get("type"), error.get("code")
    status = 502
    for word in (kind, code):
        if isinstance(word, str):
            status = _STATUS_OF_KIND.get(word) or _MORE_WORDS.get(word) or status
        elif isinstance(word, int) and 400 <= word < 600:
            status = word
    return Failure(error_message(body), kind if isinstance(kind, str) else "", status)


def error_object(failure: Failure, dialect: str) -> Json:
    """A failure as the whole error body of a dialect; also its error event, but for responses."""
    kind = kind_of(failure.status, dialect)
    if dialect == MESSAGES:
        return {"type": "error", "error": {"type": kind, "message": failure.message}}
    return {"error": {"message": failure.message, "type": kind, "param": None, "code": None}}


def error_reply(client: str, status: int, body: bytes) -> Json:
    """An upstream's error reply, of any dialect or none, as the body for a client of dialect `client`.

    OpenAI's `param` and `code` are kept for its clients.
    """
    found = _parsed(body)
    failure = Failure(_message(found, body), status=status)
    reply = error_object(failure, client)
    error = found.get("error")
    if client != MESSAGES and isinstance(error, dict):
        for name in ("param", "code"):
            if isinstance(error.get(name), str | int):
                reply["error"][name] = error[name]
    return reply


def _parsed(body: bytes) -> Json:
    try:
        found = parse(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _message(found: Json, body: bytes) -> str:
    if found.get("error"):
        return error_message(found)
    said: Any = found.get("message") or found.get("detail")
    if isinstance(said, str) and said:
        return said[:500]
    return body[:500].decode("utf-8", "replace").strip() or "the model server reports an error and says no more"
