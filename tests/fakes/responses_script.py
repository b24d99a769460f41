"""The scripted model server's answers in OpenAI's responses format; the words are those of the chat script.

More words: `[[arguments done]]` puts a tool's arguments only into the event that ends its item, `[[arguments last]]`
only into the last event; `[[failed]]` ends the stream with `response.failed`; `[[nameless]]` leaves out the names of
events and puts their type last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakes.chat_script import Script


class ResponsesScript(Script):
    """One request to `/v1/responses`, read."""

    def __init__(self, body: dict[str, Any], number: int) -> None:
        self.sequence = 0
        super().__init__({**body, "messages": _messages(body)}, number)

    @property
    def usage(self) -> dict[str, Any]:
        found = super().usage
        return {
            "input_tokens": found["prompt_tokens"],
            "input_tokens_details": {"cache_write_tokens": 0} | found["prompt_tokens_details"],
            "output_tokens": found["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": found["total_tokens"],
        }

    def completion(self) -> dict[str, Any]:
        reply = self._response("incomplete" if "length" in self.words else "completed")
        reply["output"] = [item for item in self._items() if item]
        reply["usage"] = self.usage
        if "length" in self.words:
            reply["incomplete_details"] = {"reason": "max_output_tokens"}
        return reply

    def events(self) -> Iterator[dict[str, Any] | None]:
        if "error first" in self.words:
            yield {"error": {"message": "quota exceeded", "type": "insufficient_quota"}}
            yield None
            return
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))
        sent = 0
        for event in self._item_events():
            if event["type"].endswith(".delta"):
                if self.error_after is not None and sent >= self.error_after:
                    yield self._event("error", code="server_error", message="engine fell over", param=None)
                    return
                sent += 1
            yield event
        if "no done" not in self.words:
            yield self._last()

    def framed(self, event: dict[str, Any] | None) -> list[bytes]:
        if "nameless" in self.words and event is not None and "type" in event:
            return super().framed({**{name: value for name, value in event.items() if name != "type"}, **_type(event)})
        return named(super().framed(event), event)

    def is_last(self, event: dict[str, Any] | None) -> bool:
        return event is not None and event.get("type") in ("response.completed", "response.incomplete")

    def _last(self) -> dict[str, Any]:
        if "failed" in self.words:
            failed = self._response("failed") | {"error": {"code": "server_error", "message": "engine fell over"}}
            return self._event("response.failed", response=failed)
        reply = self.completion()
        if self.words.get("arguments") == "done":
            reply["output"] = []
        return self._event(f"response.{reply['status']}", response=reply)

    def _item_events(self) -> Iterator[dict[str, Any]]:
        for index, item in enumerate(self._items()):
            empty: dict[str, Any] = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
            here = {"output_index": index, "item_id": item["id"]}
            yield self._event(
                "response.output_item.added", output_index=index, item=item | empty | {"status": "in_progress"}
            )
            if item["type"] == "function_call":
                yield from self._call_events(item, here)
            else:
                yield from self._text_events(item, here)
            late = self.words.get("arguments") == "last" and item["type"] == "function_call"
            yield self._event("response.output_item.done", output_index=index, item=item | (empty if late else {}))

    def _call_events(self, item: dict[str, Any], here: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if "arguments" in self.words:
            return
        for piece in self.cut(item["arguments"], 5):
            yield self._event("response.function_call_arguments.delta", **here, delta=piece)
        yield self._event("response.function_call_arguments.done", **here, arguments=item["arguments"])

    def _text_events(self, item: dict[str, Any], here: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for place, part in enumerate(item["content"]):
            kind = "reasoning_text" if part["type"] == "reasoning_text" else "output_text"
            where = here | {"content_index": place}
            chances: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
            yield self._event("response.content_part.added", **where, part=part | {"text": ""})
            for piece in self.text_pieces() if kind == "output_text" else self.cut(part["text"], 12):
                yield self._event(f"response.{kind}.delta", **where, **chances, delta=piece)
            yield self._event(f"response.{kind}.done", **where, **chances, text=part["text"])
            yield self._event("response.content_part.done", **where, part=part)

    def _items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if "reasoning" in self.words:
            part: dict[str, Any] = {"type": "reasoning_text", "text": self.words["reasoning"]}
            found.append({"type": "reasoning", "id": f"rs_{self.number}", "summary": [], "content": [part]})
        call = self.tool_call
        if call is None:
            part = {"type": "output_text", "text": self.text, "annotations": []}
            found.append(
                {
                    "type": "message",
                    "id": f"msg_{self.number}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        else:
            found.append(
                {"type": "function_call", "id": f"fc_{self.number}", "call_id": call["id"], "status": "completed"}
                | call["function"]
            )
        return found

    def _response(self, status: str) -> dict[str, Any]:
        found = self._base("response")
        found |= {"id": f"resp_fake{self.number}", "created_at": found.pop("created"), "status": status, "output": []}
        settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return found | settings | {"error": None, "incomplete_details": None, "usage": None}

    def _event(self, kind: str, **more: Any) -> dict[str, Any]:
        found = {"type": kind, "sequence_number": self.sequence, **more}
        self.sequence += 1
        return found


def named(pieces: list[bytes], event: dict[str, Any] | None) -> list[bytes]:
    """The bytes of an event with its name in front; a last event that is none (`[DONE]`) stays."""
    if event is None or "type" not in event:
        return pieces
    end = b"\r" if pieces[-1].endswith(b"\r\r") else b"\r\n" if b"\r" in pieces[-1] else b"\n"
    line = b"event: " + event["type"].encode() + end
    if pieces[0].startswith(b": keep alive"):
        return [pieces[0].replace(b"event: message\n", line), *pieces[1:]]
    return [line + pieces[0], *pieces[1:]]


def _type(event: dict[str, Any]) -> dict[str, Any]:
    return {"type": event["type"]}


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if body.get("instructions"):
        found.append({"role": "system", "content": body["instructions"]})
    given = body["input"]
    if isinstance(given, str):
        return [*found, {"role": "user", "content": given}]
    for item in given:
        if item.get("type") == "function_call_output":
            found.append({"role": "tool", "content": item["output"]})
        elif "role" in item:
            role = "system" if item["role"] == "developer" else item["role"]
            found.append({"role": role, "content": item["content"]})
    return found
