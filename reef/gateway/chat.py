"""OpenAI chat completions: facts of a request, the fold of a stream, the shapes of errors and of the receipt."""

from __future__ import annotations

from typing import Any

from reef.engines.engine import CHAT
from reef.gateway import requests
from reef.gateway.chat_fold import DONE, ChatFold, reply_facts
from reef.gateway.dialect import Problem, ReplyFacts, RequestFacts, read_json_reply, session_in
from reef.gateway.lenient import dump, parse, storable
from reef.gateway.reply_sketch import chat_sketch
from reef.gateway.sse import BLANK_LINE, first_data, parse_event


class ChatDialect:
    """The wire format of `/v1/chat/completions`."""

    name = CHAT
    route = "/chat/completions"
    end_tokens: tuple[bytes, ...] = (DONE, b'"usage":{', b'"usage": {')
    whole_end = False
    trainable = True

    def read_request(self, body: bytes) -> RequestFacts:
        request = requests.read_object(body, "messages")
        model = request.get("model")
        messages = request.get("messages")
        return RequestFacts(
            model=storable(model) if isinstance(model, str) and model else None,
            lacks_model="model" not in request,
            stream=request.get("stream") is True,
            session=session_in(request),
            preview=requests.last_user_line(messages),
            tools=requests.listed(request.get("tools")),
            system=requests.first_system_text(messages),
            max_tokens=requests.small_number(request.get("max_completion_tokens"), request.get("max_tokens")),
        )

    def is_end(self, event: bytes) -> bool | None:
        found = first_data(event)
        if found is None:
            # Only a finished event without data is known not to be the last one.
            return False if event.endswith((b"\n\n", b"\r\r", b"\r\n\r\n")) else None
        data, complete = found
        if complete:
            return data.strip() == DONE
        return None if DONE.startswith(data.strip()) else False

    def before_end(self, event: bytes) -> bool | None:
        """Whether an event holds the usage and nothing else.

        A client that keeps what the last chunk says of the usage would lose it to a chunk of reef's behind it, and one
        that adds up what the chunks say would count it twice if reef's said it again.
        """
        if b'"delta"' in event:
            return False
        if not BLANK_LINE.search(event):
            return None
        found = parse_event(event)
        try:
            chunk = parse(found.data) if found is not None else None
        except ValueError:
            return False
        return isinstance(chunk, dict) and chunk.get("choices") == [] and isinstance(chunk.get("usage"), dict)

    def fold(self) -> ChatFold:
        return ChatFold()

    def read_reply(self, body: bytes) -> ReplyFacts:
        return read_json_reply(body, reply_facts, chat_sketch)

    def stand_in(self, body: bytes) -> bytes | None:
        return None

    def error_body(self, problem: Problem) -> bytes:
        return dump({"error": openai_error(problem)})

    def error_event(self, problem: Problem) -> bytes:
        return b"data: " + self.error_body(problem) + b"\n\n"


def openai_error(problem: Problem) -> dict[str, Any]:
    """The error object of OpenAI's replies; reef's own clients read the hint."""
    found = {"message": problem.message, "type": problem.kind, "param": None, "code": problem.code}
    return found | {"hint": problem.hint} if problem.hint else found
