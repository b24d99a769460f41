"""What the scripted model server answers: a pure function from the bytes of a chat request to events."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

_WORDS = re.compile(r"\[\[.*?\]\]", re.DOTALL)
PROPOSER = "You write changes to a coding agent's harness."
"""The first line of a proposer's system message."""
_SIZES = {"kb": 1024, "mb": 1024 * 1024, "b": 1, "": 1}


class Script:
    """One request, read: what to say, how to cut it into events, and how to misbehave."""

    def __init__(self, body: dict[str, Any], number: int) -> None:
        self.body = body
        self.number = number
        self.messages: list[dict[str, Any]] = body["messages"]
        self.user = _last_user(self.messages)
        self.words = _words(self.user)
        self.streaming = bool(body.get("stream")) or "stream anyway" in self.words
        self.slow = _seconds(self.words.get("slow"))
        self.slow_first = _seconds(self.words.get("slow first"))
        status, _, rest = (self.words.get("status") or "0").partition(" ")
        self.status = int(status)
        self.retry_after = rest.removeprefix("retry-after ") or None
        self.die_after = int(self.words["die after"]) if "die after" in self.words else None
        self.error_after = int(self.words["error after"]) if "error after" in self.words else None
        self.framing = self.words.get("framing", "")
        self.close = "close" in self.words
        count, _, gap = self.words.get("paced", "").partition(" ")
        self.pieces = int(count or 0)
        self.gap = _seconds(gap)
        self.broken_off = number <= int(self.words.get("abort", 0))
        self.tool_result = _tool_result(self.messages)

    @property
    def text(self) -> str:
        """The whole reply text."""
        if self.broken_off and "say" not in self.words:
            return ""
        proposal = self._proposal()
        if proposal is not None:
            return proposal
        if self.tool_result is not None:
            return "The tool said: " + _last_line(self.tool_result)
        if "say" in self.words:
            return self.words["say"]
        if "big" in self.words:
            match = re.fullmatch(r"(\d+)(kb|mb|b)?", self.words["big"])
            assert match is not None
            return ("0123456789abcde\n" * (int(match[1]) * _SIZES[match[2] or ""] // 16 + 1))[
                : int(match[1]) * _SIZES[match[2] or ""]
            ]
        if self.pieces:
            return "".join(f"word{place} " for place in range(self.pieces))
        return f"You said: {_first_line(_WORDS.sub('', self.user)) or 'nothing'}"

    @property
    def tool_call(self) -> dict[str, Any] | None:
        """The tool call to answer with, when the words ask for one and the request offers tools."""
        if self.tool_result is not None or not self.body.get("tools"):
            return None
        if "shell" in self.words:
            call = shell_call(self.body["tools"], self.words["shell"])
        elif "tool" in self.words:
            name, _, arguments = self.words["tool"].partition(" ")
            call = {"name": name, "arguments": arguments or "{}"}
        else:
            return None
        return {"id": f"call_{self.number}", "type": "function", "function": call}

    @property
    def finish_reason(self) -> str:
        if self.broken_off:
            return "abort"
        if "length" in self.words:
            return "length"
        return "tool_calls" if self.tool_call else "stop"

    @property
    def usage(self) -> dict[str, Any]:
        """Counts that depend on the request and reply alone."""
        prompt = int(self.words.get("prompt", max(1, len(json.dumps(self.messages)) // 4)))
        completion = int(self.words.get("completion", max(1, len(self.text) // 4)))
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": int(self.words.get("cached", prompt // 2))},
        }

    def completion(self) -> dict[str, Any]:
        """The reply that is not streamed."""
        call = self.tool_call
        message: dict[str, Any] = {"role": "assistant", "content": None if call else self.text}
        if call:
            message["tool_calls"] = [call]
        if "reasoning" in self.words:
            message["reasoning_content"] = self.words["reasoning"]
        reply = self._base("chat.completion")
        reply["choices"] = [{"index": 0, "message": message, "finish_reason": self.finish_reason}]
        reply["usage"] = self.usage
        return reply

    def events(self) -> Iterator[dict[str, Any] | None]:
        """The stream's events; None stands for `[DONE]`."""
        if "error first" in self.words:
            yield {"error": {"message": "quota exceeded", "type": "insufficient_quota"}}
            yield None
            return
        for sent, delta in enumerate(self._deltas()):
            if self.error_after is not None and sent >= self.error_after:
                yield {"error": {"message": "engine fell over", "type": "server_error"}}
                yield None
                return
            yield self._chunk(delta, None)
        where = self._usage_place()
        if where == "before":
            yield {**self._base("chat.completion.chunk"), "choices": [], "usage": self.usage}
        if "no finish" not in self.words:
            yield self._chunk({}, self.finish_reason)
        if where == "last":
            yield {**self._base("chat.completion.chunk"), "choices": [], "usage": self.usage}
        if "no done" not in self.words:
            yield None

    def framed(self, event: dict[str, Any] | None) -> list[bytes]:
        """One event as the bytes of one or more writes, in the framing that the words ask for."""
        data = "[DONE]" if event is None else encoded(event).decode()
        if self.framing == "crlf":
            return [f"data: {data}\r\n\r\n".encode()]
        if self.framing == "cr":
            return [f"data: {data}\r\r".encode()]
        if self.framing == "tight":
            return [f"data:{data}\n\n".encode()]
        if self.framing == "comments":
            return [f": keep alive\n\nid: {self.number}\nevent: message\ndata: {data}\n\n".encode()]
        if self.framing == "lines" and event:
            return [("".join(f"data: {line}\n" for line in json.dumps(event, indent=1).splitlines()) + "\n").encode()]
        if self.framing == "torn":
            whole = f"data: {data}\r\n\r\n".encode()
            return [whole[:5], whole[5:-3], whole[-3:-2], whole[-2:-1], whole[-1:]]
        if self.framing == "open" and self.is_last(event):
            return [f"data: {data}".encode()]
        return [f"data: {data}\n\n".encode()]

    def is_last(self, event: dict[str, Any] | None) -> bool:
        """Whether an event ends the stream."""
        return event is None

    def text_pieces(self) -> list[str]:
        """The reply text as it is streamed."""
        if self.pieces:
            return re.findall(r"\S+ ", self.text)
        return self.cut(self.text, max(12, len(self.text) // 500))

    @staticmethod
    def cut(text: str, size: int) -> list[str]:
        """`text` in pieces of `size` characters."""
        return [text[start : start + size] for start in range(0, len(text), size)]

    def _deltas(self) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        if "reasoning" in self.words:
            yield {"reasoning_content": self.words["reasoning"]}
        call = self.tool_call
        if call is None:
            for piece in self.text_pieces():
                yield {"content": piece}
            return
        arguments = call["function"]["arguments"]
        yield {"tool_calls": [{"index": 0, **call, "function": {"name": call["function"]["name"], "arguments": ""}}]}
        for piece in self.cut(arguments, 5):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}

    def _chunk(self, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        chunk = self._base("chat.completion.chunk")
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
        if self._usage_place() == "every":
            chunk["usage"] = self.usage
        return chunk

    def _usage_place(self) -> str:
        asked = bool((self.body.get("stream_options") or {}).get("include_usage"))
        return self.words.get("usage", "last" if asked else "none")

    def _base(self, kind: str) -> dict[str, Any]:
        model = self.body.get("model", "fake-model")
        found: dict[str, Any] = {
            "id": f"chatcmpl-fake{self.number}",
            "object": kind,
            "created": 1700000000,
            "model": model,
        }
        if "extra" in self.words:
            found["x_meta"] = {"k": 1, "ü": [1, None, 1.50]}
        return found

    def _proposal(self) -> str | None:
        """The entries that a proposer asked for, or None when this call is not a proposer's."""
        system = next((_content(message) for message in self.messages if message.get("role") == "system"), "")
        if system.splitlines()[:1] != [PROPOSER]:
            return None
        material = "\n".join(_content(message) for message in self.messages if message.get("role") == "user")
        match = re.search(r"^<<<ask-(\w+)>>>\n(.*?)\n<<<end-\1>>>$", material, re.DOTALL | re.MULTILINE)
        ask = match.group(2).strip() if match else ""
        scripted = re.search(r"\[\[propose (.*)\]\]", ask, re.DOTALL)
        if scripted:
            return scripted.group(1)
        text = _WORDS.sub("", ask).strip() or "Answer briefly."
        name = re.sub(r"[^a-z0-9]+", "-", text.lower())[:40].strip("-") or "rule"
        entry = {"op": "create", "id": name, "kind": "rules", "text": text}
        return json.dumps({"entries": [entry], "summary": f"Add the rule {name}"})


def shell_call(tools: list[dict[str, Any]], command: str) -> dict[str, str]:
    """A call that runs `command` with the shell tool among those that a request offers, in whichever format.

    What else the tool requires is filled in. Raises ValueError when there is none.
    """
    for tool in tools:
        offered = tool.get("function", tool)
        schema = offered.get("parameters") or offered.get("input_schema") or {}
        fields = schema.get("properties") or {}
        field = next((name for name in ("command", "cmd") if name in fields), None)
        if field is None or not re.search("(?i)bash|shell|exec|terminal", offered["name"]):
            continue
        more = {name: "runs what was asked for" for name in schema.get("required", ()) if name != field}
        return {"name": offered["name"], "arguments": json.dumps({field: command, **more})}
    raise ValueError("no shell tool is offered")


def encoded(value: dict[str, Any]) -> bytes:
    """`value` as UTF-8 JSON; escaped as ASCII where half a surrogate pair leaves no other way."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def _words(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    known = ("slow first", "die after", "no done", "no finish", "error first", "error after", "stream anyway")
    for match in re.finditer(r"\[\[(.*?)\]\]", text, re.DOTALL):
        inside = match.group(1)
        two = next((name for name in known if inside == name or inside.startswith(name + " ")), None)
        name, _, rest = (two, "", inside[len(two) :].strip()) if two else inside.partition(" ")
        found[name] = rest
    return found


def _seconds(text: str | None) -> float:
    match = re.fullmatch(r"([0-9.]+)(ms|s)?", text or "")
    return 0.0 if match is None else float(match.group(1)) / (1000 if match.group(2) == "ms" else 1)


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _last_user(messages: list[dict[str, Any]]) -> str:
    """What the user said last; an agent may put its own words beside it as further messages of the user."""
    said = itertools.dropwhile(lambda message: message.get("role") != "user", reversed(messages))
    together = list(itertools.takewhile(lambda message: message.get("role") == "user", said))
    return "\n".join(_content(message) for message in reversed(together))


def _tool_result(messages: list[dict[str, Any]]) -> str | None:
    """The newest result of a tool that no reply has followed yet."""
    new = itertools.takewhile(lambda message: message.get("role") != "assistant", reversed(messages))
    return next((_content(message) for message in new if message.get("role") == "tool"), None)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:200]


def _last_line(text: str) -> str:
    return _first_line("\n".join(reversed(text.splitlines())))
