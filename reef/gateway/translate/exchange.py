"""One call whose client and upstream speak different dialects: its request, its reply or its stream, translated."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from urllib.parse import quote

from reef.engines.engine import CHAT, MESSAGES, RESPONSES
from reef.errors import InvalidInput, UpstreamFailed
from reef.gateway.lenient import dump
from reef.gateway.named import framed
from reef.gateway.sse import Event, EventReader
from reef.gateway.translate import (
    effort,
    request_from_chat,
    request_from_messages,
    request_from_responses,
    request_to_chat,
    request_to_messages,
    request_to_responses,
)
from reef.gateway.translate.compat import Compat
from reef.gateway.translate.fields import CLIENT_NAMES
from reef.gateway.translate.hub import CannotCarry, Json, exact
from reef.gateway.translate.reply import Failure, Flow, Reader, Setting, Usage, Word, Writer
from reef.gateway.translate.reply_from_chat import ChatReader
from reef.gateway.translate.reply_from_messages import MessagesReader
from reef.gateway.translate.reply_from_responses import ResponsesReader
from reef.gateway.translate.reply_to_chat import ChatWriter
from reef.gateway.translate.reply_to_messages import MessagesWriter
from reef.gateway.translate.reply_to_responses import ResponsesWriter
from reef.gateway.translate.request_from_messages import Read

PREFERRED = {
    CHAT: (CHAT, RESPONSES, MESSAGES),
    RESPONSES: (RESPONSES, CHAT, MESSAGES),
    MESSAGES: (MESSAGES, RESPONSES, CHAT),
}
"""For a client's dialect, the upstream's to take, best first: its own, then the one that keeps most of the request."""

UPSTREAM_HEADERS: dict[str, dict[str, str]] = {MESSAGES: {"anthropic-version": "2023-06-01"}}
"""Headers that an upstream of a dialect needs and a client of another does not send."""

_READ: dict[str, Callable[[Json], Read]] = {
    CHAT: request_from_chat.read,
    RESPONSES: request_from_responses.read,
    MESSAGES: request_from_messages.read,
}
_READERS: dict[str, Callable[[], Reader]] = {CHAT: ChatReader, RESPONSES: ResponsesReader, MESSAGES: MessagesReader}
_WRITERS: dict[str, Callable[[Setting], Writer]] = {
    CHAT: ChatWriter,
    RESPONSES: ResponsesWriter,
    MESSAGES: MessagesWriter,
}
_DONE = b"[DONE]"
_NOTE_BYTES = 1024
"""The longest note in a header; the record names everything."""


def choices(client: str, upstream: Collection[str]) -> list[str]:
    """The dialects in which an upstream that speaks `upstream` can be asked, best first; the client's own needs no
    translation.
    """
    return [dialect for dialect in PREFERRED[client] if dialect in upstream]


class StreamTranslator:
    """Translates the events of one stream, each a whole JSON object."""

    def __init__(self, reader: Reader, writer: Writer, receipt: str) -> None:
        self._reader = reader
        self._flow = Flow(writer, receipt)

    def take(self, event: Json, name: str = "") -> list[Json]:
        """The client's events for one of the upstream's; `name` is its SSE event field, empty without one."""
        return self._flow.tell(self._reader.take(event, name))

    def whole(self, reply: Json) -> list[Json]:
        """All events of the client's for a reply that came as one body although a stream was asked for."""
        return self._flow.tell(self._reader.whole(reply))

    def unreadable(self) -> list[Json]:
        """The client's events for one of the upstream's that is no JSON object: what it said is lost."""
        return self._flow.tell([Failure("a part of the model server's stream could not be read")])

    def done(self) -> list[Json]:
        """The client's last events when the upstream has said `[DONE]` or has closed; none when its reply is not whole,
        or when they have been given."""
        return self._flow.tell(self._reader.done())

    @property
    def ended(self) -> bool:
        """Whether the client has its dialect's normal end. A stream that stops without it was cut, and the client must
        be told so with its dialect's error event."""
        return self._flow.ended

    @property
    def failure(self) -> Failure | None:
        """The error that the upstream reported inside the stream, and that the client has been told."""
        return self._flow.failure

    @property
    def usage(self) -> Usage | None:
        """What the upstream counted, after the end; a chat client that did not ask for it has not been told."""
        return self._flow.usage


