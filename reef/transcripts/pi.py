"""pi: `sessions/--folder--/TIME_ID.jsonl`, a tree of entries. A call is an assistant's message and the way to it.

Since 1.6 a session holds the system prompt and the tools; before, neither. Compactions, edits of the context and
summaries of branches are followed as pi follows them. Written as chat, whichever API answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reef.transcripts.call import (
    FINISH,
    Call,
    Json,
    Reading,
    arguments,
    chat_reply,
    chat_usage,
    lines,
    number,
    of_milliseconds,
    text_of,
)

AGENT = "pi"
_COMPACTED = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
_BRANCH = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
_STATES = {"error": "failed", "aborted": "cancelled"}


def calls(path: Path, reading: Reading) -> Iterator[Call]:
    """Every model call of a session file, in the order of the file."""
    header: Json = {}
    entries: dict[str, Json] = {}
    order: list[Json] = []
    title = None
    for entry in lines(path, reading):
        if entry.get("type") == "session":
            header = entry
        elif isinstance(entry.get("id"), str):
            entries[entry["id"]] = entry
            order.append(entry)
            title = entry.get("name") or title if entry.get("type") == "session_info" else title
    session = header.get("id")
    if not isinstance(session, str):
        return
    for entry in order:
        message = entry.get("message")
        if entry.get("type") != "message" or not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        if header.get("parentSession") and str(entry.get("timestamp")) < str(header.get("timestamp")):
            # Copied from the session that this one was forked from, where it is a call of its own.
            continue
        yield _call(entry, message, _Context(_way_to(entry, entries)), header, title, reading)


def _way_to(entry: Json, entries: dict[str, Json]) -> list[Json]:
    """The entries before one, from the root on."""
    way: list[Json] = []
    seen: set[str] = set()
    parent = entry.get("parentId")
    while isinstance(parent, str) and parent in entries and parent not in seen:
        seen.add(parent)
        way.append(entries[parent])
        parent = entries[parent].get("parentId")
    return way[::-1]


def _call(entry: Json, message: Json, context: _Context, header: Json, title: str | None, reading: Reading) -> Call:
    model, usage = message.get("model"), message.get("usage") or {}
    lacks = () if context.system else ("system prompt", "tools")
    reading.lacks |= set(lacks)
    request: Json = {"model": model, "messages": context.messages()}
    if context.tools:
        request["tools"] = [{"type": "function", "function": tool} for tool in context.tools.values()]
    cached = number(usage.get("cacheRead"))
    prompt = number(usage.get("input")) + cached + number(usage.get("cacheWrite"))
    stop = message.get("stopReason")
    answer = _assistant(message)
    reply = chat_reply(
        str(message.get("responseId") or entry["id"]), model, answer, FINISH.get(str(stop)),
        chat_usage(prompt, number(usage.get("output")), cached),
    )  # fmt: skip
    said = answer.get("content") or answer.get("tool_calls") or answer.get("reasoning_content")
    return Call(
        agent=AGENT,
        session=header["id"],
        message=entry["id"],
        dialect="chat",
        request=request,
        response=reply if said or stop not in _STATES else None,
        started_at=of_milliseconds(message.get("timestamp")) or entry.get("timestamp"),
        state=_STATES.get(str(stop), "complete"),
        error=message.get("errorMessage"),
        duration_ms=message.get("durationMs"),
        cwd=header.get("cwd"),
        title=title,
        lacks=lacks,
    )


class _Context:
    """What the model was shown at the end of a way through the tree."""

    def __init__(self, way: list[Json]) -> None:
        self.tools: dict[str, Json] = {}
        self._content = ""
        self._sections: dict[str, str] = {}
        places = [place for place, entry in enumerate(way) if entry.get("type") == "compaction"]
        self._entries = _kept(way, places[-1]) if places else way
        for entry in self._entries:
            prompt = entry.get("systemMessage") if entry.get("type") == "compaction" else entry.get("message")
            if isinstance(prompt, dict) and prompt.get("role") == "system":
                self._patch(prompt)

    @property
    def system(self) -> str:
        """The system prompt; empty where the session does not hold it."""
        return "\n\n".join(text for text in (self._content, *self._sections.values()) if text)

    def messages(self) -> list[Json]:
        edits = {entry.get("targetId"): entry for entry in self._entries if entry.get("type") == "context_edit"}
        found: list[Json] = [{"role": "system", "content": self.system}] if self.system else []
        for place, entry in enumerate(self._entries):
            if entry.get("type") == "compaction" and place > 0:
                continue
            edit = edits.get(entry.get("id"))
            if edit is not None and edit.get("replacement") is None:
                continue
            message = _message_of(entry)
            if edit is not None and message is not None:
                message = {**message, "content": edit["replacement"].get("content")}
            shown = None if message is None else _as_chat(message)
            if shown is not None:
                found.append(shown)
        return found

    def _patch(self, prompt: Json) -> None:
        self._content = text_of(prompt.get("content")) or self._content
        for name, text in (prompt.get("sections") or {}).items():
            if text is None:
                self._sections.pop(name, None)
            else:
                self._sections[name] = str(text)
        for tool in prompt.get("toolsRemoved") or ():
            self.tools.pop(str(tool.get("name")), None)
        for tool in prompt.get("toolsAdded") or ():
            self.tools[str(tool.get("name"))] = {
                key: tool[key] for key in ("name", "description", "parameters") if key in tool
            }


def _kept(way: list[Json], place: int) -> list[Json]:
    """What a compaction at `place` leaves of the way: itself, what it kept, and what came behind it."""
    compaction = way[place]
    first = compaction.get("firstKeptEntryId")
    start = next((at for at, entry in enumerate(way[:place]) if entry.get("id") == first), place)
    before = [entry for entry in way[start:place] if (entry.get("message") or {}).get("role") != "system"]
    return [compaction, *before, *way[place + 1 :]]


def _message_of(entry: Json) -> Json | None:
    """The message that an entry shows the model, in pi's own form."""
    kind = entry.get("type")
    if kind == "message":
        message = entry.get("message")
        return message if isinstance(message, dict) else None
    if kind == "custom_message":
        return {"role": "user", "content": entry.get("content")}
    if kind == "compaction":
        return {"role": "user", "content": f"{_COMPACTED}{entry.get('summary')}\n</summary>"}
    if kind == "branch_summary":
        return {"role": "user", "content": f"{_BRANCH}{entry.get('summary')}</summary>"}
    return None


