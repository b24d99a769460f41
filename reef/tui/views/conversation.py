"""A recorded call as a conversation: roles, folded reasoning, tool calls paired with their results, the reply.

It reads the JSON bodies of every wire format that reef serves. A body it cannot read is shown raw, with a line that
says so. A request that goes on from a reply which its server keeps is shown behind the calls that led to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reef.conversation import answered, argument_summary, asked, content_text, parsed, tool_names
from reef.tui import cells, figures
from reef.tui.lines import Block, Line, paragraph
from reef.tui.views import records

Json = dict[str, Any]
FEW = 6
"""Messages before the last turn that are shown without folding."""
LONG = 12
"""Lines of a system prompt or a tool's result from which on it is folded."""
MOST_CHARACTERS = 400_000
MOST_EARLIER = 100
"""So many calls are read that a call goes on from by name."""


def blocks(
    record: Json,
    request: bytes | None,
    response: bytes | None,
    earlier: Sequence[tuple[bytes | None, bytes | None]] = (),
) -> list[Block]:
    """The page of one record: facts, conversation, reply, reports.

    `earlier` are the requests and replies of the calls that it goes on from, oldest first.
    """
    found = [Block("facts", None, [*records.facts(record), Line()], copy=str(record.get("agent_record_id", "")))]
    value = parsed(request)
    messages = asked(value)
    if messages is not None:
        found += _messages(_before(earlier) + messages)
        found += _tools_offered(value.get("tools"))
    elif request is not None:
        found += _unread("request", request)
    elif record.get("state") != "open":
        found.append(Block("gone", None, [Line.of(("the bodies of this call are not stored (any more)", "dim"))]))
    found += _reply(record, response)
    reports = records.report_lines(record)
    if reports:
        found.append(Block("reports", None, reports))
    return found


def earlier(record: Json, fetch: Callable[[str], Json]) -> tuple[list[Json], str | None]:
    """The calls that a call goes on from by name, oldest first, and what to say when that is not all of them."""
    found: list[Json] = []
    oldest = record
    while oldest.get("follows_record") and len(found) < MOST_EARLIER:
        oldest = fetch(str(oldest["follows_record"]))
        found.insert(0, oldest)
    if oldest.get("follows_record"):
        return found, "what was said before that is in older calls"
    return found, "the earlier part of this conversation was not recorded" if oldest.get("follows") else None


def raw(name: str, body: bytes | None) -> list[Block]:
    """A stored body as text; JSON is indented, which the first line says."""
    if body is None:
        return [Block("raw", None, [Line.of((f"no {name} is stored", "dim"))])]
    value = parsed(body)
    text = body.decode("utf-8", "replace") if value is None else json.dumps(value, ensure_ascii=False, indent=2)
    how = "as stored" if value is None else "indented for reading; the export has the exact bytes"
    lines = [Line.of((f"raw {name} · {figures.size(len(body))} · {how}", "dim")), Line()]
    return [Block("raw", None, lines + _text(text, "code"), copy=body.decode("utf-8", "replace"))]


def _before(earlier: Sequence[tuple[bytes | None, bytes | None]]) -> list[Json]:
    """What was said in earlier calls. A system prompt holds for its own call only."""
    found: list[Json] = []
    for request, response in earlier:
        said = [*(asked(parsed(request)) or ()), *(answered(parsed(response)) or ())]
        found += [message for message in said if message.get("role") not in ("system", "developer")]
    return found


def line_count(text: str) -> int:
    """Lines of a text, without making them."""
    return text.count("\n") + 1


def _unread(name: str, body: bytes) -> list[Block]:
    lines = [Line.of((f"this {name} is in no known format; it is shown raw", "accent")), Line()]
    return [Block(f"unread-{name}", None, lines + _text(body.decode("utf-8", "replace"), "code"))]


def _text(text: str, role: str = "", indent: int = 0) -> list[Line]:
    short = text[:MOST_CHARACTERS]
    lines = paragraph(cells.shown(short), role, indent)
    if len(short) < len(text):
        left = figures.count(len(text) - len(short))
        lines.append(Line.of((" " * indent + f"… {left} more characters; the export has all of it", "dim")))
    return lines


def _messages(messages: Sequence[Json]) -> list[Block]:
    """The messages of a request; what lies before the last turn is folded when it is long."""
    last_turn = max((n for n, message in enumerate(messages) if message.get("role") == "user"), default=0)
    results = {str(m.get("tool_call_id")): m for m in messages if m.get("role") == "tool"}
    paired: set[str] = set()
    found: list[Block] = []
    earlier = [n for n in range(last_turn) if messages[n].get("role") != "system"]
    fold = "earlier" if len(earlier) > FEW else None
    for number, message in enumerate(messages):
        if fold and earlier and number == earlier[0]:
            head = Line.of((figures.many(len(earlier), "earlier message"), "dim"))
            found.append(Block(fold, head, [Line()], folded=True))
        inside = fold if number in earlier else None
        found += _message(f"m{number}", message, results, paired, inside)
    return found


