"""Anthropic messages and their token count: facts of a request, the shapes of errors and of the receipt.

The fold is `messages_fold`.
"""

from __future__ import annotations

from typing import Any

from reef.engines.engine import MESSAGES
from reef.gateway import requests
from reef.gateway.dialect import Problem, ReplyFacts, RequestFacts, count, error_message, read_json_reply, session_in
from reef.gateway.estimate import tokens_at_most
from reef.gateway.lenient import dump, storable
from reef.gateway.messages_fold import MessagesFold, reply_facts
from reef.gateway.named import ends, framed
from reef.gateway.reply_sketch import messages_sketch

_ENDS = frozenset({b"message_stop"})
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "invalid_request_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""Anthropic's word for what went wrong, by HTTP status; everything else is `api_error`."""


class MessagesDialect:
    """The wire format of `/v1/messages`."""

    name = MESSAGES
    route = "/messages"
    end_tokens: tuple[bytes, ...] = tuple(_ENDS)
    whole_end = True
    trainable = True

    def read_request(self, body: bytes) -> RequestFacts:
        request = requests.read_object(body, "messages")
        model = request.get("model")
        return RequestFacts(
            model=storable(model) if isinstance(model, str) and model else None,
            lacks_model="model" not in request,
            stream=request.get("stream") is True,
            session=session_in(request),
            preview=requests.last_user_line(request.get("messages")),
            tools=requests.listed(request.get("tools")),
            system=requests.system_text(request.get("system")),
            max_tokens=requests.small_number(request.get("max_tokens")),
        )

    def is_end(self, event: bytes) -> bool | None:
        return ends(event, _ENDS)

    def before_end(self, event: bytes) -> bool | None:
        return False

    def fold(self) -> MessagesFold:
        return MessagesFold()

    def read_reply(self, body: bytes) -> ReplyFacts:
        return read_json_reply(body, reply_facts, messages_sketch)

    def stand_in(self, body: bytes) -> bytes | None:
        return None

    def error_body(self, problem: Problem) -> bytes:
        return dump(_error(problem))

    def error_event(self, problem: Problem) -> bytes:
        return framed("error", _error(problem))


class TokenCountDialect(MessagesDialect):
    """The wire format of `/v1/messages/count_tokens`: the same request, and a number as reply."""

    route = "/messages/count_tokens"
    trainable = False

    def read_reply(self, body: bytes) -> ReplyFacts:
        return read_json_reply(body, _count_facts, messages_sketch)

    def stand_in(self, body: bytes) -> bytes | None:
        return dump({"input_tokens": tokens_at_most(body)})


def _count_facts(reply: dict[str, Any], body: bytes) -> ReplyFacts:
    facts = ReplyFacts(body=body, ended=True)
    if reply.get("error"):
        facts.error = error_message(reply)
        return facts
    facts.prompt_tokens = count(reply.get("input_tokens"))
    if facts.prompt_tokens is not None:
        facts.preview = f"{facts.prompt_tokens} tokens"
    return facts


def _error(problem: Problem) -> dict[str, Any]:
    kind = _KINDS.get(problem.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": problem.message}}
