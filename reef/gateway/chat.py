"""OpenAI chat completions: facts of a request, the fold of a stream, the shapes of errors and of the receipt."""

from __future__ import annotations

import re
from typing import Any

from reef.engines.engine import CHAT
from reef.errors import InvalidInput
from reef.gateway.chat_fold import ChatFold, message_text, reply_facts
from reef.gateway.chat_sketch import reply_sketch, request_sketch
from reef.gateway.dialect import Problem, ReplyFacts, RequestFacts, first_line, session_in
from reef.gateway.lenient import dump, parse, storable
from reef.gateway.sse import first_data

SCAN_ABOVE = 4 * 1024 * 1024
"""Bodies over this size are not parsed as a whole."""
_PIECE = 1024 * 1024
_DONE = b"[DONE]"
_CLOSE = re.compile(rb"[ \t\r\n]*\}")


class ChatDialect:
    """The wire format of `/v1/chat/completions`."""

    name = CHAT
    route = "/chat/completions"
    end_tokens: tuple[bytes, ...] = (_DONE,)

    def read_request(self, body: bytes) -> RequestFacts:
        try:
            if len(body) > SCAN_ABOVE:
                return _facts(request_sketch(body))
            request = parse(body)
        except ValueError:
            raise InvalidInput("the request's body is not JSON") from None
        if not isinstance(request, dict):
            raise InvalidInput("the request's body is not a JSON object")
        return _facts(request)

    def with_model(self, body: bytes, model: str) -> bytes:
        start = body.index(b"{") + 1
        more = not _CLOSE.match(body, start)
        # Small pieces and one join: a copy of all at once would keep every other thread waiting.
        rest = [body[place : place + _PIECE] for place in range(start, len(body), _PIECE)]
        return b"".join((body[:start], b'"model":', dump(model), b"," if more else b"", *rest))

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
            reply = reply_sketch(body) if len(body) > SCAN_ABOVE else parse(body)
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