class StreamBridge:
    """The same from bytes to bytes: pieces of the upstream's stream in, whole framed events of the client's out."""

    def __init__(self, client: str, translator: StreamTranslator) -> None:
        self._client = client
        self._translator = translator
        self._events = EventReader()
        self._closed = False

    def feed(self, piece: bytes) -> bytes:
        """What the client gets for the next bytes; empty while no event is complete."""
        return b"".join(self._take(event) for event in self._events.feed(piece))

    def finish(self) -> bytes:
        """The same for the end of the upstream's stream."""
        # An event that no blank line has ended may be half of one: then the stream was cut, not spoilt.
        rest = b"".join(self._take(event) for event in self._events.finish() if _value(event.data.strip()) is not None)
        return rest + self._framed(self._translator.done())

    def whole(self, reply: Json) -> bytes:
        """As for `StreamTranslator`."""
        return self._framed(self._translator.whole(reply))

    @property
    def ended(self) -> bool:
        """As for `StreamTranslator`."""
        return self._translator.ended

    @property
    def failure(self) -> Failure | None:
        """As for `StreamTranslator`."""
        return self._translator.failure

    @property
    def usage(self) -> Usage | None:
        """As for `StreamTranslator`."""
        return self._translator.usage

    @property
    def over(self) -> bool:
        """Whether the client has been told an end: the normal one, or the upstream's error."""
        return self.ended or self.failure is not None

    def _take(self, event: Event) -> bytes:
        data = event.data.strip()
        if data == _DONE:
            return self._framed(self._translator.done())
        if not data:
            # Some servers keep a connection alive with events of no content.
            return b""
        value = _value(data)
        if value is None:
            return self._framed(self._translator.unreadable())
        return self._framed(self._translator.take(value, event.name))

    def _framed(self, events: list[Json]) -> bytes:
        framed = b"".join(frame(self._client, event) for event in events)
        if self._client == CHAT and self._translator.ended and not self._closed:
            self._closed = True
            framed += b"data: " + _DONE + b"\n\n"
        return framed


def _value(data: bytes) -> Json | None:
    """The object that an event's data is; None when it is none."""
    try:
        value = exact(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def frame(dialect: str, event: Json) -> bytes:
    """One event of a stream as a dialect's server sends it."""
    if dialect == CHAT:
        return b"data: " + dump(event) + b"\n\n"
    return framed(str(event["type"]), event)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A translated request, and how to translate what comes back."""

    client: str
    upstream: str
    body: Json
    """What to send to the upstream."""
    tools_left: tuple[str, ...]
    """Tools that are not carried."""
    fields_left: tuple[str, ...]
    """Fields that are not carried either: those that reef does not know, and those that the upstream has no place for
    though they ask for something."""
    setting: Setting

    def note(self) -> str:
        """What was translated and what was left out, as the value of a header."""
        found = [f"{self.client} to {self.upstream}"]
        for name, left in (("tools-left-out", self.tools_left), ("fields-left-out", self.fields_left)):
            if left:
                found.append(f"{name}=" + ",".join(quote(one[:80], safe=":.[]", errors="replace") for one in left[:50]))
        said = "; ".join(found)
        return said if len(said) <= _NOTE_BYTES else said[:_NOTE_BYTES].rpartition(",")[0] + ",..."

    def reply(self, reply: Json) -> Json:
        """A whole reply of the upstream as one of the client's dialect.

        Raises UpstreamFailed when it is an error or no reply.
        """
        writer = _WRITERS[self.client](self.setting)
        flow = Flow(writer, self.setting.receipt)
        words: list[Word] = _READERS[self.upstream]().whole(reply)
        flow.tell(words)
        if flow.failure is not None:
            raise UpstreamFailed(flow.failure.message)
        return writer.whole()

    def stream(self) -> StreamTranslator:
        """A translator for the upstream's stream."""
        return StreamTranslator(_READERS[self.upstream](), _WRITERS[self.client](self.setting), self.setting.receipt)

    def bridge(self) -> StreamBridge:
        """The same for its bytes."""
        return StreamBridge(self.client, self.stream())


def translate(
    client: str, upstream: str, body: Json, *, receipt: str, created: int, compat: Compat | None = None
) -> Exchange:
    """Translate a request of the dialect `client` for an upstream that speaks `upstream`, another one.

    `receipt` names the reply and everything in it, `created` is the time of the call in Unix seconds. `body` is not
    changed. Raises InvalidInput (400) naming the field that cannot be carried or is malformed.
    """
    compat = compat or Compat()
    read = _READ[client](body)
    hub, unknown = read.hub, list(read.fields_left)
    unknown += effort.settle(client, upstream, hub, body, compat)
    try:
        if upstream == CHAT:
            found = request_to_chat.write(hub, compat)
        else:
            write = request_to_messages.write if upstream == MESSAGES else request_to_responses.write
            found, more = write(hub)
            unknown += [CLIENT_NAMES[client].get(name, name) for name in more]
    except CannotCarry as error:
        raise CannotCarry(CLIENT_NAMES[client].get(error.field, error.field), error.why) from None
    if not isinstance(found.get("model"), str):
        raise InvalidInput("`model` is not a text")
    setting = Setting(receipt, created, body)
    return Exchange(client, upstream, found, tuple(read.tools_left), tuple(unknown), setting)
