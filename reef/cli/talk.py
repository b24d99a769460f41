"""A session as a conversation on paper: who said what, tool calls on one line each, ratings beside the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reef.cli.look import OUT, counted
from reef.conversation import argument_summary
from reef.text import safe

Row = dict[str, Any]
_WIDEST = 200
_NAMES = {"user": "you", "developer": "system"}


def lines(found: Row) -> Iterator[str]:
    """The lines of what `GET /reef/sessions/{id}` answers."""
    session = found["session"]
    name = session["id"] or session["key"]
    yield OUT.joined(
        f"session {OUT.line(name, 64)}",
        OUT.line(session["scenario"]),
        OUT.line(session.get("adapter")),
        f"v{session['version']}" if session.get("version") else None,
        counted(session["calls"], "call"),
        OUT.when(session["opened_at"]),
        OUT.line(session.get("cwd"), 100),
    )
    for message in found["messages"]:
        yield ""
        yield from _message(message)
    if found["cut"]:
        yield from ("", OUT.paint("the session is too long to be shown to its end", "needs"))
    if found["apart"]:
        yield from ("", f"{counted(len(found['apart']), 'call')} of another conversation within this session:")
        for row in found["apart"]:
            asked, answer = OUT.line(row.get("preview"), 60), OUT.line(row.get("answer_preview"), 60)
            yield f"  {OUT.joined(OUT.id(row['agent_record_id']), _rating(row), asked, answer)}"


def _message(message: Row) -> Iterator[str]:
    role = str(message.get("role") or "assistant")
    if role in ("system", "developer"):
        # A system prompt is as long as a book and the same in every session.
        text = message["text"]
        yield OUT.joined(OUT.paint("system", "strong"), counted(text.count("\n") + 1, "line"), OUT.line(text, 60))
        return
    head = OUT.paint(OUT.line(_NAMES.get(role, role), 20), "strong")
    receipt = message.get("agent_record_id")
    state = message.get("state")
    yield OUT.joined(
        head,
        OUT.id(receipt) if receipt else None,
        _rating(message),
        OUT.paint(OUT.line(state), "failed") if state not in (None, "complete") else None,
        OUT.paint(OUT.line(message["error"], 100), "failed") if message.get("error") else None,
    )
    if message.get("reasoning"):
        yield OUT.paint(f"  reasoning, {counted(message['reasoning'].count(chr(10)) + 1, 'line')}", "dim")
    if message["text"].strip():
        for line in safe(message["text"].strip("\n")).split("\n"):
            yield f"  {line}"
    for call in message.get("calls") or ():
        yield f"  {_call(call)}"


def _call(call: Row) -> str:
    width = min(OUT.columns - 4, _WIDEST)
    asked = OUT.line(f"{call['name']}  {argument_summary(call['arguments'])}", width // 2)
    if call["result"] is None:
        return f"{asked} {OUT.symbol('→')} {OUT.paint('no result', 'dim')}"
    # The last line of what a tool printed says most often how it went.
    last = next((line for line in reversed(call["result"][-4000:].split("\n")) if line.strip()), "")
    return f"{asked} {OUT.symbol('→')} {OUT.line(last, width // 2) or 'empty'}"


def _rating(row: Row) -> str | None:
    score = row.get("score")
    return None if score is None else OUT.paint(f"rated {score:g}", "good" if score > 0 else "failed")
