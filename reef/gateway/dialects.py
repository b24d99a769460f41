"""The wire formats that reef speaks, by name and by path."""

from __future__ import annotations

from collections.abc import Callable

from reef.gateway import chat_fold, messages_fold, responses_fold
from reef.gateway.chat import ChatDialect
from reef.gateway.dialect import Dialect
from reef.gateway.messages import MessagesDialect, TokenCountDialect
from reef.gateway.responses import ResponsesDialect

CHAT_DIALECT = ChatDialect()
RESPONSES_DIALECT = ResponsesDialect()
MESSAGES_DIALECT = MessagesDialect()
TOKEN_COUNT_DIALECT = TokenCountDialect()

DIALECT_OF: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (CHAT_DIALECT, RESPONSES_DIALECT, MESSAGES_DIALECT)
}
"""By the name that an engine lists."""

_BODY_OF_TEXT: dict[str, Callable[[bytes], bytes]] = {
    RESPONSES_DIALECT.name: responses_fold.body_of_text,
    MESSAGES_DIALECT.name: messages_fold.body_of_text,
}


def dialect_of_path(path: str) -> Dialect | None:
    """The dialect whose clients use `path`, also below `/s/<scenario>`; None for a path outside the model API."""
    if path.startswith("/s/"):
        place = path.find("/v1/", 3)
        path = path[place:] if place > 0 else ""
    if not path.startswith("/v1/"):
        return None
    if path.startswith("/v1/messages"):
        return MESSAGES_DIALECT
    return RESPONSES_DIALECT if path.startswith("/v1/responses") else CHAT_DIALECT


def body_of_text(dialect: str, text: bytes) -> bytes:
    """A reply in the shape of `dialect` that holds what was flushed of a stream before reef ended."""
    return _BODY_OF_TEXT.get(dialect, chat_fold.body_of_text)(text)
