"""reef's own agent: `sessions/TIME_ID.jsonl`, the messages in their order, with system prompt and tools as they were.

A long session is sent without its oldest turns; which ones, its transcript does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reef.transcripts.call import Call, Json, Reading, chat_reply, lines, text_of

AGENT = "native"
SHORTENED = "which older turns were left out"
_STATES = {"interrupted": "cancelled"}


def is_native(line: Json) -> bool:
    """Whether a line is the head of a session of this agent."""
    return line.get("type") == "session" and line.get("agent") == AGENT and isinstance(line.get("id"), str)


def calls(path: Path, reading: Reading) -> Iterator[Call]:
    """Every model call of a session file, in the order of the file."""
    head: Json = {}
    context: Json = {}
    messages: list[Json] = []
    count = 0
    title = None
    for line in lines(path, reading):
        message = line.get("message")
        if is_native(line):
            head = line
        elif line.get("type") == "context":
            context = line
        elif line.get("type") == "message" and isinstance(message, dict) and head:
            if message.get("role") == "assistant":
                count += 1
                yield _call(head, context, messages, line, count, title, reading)
            elif message.get("role") == "user" and title is None:
                title = text_of(message.get("content"))[:200] or None
            messages.append(message)


def _call(
    head: Json, context: Json, messages: list[Json], line: Json, count: int, title: str | None, reading: Reading
) -> Call:
    lacks = (SHORTENED,) if line.get("left_out") else ()
    reading.lacks |= set(lacks)
    model, finish = line.get("model"), line.get("finish")
    request: Json = {"model": model, "messages": [{"role": "system", "content": context.get("system")}, *messages]}
    if context.get("tools"):
        request["tools"] = context["tools"]
    name = str(line.get("reply") or count)
    usage = line.get("usage") if isinstance(line.get("usage"), dict) else None
    state = _STATES.get(str(finish), "complete")
    reply = chat_reply(name, model, line["message"], None if state != "complete" else finish, usage)
    return Call(
        agent=AGENT,
        session=head["id"],
        message=f"{count}:{name}",
        dialect="chat",
        request=request,
        response=reply,
        started_at=line.get("at"),
        state=state,
        cwd=head.get("cwd"),
        title=title,
        lacks=lacks,
    )