def _as_chat(message: Json) -> Json | None:
    role = message.get("role")
    if role in ("user", "custom"):
        return {"role": "user", "content": _content(message.get("content"))}
    if role == "assistant":
        return None if message.get("stopReason") in _STATES else _assistant(message)
    if role == "toolResult":
        return {
            "role": "tool",
            "tool_call_id": message.get("toolCallId"),
            "content": _content(message.get("content")),
        }
    if role == "bashExecution" and not message.get("excludeFromContext"):
        return {"role": "user", "content": _ran(message)}
    return None


def _assistant(message: Json) -> Json:
    """An assistant's message as chat has it; also one whose content was edited into a text."""
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    text = content if isinstance(content, str) else "".join(
        part.get("text") or "" for part in parts if part.get("type") == "text"
    )  # fmt: skip
    found: Json = {"role": "assistant", "content": text or None}
    thoughts = [str(part["thinking"]) for part in parts if part.get("type") == "thinking" and part.get("thinking")]
    if thoughts:
        found["reasoning_content"] = "\n\n".join(thoughts)
    calls = [part for part in parts if part.get("type") == "toolCall"]
    if calls:
        found["tool_calls"] = [
            {
                "id": call.get("id"),
                "type": "function",
                "function": {"name": call.get("name"), "arguments": arguments(call.get("arguments"))},
            }
            for call in calls
        ]
    return found


def _content(content: Any) -> Any:
    """A text where there is nothing but text, else parts as chat has them."""
    if not isinstance(content, list) or all(part.get("type") == "text" for part in content if isinstance(part, dict)):
        return text_of(content)
    found: list[Json] = []
    for part in content:
        if part.get("type") == "text":
            found.append({"type": "text", "text": part.get("text")})
        elif part.get("type") == "image":
            url = f"data:{part.get('mimeType')};base64,{part.get('data')}"
            found.append({"type": "image_url", "image_url": {"url": url}})
    return found


def _ran(message: Json) -> str:
    """A command that the person ran beside the model, as pi tells the model of it."""
    output = message.get("output")
    text = f"Ran `{message.get('command')}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    if message.get("cancelled"):
        return f"{text}\n\n(command cancelled)"
    return f"{text}\n\nCommand exited with code {message['exitCode']}" if message.get("exitCode") else text
