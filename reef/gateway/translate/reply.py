"""A reply between the dialects: what a server says, piece by piece, and in which order a client is told.

A reader (`reply_from_*.py`) turns what an upstream sends into *words*: plain facts, in the order in which they come. A
`Flow` puts them into blocks, one after the other, and a writer (`reply_to_*.py`) tells the client of them in its own
dialect. A whole reply is the same words at once, so a stream and a whole reply cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from reef.gateway.translate.hub import Json, is_complete

Finish = Literal["stop", "length", "tool_calls", "content_filter"]
Kind = Literal["text", "refusal", "reasoning", "call"]


@dataclass(slots=True)
class Usage:
    """Tokens of one reply."""

    input: int = 0
    """Of the whole prompt, cached ones too."""
    output: int = 0
    cached: int = 0
    """Of the prompt, read from a cache."""
    written: int = 0
    """Of the prompt, written to a cache."""
    reasoning: int = 0
    """Of the output, spent on reasoning."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The reply has begun."""

    model: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """The next piece of a text, a refusal or reasoning."""

    text: str
    kind: Literal["text", "refusal", "reasoning"] = "text"
    seal: str | None = None
    """For reasoning; the last one that is not None counts."""


@dataclass(frozen=True, slots=True)
class Pause:
    """What comes next of reasoning is another block of it."""


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call has begun, or its id or name is known now."""

    key: Any
    """What the upstream calls it while it streams."""
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The next piece of a tool call's arguments."""

    key: Any
    text: str


@dataclass(frozen=True, slots=True)
class End:
    """The reply is whole."""

    finish: Finish
    usage: Usage | None = None
    stop_sequence: str | None = None
    """The stop sequence that ended it, when the server names one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The server reports an error instead of more of the reply."""

    message: str
    kind: str = ""
    """Its own word for it."""
    status: int = 502


Word: TypeAlias = Begin | Said | Pause | Called | Arguments | End | Failure


@dataclass(slots=True)
class Block:
    """One stretch of a reply: a text, a refusal, reasoning, or a tool call."""

    index: int
    kind: Kind
    id: str = ""
    name: str = ""
    seal: str | None = None
    key: Any = None
    pieces: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """Pieces that the client has not been told."""
    checked: int = -1
    """How many pieces there were when the arguments were last found incomplete."""
    cut: bool = False
    """Whether the reply ended in the middle of it: at a limit or a filter, or with arguments that are no object."""

    @property
    def text(self) -> str:
        """Everything said in it; the arguments of a call."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a writer has to know beside the reply."""

    receipt: str
    """Names the reply and everything in it: 32 hex digits."""
    created: int
    """When the call came, Unix seconds."""
    request: Mapping[str, Any]
    """The client's own request."""

    def model(self, upstream: str | None) -> str:
        """The model's name: the server's word, else the client's."""
        named = self.request.get("model")
        return upstream or (named if isinstance(named, str) else "")


class Reader(Protocol):
    """Reads what an upstream sends."""

    def whole(self, reply: Json) -> list[Word]:
        """A whole reply."""

    def take(self, event: Json, name: str = "") -> list[Word]:
        """One event of a stream; `name` as its SSE field says."""

    def done(self) -> list[Word]:
        """The end of a reply that ends by a mark that is no JSON, or by nothing; empty when it is not whole."""


class Writer(Protocol):
    """Tells a client. Every method returns the events of a stream; `whole` is the reply that they add up to."""

    def begin(self, model: str | None) -> list[Json]: ...

    def open(self, block: Block) -> list[Json]: ...

    def piece(self, block: Block, text: str) -> list[Json]: ...

    def close(self, block: Block) -> list[Json]: ...

    def end(self, end: End) -> list[Json]: ...

    def fail(self, failure: Failure) -> list[Json]: ...

    def whole(self) -> Json: ...


