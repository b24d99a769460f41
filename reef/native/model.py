"""One call to the model: chat completions, streamed, folded into one message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from reef.errors import DaemonUnreachable, Failed, ReefError, UpstreamFailed
from reef.ids import new_id
from reef.native.home import Model
from reef.text import one_line

Json = dict[str, Any]
OnText = Callable[[str], None]
_CONNECT_S = 10.0
_READ_S = 900.0
_ERROR_MAX = 1 << 20
_LINE_MAX = 32 << 20


@dataclass
class Reply:
    """What the model said."""

    text: str = ""
    calls: list[Json] = field(default_factory=list)
    """Tool calls as chat completions have them."""
    finish: str | None = None
    id: str | None = None
    usage: Json | None = None
    receipt: str | None = None

    def message(self) -> Json:
        """The assistant's message for the conversation."""
        found: Json = {"role": "assistant", "content": self.text or None}
        return found | ({"tool_calls": self.calls} if self.calls else {})


class Caller:
    """Makes the calls of one session over one kept connection."""

    def __init__(self, model: Model, session: str) -> None:
        self._model = model
        headers = {"authorization": f"Bearer {model.key}", "x-reef-session": session}
        # The address is the daemon's: no proxy of the shell may read the token.
        self._client = httpx.Client(
            headers=headers, timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S), trust_env=False
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def ask(self, messages: list[Json], tools: list[Json], on_text: OnText) -> Reply:
        """One call; `on_text` gets each piece of the answer's text as it comes.

        Raises UpstreamFailed with the server's own sentence, DaemonUnreachable when nobody answers.
        """
        body: Json = {
            "model": self._model.name,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": self._model.max_tokens,
        }
        if tools:
            body["tools"] = tools
        try:
            with self._client.stream("POST", f"{self._model.base_url}/chat/completions", json=body) as response:
                if response.status_code != 200:
                    raise _refused(response)
                return _folded(response, on_text)
        except httpx.ConnectError:
            raise DaemonUnreachable("the daemon is not running", "reef up") from None
        except httpx.TimeoutException:
            raise UpstreamFailed(f"the model did not answer within {_READ_S:.0f} s", "reef status") from None
        except httpx.HTTPError as error:
            raise UpstreamFailed(f"the reply broke off: {one_line(str(error), 200)}", "reef status") from None


def _refused(response: httpx.Response) -> ReefError:
    body = b""
    for piece in response.iter_bytes():
        body += piece
        if len(body) > _ERROR_MAX:
            break
    try:
        said = _message(json.loads(body))
    except ValueError:
        said = ""
    return UpstreamFailed(said or f"the daemon answered with status {response.status_code}")


def _folded(response: httpx.Response, on_text: OnText) -> Reply:
    reply = Reply(receipt=response.headers.get("x-reef-agent-record-id"))
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        return _whole(response, reply, on_text)
    parts: dict[int, Json] = {}
    ended = False
    for data in _events(response):
        if data == "[DONE]":
            ended = True
            continue
        try:
            event = json.loads(data)
        except ValueError:
            raise UpstreamFailed("the model server sent an event that is not JSON", "reef status") from None
        if not isinstance(event, dict):
            continue
        if event.get("error"):
            raise UpstreamFailed(_message(event) or "the model server reports an error")
        _take(event, reply, parts, on_text)
    if not ended and reply.finish is None:
        raise UpstreamFailed("the reply broke off before its end", "reef status")
    reply.calls = [_named(parts[index]) for index in sorted(parts) if parts[index]["function"]["name"]]
    return reply


def _named(call: Json) -> Json:
    """A tool call with an id of its own: results are told apart by it, and some servers give none."""
    return call if call.get("id") else {**call, "id": f"call_{new_id()[:16]}"}


def _take(event: Json, reply: Reply, parts: dict[int, Json], on_text: OnText) -> None:
    reply.id = event.get("id") or reply.id
    if isinstance(event.get("usage"), dict):
        reply.usage = event["usage"]
    for choice in event.get("choices") or []:
        reply.finish = choice.get("finish_reason") or reply.finish
        delta = choice.get("delta") or {}
        if isinstance(text := delta.get("content"), str) and text:
            reply.text += text
            on_text(text)
        for call in delta.get("tool_calls") or []:
            _take_call(call, parts)


def _take_call(call: Json, parts: dict[int, Json]) -> None:
    index = call.get("index")
    if not isinstance(index, int):
        # Some servers number nothing and send each call whole.
        index = len(parts)
    made = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    part = parts.setdefault(index, made)
    part["id"] = call.get("id") or part["id"]
    function = call.get("function") or {}
    part["function"]["name"] += function.get("name") or ""
    arguments = function.get("arguments")
    part["function"]["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments or {})


def _whole(response: httpx.Response, reply: Reply, on_text: OnText) -> Reply:
    try:
        body = json.loads(response.read())
        choice = body["choices"][0]
        message = choice["message"]
    except (ValueError, KeyError, IndexError, TypeError):
        raise Failed("the model server's reply is no chat completion", "reef status") from None
    reply.id, reply.usage, reply.finish = body.get("id"), body.get("usage"), choice.get("finish_reason")
    reply.text = message.get("content") or ""
    reply.calls = [_named(call) for call in message.get("tool_calls") or ()]
    if reply.text:
        on_text(reply.text)
    return reply


def _events(response: httpx.Response) -> Iterator[str]:
    """The data of each server-sent event."""
    data: list[str] = []
    for line in response.iter_lines():
        if len(line) > _LINE_MAX:
            raise UpstreamFailed("the model server sent an event that is too long")
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)


def _message(body: Any) -> str:
    error = body.get("error", body) if isinstance(body, dict) else body
    said = error.get("message") if isinstance(error, dict) else error
    return said[:2000] if isinstance(said, str) else ""
