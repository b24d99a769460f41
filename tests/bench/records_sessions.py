"""Agent sessions as they go over the wire, for the bench of the records: every call repeats the whole conversation.

The text is prose and code that Python brings with it, so that it compresses as what agents send does. Three shapes:
`chat` as pi sends it, `messages` as Claude Code does, with a cache mark that moves along, `responses` as Codex does.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import difflib
import inspect
import json
import pathlib
import random
import tarfile
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pydoc_data.topics import topics
from typing import Any

import zstandard

Json = dict[str, Any]

DIALECTS = ("chat", "messages", "responses")
SYSTEM_BYTES = 24_000
TOOLS = 20
TOOL_BYTES = 1_800
"""With the system text about 60 KB."""
WORDS_BYTES = 300
RESULT_BYTES = 1_300
"""What a tool answers; with the model's words and the call about 2 KB a turn."""
IMAGE_BYTES = 750_000
"""1 MB in base64."""
IMAGE_AT = 5
"""The turn whose tool result is the image."""
_CACHED = {"cache_control": {"type": "ephemeral"}}
_PROSE = "\n".join(topics[name] for name in sorted(topics))


@dataclass(frozen=True)
class Turn:
    """One call: the request as sent, and the reply as reef keeps it."""

    request: bytes
    reply: bytes


@dataclass(frozen=True)
class Said:
    """What the model says in one turn."""

    number: int
    words: str
    path: str
    call: str

    @property
    def arguments(self) -> Json:
        return {"path": self.path, "offset": self.number * 40, "limit": 40}


def agent_session(dialect: str, turns: int, image: bool, seed: int = 1) -> Iterator[Turn]:
    """The calls of one session of an agent that reads files and writes about them."""
    source = _Source(seed)
    shapes: dict[str, type[_Chat | _Messages | _Responses]]
    shapes = {"chat": _Chat, "messages": _Messages, "responses": _Responses}
    shape = shapes[dialect](source)
    shape.ask(source.prose(400))
    for number in range(turns):
        said = Said(number, source.prose(WORDS_BYTES), f"src/{source.name()}/{source.name()}.py", source.id())
        yield Turn(dumped(shape.request()), dumped(shape.reply(said)))
        shape.answer(said, None if image and number == IMAGE_AT else source.code(RESULT_BYTES))


def unique_parts(turns: Iterable[Turn]) -> set[bytes]:
    """What has to be kept once: each system text, tool list, message and reply, and what else a request says."""
    found: set[bytes] = set()
    for turn in turns:
        body = json.loads(turn.request)
        for name in ("messages", "input"):
            found |= {dumped(message) for message in body.pop(name, [])}
        found |= {dumped(body.pop(name)) for name in ("system", "instructions", "tools") if name in body}
        found |= {dumped(body), turn.reply}
    return found


def compressed(parts: Iterable[bytes]) -> int:
    """The bytes of the parts, each compressed by itself as zstd does by default."""
    compressor = zstandard.ZstdCompressor()
    return sum(min(len(part), len(compressor.compress(part))) for part in parts)


