"""Recorded requests and replies of every wire format as the messages of a chat, which is what a conversation shows.

Nothing is left out: a part or item of a kind that is not known stays in the content, and is shown by its name.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def asked(request: Any) -> list[Json] | None:
    """The messages of a request; None for what is a request in no known format."""
    if not isinstance(request, dict):
        return None
    if "input" in request or "previous_response_id" in request:
        return _system(request.get("instructions")) + _items(request.get("input"))
    if not isinstance(request.get("messages"), list):
        return None
    found = _system(request.get("system"))
    for message in request["messages"]:
        if isinstance(message, dict):
            found += _message(message)
    return found


def answered(reply: Any) -> list[Json] | None:
    """The messages of a reply, one a choice; None for what is a reply in no known format."""
    if not isinstance(reply, dict):
        return None
    if isinstance(reply.get("choices"), list):
        messages = [choice.get("message") for choice in reply["choices"] if isinstance(choice, dict)]
        return [message for message in messages if isinstance(message, dict)] or None
    if isinstance(reply.get("output"), list):
        return _items(reply["output"])
    return _message({"role": "assistant", **reply}) if isinstance(reply.get("content"), list) else None


def tool_names(tools: Any) -> list[str]:
    """The names of the tools that a request offers."""
    found = []
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            inside = tool.get("function")
            named = inside if isinstance(inside, dict) else tool
            found.append(str(named.get("name") or tool.get("type") or "?"))
    return found


def parsed(body: bytes | None) -> Any:
    """The value of a stored body; None for what is not there or no JSON."""
    if not body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def content_text(content: Any) -> str:
    """The text of a message's content; parts that are not text are named: `[image image/png 34 kB]`."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    return "\n".join(_part_text(part) for part in content)


def argument_summary(arguments: str) -> str:
    """Arguments of a tool call in one line: the values of a JSON object, else the text."""
    value = parsed(arguments.encode("utf-8", "replace"))
    if isinstance(value, dict):
        return "  ".join(v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in value.values())
    return arguments


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    image = part.get("image_url")
    if isinstance(image, dict):
        address = str(image.get("url") or "")
        if address.startswith("data:"):
            kind = address[5:].partition(";")[0]
            return f"[image {kind} {_size(len(address) * 3 // 4)}]"
        return f"[image {address}]"
    return f"[{part.get('type') or 'part'} {_size(len(json.dumps(part)))}]"


def _size(number: int) -> str:
    for limit, unit, step in ((1000, "B", 1), (10**6, "kB", 10**3)):
        if number < limit:
            return f"{number / step:.0f} {unit}"
    return f"{number / 10**6:.0f} MB"


def _system(text: Any) -> list[Json]:
    return [{"role": "system", "content": text}] if text else []


def _message(message: Json) -> list[Json]:
    """A message; the results of tools and the calls in its content are taken out of it."""
    content = message.get("content")
    if not isinstance(content, list):
        return [message]
    results: list[Json] = []
    rest: list[Any] = []
    calls: list[Json] = []
    thoughts: list[str] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_result":
            result = _parts(part.get("content"))
            results.append({"role": "tool", "tool_call_id": part.get("tool_use_id"), "content": result})
        elif kind == "tool_use":
            calls.append(_call(part.get("id"), part.get("name"), part.get("input")))
        elif kind == "thinking":
            thoughts.append(str(part.get("thinking") or ""))
        else:
            rest.append(part)
    if not (results or calls or thoughts):
        return [{**message, "content": _parts(content)}]
    found: Json = {**message, "content": _parts(rest)}
    if calls:
        found["tool_calls"] = calls
    if thoughts:
        found["reasoning_content"] = "\n\n".join(thoughts)
    return [*results, found] if rest or calls or thoughts else results


def _items(given: Any) -> list[Json]:
    """The items of a response's input or output; what the assistant says and calls in a row is one message."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    found: list[Json] = []
    open_turn: Json | None = None
    for item in given if isinstance(given, list) else ():
        if not isinstance(item, dict):
            continue
        kind = str(item.get("type") or "message")
        if kind.endswith("_call_output"):
            output = item.get("output")
            found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": _parts(output)})
            open_turn = None
        elif kind == "message" and item.get("role") != "assistant":
            found.append({"role": item.get("role"), "content": _parts(item.get("content"))})
            open_turn = None
        else:
            if open_turn is None:
                open_turn = {"role": "assistant", "content": []}
                found.append(open_turn)
            _say(open_turn, kind, item)
    return found


def _say(turn: Json, kind: str, item: Json) -> None:
    """Add an item of the assistant's to its turn."""
    if kind == "message":
        content = item.get("content")
        turn["content"] += content if isinstance(content, list) else [{"type": "text", "text": content}]
    elif kind == "reasoning":
        parts = item.get("content") or item.get("summary") or ()
        said = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
        turn["reasoning_content"] = "\n\n".join([*filter(None, [turn.get("reasoning_content")]), *said])
    elif kind.endswith("_call"):
        given = item.get("arguments", item.get("input", item.get("action")))
        turn.setdefault("tool_calls", []).append(_call(item.get("call_id"), item.get("name") or kind, given))
    else:
        turn["content"].append(item)


def _call(call_id: Any, name: Any, arguments: Any) -> Json:
    text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def _parts(content: Any) -> Any:
    """A content with its pictures as chat has them."""
    return [_part(part) for part in content] if isinstance(content, list) else content


def _part(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    source = part.get("source") if kind == "image" else None
    if isinstance(source, dict):
        data = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": source.get("url") or data}}
    return part
