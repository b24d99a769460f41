"""OpenAI chat completions: facts of a request, the fold of a stream, the shapes of errors and of the receipt."""

from __future__ import annotations

from itertools import islice
from typing import Any

from reef.engines.engine import CHAT
from reef.errors import InvalidInput
from reef.gateway import scan
from reef.gateway.chat_fold import ChatFold, message_text, reply_facts
from reef.gateway.dialect import Problem, ReplyFacts, RequestFacts, first_line, session_in
from reef.gateway.lenient import dump, parse, storable
from reef.gateway.sse import first_data

SCAN_ABOVE = 4 * 1024 * 1024
"""Bodies over this size are not parsed as a whole."""
MESSAGES_MAX = 50_000
"""A very large request with more messages than this is not searched for its last one."""
_DONE = b"[DONE]"


class ChatDialect:
    """The wire format of `/v1/chat/completions`."""

    name = CHAT
    route = "/chat/completions"
    end_tokens: tuple[bytes, ...] = (_DONE,)

    def read_request(self, body: bytes) -> RequestFacts:
        try:
            if len(body) > SCAN_ABOVE:
                return _facts(_sketch(body))
            request = parse(body)
        except ValueError:
            raise InvalidInput("the request's body is not JSON") from None
        if not isinstance(request, dict):
            raise InvalidInput("the request's body is not a JSON object")
        return _facts(request)

    def with_model(self, body: bytes, model: str) -> bytes:
        start = body.index(b"{") + 1
        more = body[start:].lstrip(b" \t\r\n")[:1] != b"}"
        return b"".join((body[:start], b'"model":', dump(model), b"," if more else b"", body[start:]))

    def is_end(self, event: bytes) -> bool | None:
        found = first_data(event)
        if found is None:
            # Only a finished event without data is known not to be the last one.
            return False if event.endswith((b"\n\n", b"\r\r", b"\r\n\r\n")) else None
        data, complete = found
        if complete:
            return data.strip() == _DONE
        return None if _DONE.startswith(data.strip()) else False

    def fold(self) -> ChatFold:
        return ChatFold()

    def read_reply(self, body: bytes) -> ReplyFacts:
        try:
            reply = parse(body)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            return ReplyFacts(body=body or None, ended=True, error="the model server's reply is not a JSON object")
        return reply_facts(reply, body)

    def error_body(self, problem: Problem) -> bytes:
        return dump({"error": _error(problem)})

    def error_event(self, problem: Problem) -> bytes:
        return b"data: " + self.error_body(problem) + b"\n\n"


def _error(problem: Problem) -> dict[str, Any]:
    return {"message": problem.message, "type": problem.kind, "param": None, "code": problem.code}


def _facts(request: dict[str, Any]) -> RequestFacts:
    model = request.get("model")
    tools = request.get("tools")
    return RequestFacts(
        model=storable(model) if isinstance(model, str) and model else None,
        lacks_model="model" not in request,
        stream=request.get("stream") is True,
        session=session_in(request),
        preview=_last_user_line(request.get("messages")),
        tools=len(tools) if isinstance(tools, list) else 0,
    )


def _last_user_line(messages: Any) -> str:
    if isinstance(messages, list):
        for message in reversed(messages):
            if isinstance(message, dict) and message.get("role") == "user":
                return first_line(message_text(message.get("content")))
    return ""


def _sketch(body: bytes) -> dict[str, Any]:
    """The top level of a very large request with what `_facts` reads: small values and the last user message."""
    places = scan.members(body)
    names = ("model", "stream", "metadata", "prompt_cache_key", "session_id")
    request: dict[str, Any] = {name: scan.value(body, places[name]) for name in names if name in places}
    if "tools" in places and body[places["tools"][0]] == ord("["):
        request["tools"] = [None] * sum(1 for _ in scan.elements(body, places["tools"]))
    if "messages" in places and body[places["messages"][0]] == ord("["):
        spans = list(islice(scan.elements(body, places["messages"]), MESSAGES_MAX))
        request["messages"] = _last_user(body, spans) if len(spans) < MESSAGES_MAX else []
    return request


def _last_user(body: bytes, spans: list[scan.Span]) -> list[dict[str, Any]]:
    """The last user message, with as much of its text as a preview needs."""
    for start, _ in reversed(spans):
        if body[start] != ord("{"):
            continue
        message = scan.members(body, start)
        if scan.value(body, message.get("role")) != "user":
            continue
        content = message.get("content", (0, 0))
        if body[content[0]] == ord('"'):
            return [{"role": "user", "content": scan.beginning(body, content)}]
        if body[content[0]] == ord("["):
            parts = [scan.value(body, span) for span in scan.elements(body, content)]
            return [{"role": "user", "content": parts}]
        return []
    return []
