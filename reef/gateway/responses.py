"""OpenAI responses: facts of a request, the shapes of errors and of the receipt; the fold is `responses_fold`."""

from __future__ import annotations

from reef.engines.engine import RESPONSES
from reef.gateway import requests
from reef.gateway.chat import openai_error
from reef.gateway.dialect import Problem, ReplyFacts, RequestFacts, read_json_reply, session_in, short_text
from reef.gateway.lenient import dump, storable
from reef.gateway.named import ends, framed
from reef.gateway.reply_sketch import responses_sketch
from reef.gateway.responses_fold import ResponsesFold, reply_facts

_ENDS = frozenset({b"response.completed", b"response.incomplete", b"response.failed"})


class ResponsesDialect:
    """The wire format of `/v1/responses`."""

    name = RESPONSES
    route = "/responses"
    end_tokens: tuple[bytes, ...] = tuple(sorted(_ENDS))
    whole_end = True
    trainable = True

    def read_request(self, body: bytes) -> RequestFacts:
        request = requests.read_object(body, "input")
        model = request.get("model")
        conversation = request.get("input")
        return RequestFacts(
            model=storable(model) if isinstance(model, str) and model else None,
            lacks_model="model" not in request,
            stream=request.get("stream") is True,
            session=session_in(request),
            preview=requests.last_user_line(conversation),
            tools=requests.listed(request.get("tools")),
            system=requests.system_text(request.get("instructions")) or requests.first_system_text(conversation),
            max_tokens=requests.small_number(request.get("max_output_tokens")),
            follows=short_text(request.get("previous_response_id")),
        )

    def is_end(self, event: bytes) -> bool | None:
        return ends(event, _ENDS)

    def before_end(self, event: bytes) -> bool | None:
        return False

    def fold(self) -> ResponsesFold:
        return ResponsesFold()

    def read_reply(self, body: bytes) -> ReplyFacts:
        return read_json_reply(body, reply_facts, responses_sketch)

    def stand_in(self, body: bytes) -> bytes | None:
        return None

    def error_body(self, problem: Problem) -> bytes:
        return dump({"error": openai_error(problem)})

    def error_event(self, problem: Problem) -> bytes:
        # Some clients read the event's own members, others look for an error in any event.
        error = openai_error(problem)
        said = {"code": problem.code, "message": problem.message, "param": None}
        return framed("error", {"type": "error", **said, "sequence_number": 0, "error": error})