class Flow:
    """Puts words into blocks and tells them to a writer one block after the other.

    Servers mix the pieces of several tool calls; clients want one block finished before the next. The first block that
    is not finished is told as it comes, the others wait. A call is finished when another block has begun and its
    arguments are a whole JSON object, everything else when another block has begun; at the end all are.
    """

    def __init__(self, writer: Writer, receipt: str) -> None:
        self._writer = writer
        self._receipt = receipt
        self._blocks: list[Block] = []
        self._live = 0
        self._opened = False
        self._begun = False
        self._paused = False
        self._calls: dict[Any, Block] = {}
        self._broken = False
        """Whether the reply ended with a call whose arguments are no JSON object."""
        self._ids: set[str] = set()
        self.ended = False
        """Whether the client has been told that the reply is whole."""
        self.failure: Failure | None = None
        """What the server reported instead."""
        self.usage: Usage | None = None
        """What the server counted, known at the end; not every client is told."""

    def tell(self, words: list[Word]) -> list[Json]:
        """The client's events for some words. Nothing follows an end or a failure."""
        events: list[Json] = []
        for word in words:
            if self.ended or self.failure:
                break
            if isinstance(word, Failure):
                self.failure = word
                events += self._writer.fail(word)
                continue
            if not self._begun:
                self._begun = True
                events += self._writer.begin(word.model if isinstance(word, Begin) else None)
            events += self._take(word)
        return events

    def _take(self, word: Word) -> list[Json]:
        if isinstance(word, Said):
            return self._said(word)
        if isinstance(word, Called):
            return self._called(word)
        if isinstance(word, Arguments):
            block = self._calls.get(word.key) or self._begin_call(word.key, "", "")
            return self._add(block, word.text)
        if isinstance(word, Pause):
            self._paused = True
        if isinstance(word, End):
            return self._end(word)
        return []

    def _said(self, word: Said) -> list[Json]:
        last = self._blocks[-1] if self._blocks else None
        if last is None or last.kind != word.kind or (self._paused and last.kind == "reasoning"):
            if not word.text and not word.seal:
                return []
            last = self._begin(Block(len(self._blocks), word.kind))
        self._paused = False
        last.seal = word.seal if word.seal is not None else last.seal
        return self._add(last, word.text)

    def _called(self, word: Called) -> list[Json]:
        block = self._calls.get(word.key)
        if block is None:
            return self._add(self._begin_call(word.key, word.id, word.name), "")
        # A server that repeats id and name with every piece does not mean them twice.
        block.name = block.name or word.name
        return self._advance()

    def _begin_call(self, key: Any, call_id: str, name: str) -> Block:
        if not call_id or call_id in self._ids:
            call_id = f"call_{self._receipt[:24]}_{len(self._blocks)}"
        self._ids.add(call_id)
        self._calls[key] = Block(len(self._blocks), "call", call_id, name, key=key)
        return self._begin(self._calls[key])

    def _begin(self, block: Block) -> Block:
        self._blocks.append(block)
        return block

    def _add(self, block: Block, text: str) -> list[Json]:
        if block.index < self._live:
            # Only a call is ever finished early, and only when its arguments were whole.
            return []
        if text:
            block.pieces.append(text)
            block.waiting.append(text)
        return self._advance()

    def _advance(self) -> list[Json]:
        """Tell what waits, block after block, as far as they are finished."""
        events: list[Json] = []
        while self._live < len(self._blocks):
            block = self._blocks[self._live]
            if not self._opened:
                if block.kind == "call" and not block.name and block is self._blocks[-1]:
                    break
                self._opened = True
                events += self._writer.open(block)
            for text in block.waiting:
                events += self._writer.piece(block, text)
            block.waiting.clear()
            if block is self._blocks[-1] or not _finished(block):
                break
            events += self._close(block)
        return events

    def _close(self, block: Block) -> list[Json]:
        self._live += 1
        self._opened = False
        return self._writer.close(block)

    def _end(self, word: End) -> list[Json]:
        events: list[Json] = []
        for block in self._blocks[self._live :]:
            if not self._opened:
                self._opened = True
                events += self._writer.open(block)
            block.cut = word.finish in ("length", "content_filter") and block is self._blocks[-1]
            if block.kind == "call" and not block.text.strip():
                block.pieces = block.waiting = ["{}"]
            if block.kind == "call" and not is_complete(block.text):
                block.cut = self._broken = True
            for text in block.waiting:
                events += self._writer.piece(block, text)
            events += self._close(block)
        self.ended = True
        self.usage = word.usage
        return events + self._writer.end(replace(word, finish=self._agreed(word.finish)))

    def _agreed(self, finish: Finish) -> Finish:
        """Why the reply ended, agreed with what is in it: whole calls raise `stop`, and nothing else is changed."""
        if finish == "stop" and self._calls and not self._broken:
            return "tool_calls"
        return "stop" if finish == "tool_calls" and not self._calls else finish


def _finished(block: Block) -> bool:
    if block.kind != "call":
        return True
    if block.checked == len(block.pieces):
        return False
    if is_complete(block.text):
        return True
    block.checked = len(block.pieces)
    return False


def place(value: Any) -> int | str | None:
    """What a server counts or names a part of a reply by; None for anything else."""
    return value if isinstance(value, int | str) else None


def count(value: Any) -> int:
    """A number of tokens; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