def _message(key: str, message: Json, results: dict[str, Json], paired: set[str], inside: str | None) -> list[Block]:
    role = str(message.get("role"))
    content = content_text(message.get("content"))
    if role in ("system", "developer"):
        return [_system(key, content, inside)]
    if role == "tool":
        if str(message.get("tool_call_id")) in paired:
            return []
        return [_result(f"{key}-result", "a tool's result without its call", content, inside)]
    if role == "user":
        head = Line.of(("you", "you"))
        return [Block(key, head, lambda: [*_text(content, indent=2), Line()], inside=inside, copy=content)]
    return _assistant(key, message, content, results, paired, inside)


def _system(key: str, content: str, inside: str | None) -> Block:
    count = line_count(content)
    first = cells.line(content, 120)
    head = Line.of(("system  ", "heading"), (f"({count} lines, enter)  {first}" if count > 1 else "", "dim"))

    def body() -> list[Line]:
        return [*_text(content, "dim", indent=2), Line()]

    return Block(key, head, body, folded=True if count > 1 else None, inside=inside, copy=content)


def _assistant(
    key: str, message: Json, content: str, results: dict[str, Json], paired: set[str], inside: str | None
) -> list[Block]:
    name = str(message.get("role") or "assistant")
    head = Line.of((cells.line("assistant" if name == "None" else name, 20), "agent"))
    found = [Block(f"{key}-head", head, (), inside=inside, copy=content)]
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        said = reasoning.strip()
        head = Line.of(("  reasoning  ", "dim"), (f"({figures.many(line_count(said), 'line')}, enter)", "faint"))
        body = partial(_text, said, "dim", 4)
        found.append(Block(f"{key}-reasoning", head, body, folded=True, inside=inside, copy=reasoning))
    if content.strip():
        found.append(Block(key, None, partial(_text, content.strip("\n"), "", 2), inside=inside, copy=content))
    calls = message.get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            found.append(_tool_call(f"{key}-call{number}", call, results, paired, inside))
    found.append(Block(f"{key}-end", None, [Line()], inside=inside))
    return found


def _tool_call(key: str, call: Json, results: dict[str, Json], paired: set[str], inside: str | None) -> Block:
    found = call.get("function")
    function: Json = found if isinstance(found, dict) else {}
    name = cells.line(function.get("name") or "tool", 40)
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    result = results.get(str(call.get("id")))
    head = Line.of((f"  {name}  ", "strong"), (cells.line(argument_summary(text), 300), "code"))
    if result is None:
        brief = Line.of(("      no result recorded", "dim"))
        given = partial(_arguments, text)
        return Block(key, head, given, folded=True, brief=brief, inside=inside, copy=text)
    paired.add(str(call.get("id")))
    content = content_text(result.get("content")).rstrip("\n")
    count = line_count(content)
    # The last line of what a tool printed says most often how it went.
    last = next((part for part in reversed(content[-4000:].split("\n")) if part.strip()), "")
    more = f"({count} lines, enter)  " if count > 1 else ""
    brief = Line.of(("    → ", "faint"), (more, "faint"), (cells.line(last, 200) or "empty", "dim"))

    def body() -> list[Line]:
        return [*_arguments(text), Line.of(("    result", "heading")), *_text(content, "dim", indent=6)]

    return Block(key, head, body, folded=True, brief=brief, inside=inside, copy=content)


def _arguments(text: str) -> list[Line]:
    return _text(pretty(text), "code", indent=6)


def _result(key: str, title: str, content: str, inside: str | None) -> Block:
    head = Line.of((f"  {title}  ", "dim"), (cells.line(content, 60), "dim"))
    body = partial(_text, content.rstrip("\n"), "dim", 4)
    return Block(key, head, body, folded=line_count(content) > LONG or None, inside=inside, copy=content)


def _tools_offered(tools: Any) -> list[Block]:
    if not isinstance(tools, list) or not tools:
        return []
    names = [cells.line(name, 40) for name in tool_names(tools)]
    head = Line.of((figures.many(len(tools), "tool") + " offered  ", "dim"), (", ".join(names)[:200], "faint"))
    return [Block("tools", head, lambda: [*_text(json.dumps(tools, indent=2), "dim", indent=4), Line()], folded=True)]


def _reply(record: Json, response: bytes | None) -> list[Block]:
    symbol, word, role = records.state(record)
    if record.get("state") == "open":
        so_far = _text(response.decode("utf-8", "replace"), indent=2) if response else []
        waits = Line.of(("  … still answering", "agent"))
        return [Block("reply", Line.of(("assistant", "agent")), [*so_far, waits])]
    messages = answered(parsed(response))
    found: list[Block] = []
    if messages is not None:
        for number, message in enumerate(messages):
            content = content_text(message.get("content"))
            found += _assistant(f"reply{number}", message, content, {}, set(), None)
    elif response:
        found += _unread("reply", response)
    if word != "complete":
        found.append(Block("ending", None, [Line.of((f"{symbol} {word}", role))]))
    return found


def pretty(arguments: str) -> str:
    """Arguments of a tool call, indented if they are JSON."""
    value = parsed(arguments.encode("utf-8", "replace"))
    return arguments if value is None else json.dumps(value, ensure_ascii=False, indent=2)
