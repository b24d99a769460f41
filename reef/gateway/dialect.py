"""What a wire format must say of itself, so that one relay serves all of them.

A dialect reads copies: of the request to find out what it asks for, of the reply to fold it into one record. It makes
only three things that a client sees: errors of reef's own, the receipt in a stream, and a model name where a call has
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from multidict import istr

from reef.credentials import clean
from reef.errors import ReefError
from reef.gateway.lenient import parse, storable
from reef.gateway.scan import SCAN_ABOVE

PREVIEW_CHARACTERS = 2_000
"""More than a record keeps: it is cut again behind the filter, which knows no half of a credential."""
BROKEN_OFF = "the engine broke the reply off"
"""The error of a reply whose model did not come to an end because its engine stopped it."""

OPENAI_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    415: "invalid_request_error",
}
"""OpenAI's word for what went wrong, by HTTP status; everything else is `server_error`."""

SESSION_HEADERS = tuple(
    istr(name)
    for name in (
        "x-reef-session",
        "x-session-id",
        "x-claude-code-session-id",
        "session-id",
        "session_id",
        "x-session-affinity",
        "thread-id",
    )
)
"""Where clients name their session, first hit wins; the body comes after these."""


@dataclass(slots=True)
class RequestFacts:
    """What a request asks for, read from a copy of its body."""

    model: str | None
    """The model it names, None when it names none."""
    lacks_model: bool
    """Whether the field is not there at all; a null or empty one is the upstream's to judge."""
    stream: bool
    session: str | None
    """Session key found in the body."""
    preview: str
    """First line of the last user message."""
    tools: int
    """How many tools it offers."""
    system: str = ""
    """The beginning of its system prompt; empty for a very large request."""
    max_tokens: int | None = None
    """The longest reply that it takes."""
    follows: str | None = None
    """The server's name of an earlier reply that it goes on from without repeating the conversation."""


@dataclass(slots=True)
class ReplyFacts:
    """What a reply says, read from a copy."""

    body: bytes | None = None
    """The reply as one JSON body; None when there was nothing to fold."""
    ended: bool = False
    """Whether the reply's own terminal mark has come; always True for a whole JSON body."""
    error: str | None = None
    """Message of an error that the reply holds."""
    finish_reason: str | None = None
    preview: str = ""
    """First line of the answer's text, or the tool calls."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    bad_arguments: tuple[str, ...] = ()
    """Names of the tools that are called with arguments that are not JSON."""
    name: str | None = None
    """The server's name of the reply, where a later request may go on from it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error of reef's own, before a dialect has given it its shape."""

    status: int
    message: str
    kind: str = "server_error"
    """OpenAI's word for it; other dialects map it."""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    hint: str | None = None
    """A command to paste; it is part of the message too."""


def problem_of(error: ReefError) -> Problem:
    """An error of reef's as a problem; the hint is part of the message because model clients show nothing else."""
    message = f"{error.message} (hint: {error.hint})" if error.hint else error.message
    kind = OPENAI_KINDS.get(error.http_status, "server_error")
    return Problem(error.http_status, message, kind, error.code, hint=error.hint)


class Fold(Protocol):
    """Collects a copy of a stream and folds it into one reply."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes as they came; cheap, nothing is parsed yet."""

    pending: int
    """Bytes taken whose text `catch_up` has not told yet."""

    def keep_up(self) -> None:
        """Parse what has come, without telling it: that stays for `catch_up`."""

    def catch_up(self) -> bytes:
        """Parse what is pending. Returns the text said since the last time, as UTF-8."""

    def facts(self, finished: bool = False) -> ReplyFacts:
        """What has come so far, folded. `finished`: no more will come, so the last event needs no blank line."""

    def ending(self, event: bytes, receipt: str) -> bytes:
        """What to send in place of the ending event's bytes so that they carry `receipt`. After `facts`."""