def dumped(value: Any) -> bytes:
    """JSON as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def prose(chance: random.Random, size: int) -> str:
    """So many characters of English."""
    at = chance.randrange(len(_PROSE) - size)
    return _PROSE[at : at + size]


class _Source:
    """Text, code, names and ids."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.files = [inspect.getsource(module) for module in (argparse, datetime, difflib, pathlib, tarfile, typing)]
        self.names = sorted({word for word in _PROSE.split() if word.isalpha() and word.islower() and len(word) > 5})

    def name(self) -> str:
        return self.chance.choice(self.names)

    def id(self, prefix: str = "call_") -> str:
        return prefix + self.chance.randbytes(12).hex()

    def prose(self, size: int) -> str:
        return prose(self.chance, size)

    def code(self, size: int) -> str:
        text = self.chance.choice(self.files)
        at = self.chance.randrange(len(text) - size)
        return text[at : at + size]

    def noise(self, size: int) -> str:
        return base64.b64encode(self.chance.randbytes(size)).decode()

    def tool(self) -> tuple[str, str, Json]:
        """A tool's name, description and parameters."""
        names = [self.name() for _ in range(6)]
        fields = {name: {"type": "string", "description": self.prose(TOOL_BYTES // 12)} for name in names}
        return self.name(), self.prose(TOOL_BYTES // 3), {"type": "object", "properties": fields, "required": names[:2]}


class _Chat:
    """pi: the system text is the first message, the tools come last."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.talk: list[Json] = [{"role": "system", "content": source.prose(SYSTEM_BYTES)}]
        self.tools = [
            {"type": "function", "function": {"name": name, "description": text, "parameters": fields}}
            for name, text, fields in (source.tool() for _ in range(TOOLS))
        ]

    def ask(self, text: str) -> None:
        self.talk.append({"role": "user", "content": text})

    def request(self) -> Json:
        options = {"stream": True, "stream_options": {"include_usage": True}, "max_completion_tokens": 32000}
        return {"model": "reef-model", "messages": self.talk, **options, "tools": self.tools}

    def reply(self, said: Said) -> Json:
        used = {"prompt_tokens": 15000 + 600 * said.number, "completion_tokens": 120, "total_tokens": 15120}
        return {
            "id": self.source.id("chatcmpl-"),
            "object": "chat.completion",
            "created": 1790000000 + said.number * 7,
            "model": "reef-model",
            "choices": [{"index": 0, "message": self._message(said), "finish_reason": "tool_calls"}],
            "usage": used,
        }

    def answer(self, said: Said, result: str | None) -> None:
        self.talk.append(self._message(said))
        if result is not None:
            self.talk.append({"role": "tool", "tool_call_id": said.call, "content": result})
            return
        self.talk.append({"role": "tool", "tool_call_id": said.call, "content": "(see the image)"})
        image = {"url": f"data:image/png;base64,{self.source.noise(IMAGE_BYTES)}"}
        content = [{"type": "text", "text": "The image:"}, {"type": "image_url", "image_url": image}]
        self.talk.append({"role": "user", "content": content})

    def _message(self, said: Said) -> Json:
        function = {"name": "read", "arguments": dumped(said.arguments).decode()}
        calls = [{"id": said.call, "type": "function", "function": function}]
        return {"role": "assistant", "content": said.words, "tool_calls": calls}


class _Messages:
    """Claude Code: the last message carries a cache mark, which the next call has moved on."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.talk: list[Json] = []
        self.system = [{"type": "text", "text": source.prose(SYSTEM_BYTES)} | _CACHED]
        self.tools = [
            {"name": name, "description": text, "input_schema": fields}
            for name, text, fields in (source.tool() for _ in range(TOOLS))
        ]

    def ask(self, text: str) -> None:
        self.talk.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def request(self) -> Json:
        *before, last = self.talk
        *blocks, block = last["content"]
        user = dumped({"device_id": "0" * 64, "account_uuid": "", "session_id": "5" * 36}).decode()
        return {
            "model": "reef-model",
            "messages": [*before, last | {"content": [*blocks, block | _CACHED]}],
            "system": self.system,
            "tools": self.tools,
            "metadata": {"user_id": user},
            "max_tokens": 32000,
            "stream": True,
        }

    def reply(self, said: Said) -> Json:
        used = {"input_tokens": 12, "cache_read_input_tokens": 15000 + 600 * said.number, "output_tokens": 120}
        return {
            "id": self.source.id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": "reef-model",
            "content": self._blocks(said),
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": used,
        }

    def answer(self, said: Said, result: str | None) -> None:
        self.talk.append({"role": "assistant", "content": self._blocks(said)})
        if result is None:
            source = {"type": "base64", "media_type": "image/png", "data": self.source.noise(IMAGE_BYTES)}
            content: Any = [{"type": "image", "source": source}]
        else:
            content = result
        block = {"type": "tool_result", "tool_use_id": said.call, "content": content}
        self.talk.append({"role": "user", "content": [block]})

    def _blocks(self, said: Said) -> list[Json]:
        use = {"type": "tool_use", "id": said.call, "name": "Read", "input": said.arguments}
        return [{"type": "text", "text": said.words}, use]


class _Responses:
    """Codex: instructions first, then the items; the reasoning is sent back sealed."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.talk: list[Json] = []
        self.instructions = source.prose(SYSTEM_BYTES)
        self.sealed = ""
        self.tools = [
            {"type": "function", "name": name, "description": text, "strict": False, "parameters": fields}
            for name, text, fields in (source.tool() for _ in range(TOOLS))
        ]

    def ask(self, text: str) -> None:
        self.talk.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})

    def request(self) -> Json:
        return {
            "model": "reef-model",
            "instructions": self.instructions,
            "input": self.talk,
            "tools": self.tools,
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "5" * 36,
        }

    def reply(self, said: Said) -> Json:
        self.sealed = self.source.noise(300)
        used = {"input_tokens": 15000 + 600 * said.number, "output_tokens": 120, "total_tokens": 15120}
        return {
            "id": self.source.id("resp_"),
            "object": "response",
            "created_at": 1790000000 + said.number * 7,
            "status": "completed",
            "model": "reef-model",
            "output": self._items(said),
            "usage": used,
        }

    def answer(self, said: Said, result: str | None) -> None:
        self.talk += self._items(said)
        output = "(see the image)" if result is None else result
        self.talk.append({"type": "function_call_output", "call_id": said.call, "output": output})
        if result is None:
            url = f"data:image/png;base64,{self.source.noise(IMAGE_BYTES)}"
            image = {"type": "input_image", "image_url": url}
            self.talk.append({"type": "message", "role": "user", "content": [image]})

    def _items(self, said: Said) -> list[Json]:
        text = {"type": "output_text", "text": said.words}
        return [
            {"type": "reasoning", "summary": [], "encrypted_content": self.sealed},
            {"type": "message", "role": "assistant", "content": [text]},
            {
                "type": "function_call",
                "call_id": said.call,
                "name": "read",
                "arguments": dumped(said.arguments).decode(),
            },
        ]