class Dialect(Protocol):
    """One wire format."""

    name: str
    """`chat`, `responses`, `messages`: what a record stores and an engine lists."""
    route: str
    """Path below the engine's base address: `/chat/completions`."""
    end_tokens: tuple[bytes, ...]
    """A stretch of whole events that holds none of these does not hold the ending event, nor one `before_end`."""
    whole_end: bool
    """Whether the ending event is needed whole, because the receipt goes into it."""
    trainable: bool
    """Whether a reply may become a training sample."""

    def read_request(self, body: bytes) -> RequestFacts:
        """Raises InvalidInput when the body is not a JSON object."""

    def is_end(self, event: bytes) -> bool | None:
        """Whether an event, perhaps unfinished, ends the stream; None while that is open."""

    def before_end(self, event: bytes) -> bool | None:
        """Whether an event, perhaps unfinished, gets the receipt where the ending one follows it; None while open."""

    def fold(self) -> Fold:
        """A new fold for one stream."""

    def read_reply(self, body: bytes) -> ReplyFacts:
        """The facts of a reply that is one JSON body; a body that is no JSON has no facts."""

    def stand_in(self, body: bytes) -> bytes | None:
        """An estimated reply to a request, for an upstream that lacks the route; None where none can be given."""

    def error_body(self, problem: Problem) -> bytes:
        """An error reply's JSON body."""

    def error_event(self, problem: Problem) -> bytes:
        """An error inside a stream, framed; no normal end follows."""


class Arguments:
    """Looks at the arguments of a reply's tool calls."""

    def __init__(self) -> None:
        self._bad: list[str] = []

    def check(self, name: Any, arguments: Any) -> None:
        """Note the call when its arguments, as JSON text or already read, are no object; no text at all means none."""
        good = arguments is None or isinstance(arguments, dict)
        if isinstance(arguments, str):
            try:
                text = arguments.strip().encode("utf-8", "surrogatepass")
                good = not text or isinstance(parse(text), dict)
            except ValueError:
                good = False
        if not good:
            self._bad.append(storable(str(name)[:64]))

    @property
    def bad(self) -> tuple[str, ...]:
        """The names of the tools of every call that was noted."""
        return tuple(self._bad)


def read_json_reply(
    body: bytes,
    read: Callable[[dict[str, Any], bytes], ReplyFacts],
    sketch: Callable[[bytes], dict[str, Any]],
) -> ReplyFacts:
    """The facts that `read` finds in a reply that is one JSON object; any other body is an error.

    Of a very large one `sketch` finds what `read` looks at, without parsing it.
    """
    try:
        reply = sketch(body) if len(body) > SCAN_ABOVE else parse(body)
    except ValueError:
        reply = None
    if not isinstance(reply, dict):
        return ReplyFacts(body=body or None, ended=True, error="the model server's reply is not a JSON object")
    return read(reply, body)


def error_message(reply: Mapping[str, Any]) -> str:
    """The message of an error in a reply or an event, whichever way it is put."""
    error = reply.get("error", reply)
    message = error.get("message") if isinstance(error, dict) else error
    # Cut behind the filter: half of a credential has no shape any more.
    found = clean(message[:5_000])[:500] if isinstance(message, str) else ""
    return found or "the model server reports an error"


def count(value: Any) -> int | None:
    """`value` when it is a whole number, as the counts of a usage are."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def short_text(value: Any, longest: int = 256) -> str | None:
    """`value` when it is a text that is neither empty nor longer than a name is."""
    return storable(value) if isinstance(value, str) and 0 < len(value) <= longest else None


def first_line(text: str) -> str:
    """The first line of `text` that is not blank, cut to the length of a preview."""
    # Cut before it is split: the text may be a whole file, and only its beginning is wanted.
    start = text[:20_000].lstrip()[:PREVIEW_CHARACTERS].splitlines()
    return storable(start[0].rstrip()) if start else ""


def calls_line(calls: Iterable[tuple[Any, Any]]) -> str:
    """Tool calls, each a name and its arguments, as the preview of a reply that says nothing else."""
    shown = " ".join(f"{name}({arguments})" for name, arguments in calls)
    return first_line(" ".join(shown.split()))


def session_from(headers: Mapping[str, str]) -> str | None:
    """The session key that a request's headers name, None when there is none."""
    for name in SESSION_HEADERS:
        value = headers.get(name)
        if value:
            return storable(value[:256])
    return None


def session_in(body: Mapping[str, Any]) -> str | None:
    """The session key that a request's body names: `metadata.user_id`, `prompt_cache_key`, `session_id`.

    A `user_id` may be JSON that holds the session's id beside the device's.
    """
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if isinstance(user, str) and user.startswith("{"):
        try:
            inside = parse(user.encode("utf-8", "surrogatepass"))
        except ValueError:
            inside = {}
        user = inside.get("session_id") or user if isinstance(inside, dict) else user
    for value in (
        user,
        body.get("prompt_cache_key"),
        body.get("session_id"),
    ):
        if isinstance(value, str) and value:
            return storable(value[:256])
    return None
