"""Tools and the choice among them, in the three dialects and in the hub.

| `tool_choice` of the hub | messages | responses |
|---|---|---|
| `"auto"` | `{"type": "auto"}` | `"auto"` |
| `"required"` | `{"type": "any"}` | `"required"` |
| `"none"` | `{"type": "none"}` | `"none"` |
| `{"type": "function", "function": {"name"}}` | `{"type": "tool", "name"}` | `{"type": "function", "name"}` |
| `{"type": "allowed_tools", "allowed_tools": …}` | fewer tools, and its mode | the same without the inner object |

`parallel_tool_calls: false` of the hub is `disable_parallel_tool_use: true` inside the choice of messages.

Only functions are carried. Everything else (hosted, built-in, custom, grouped in a namespace) runs at its vendor or has
a reply of its own form; those tools are left out and their names reported.
"""

from __future__ import annotations

from typing import Any

from reef.errors import InvalidInput
from reef.gateway.translate.hub import CannotCarry, Json, entries, text_of

_FUNCTION_FIELDS = ("description", "parameters", "strict")
_NO_PARAMETERS: Json = {"type": "object", "properties": {}}
_WORDS_OF_MESSAGES = {"auto": "auto", "any": "required", "none": "none"}
_WORDS_OF_THE_HUB = {hub: word for word, hub in _WORDS_OF_MESSAGES.items()}
_LEFT_OUT = "tools of this kind are left out for this model server"


def function(name: str, fields: Json) -> Json:
    """One function of the hub; fields that are null are left out."""
    kept = {field: fields[field] for field in _FUNCTION_FIELDS if fields.get(field) is not None}
    return {"type": "function", "function": {"name": name, **kept}}


def functions_of_messages(tools: Any, place: str = "tools") -> tuple[list[Json], list[str]]:
    """A messages client's tools: the functions, and the names of those left out."""
    found: list[Json] = []
    left: list[str] = []
    for index, tool in enumerate(entries(tools, place)):
        if tool.get("type") in (None, "custom", "function") and "input_schema" in tool:
            name = text_of(tool.get("name"), f"{place}[{index}].name")
            found.append(function(name, {**tool, "parameters": tool["input_schema"], "strict": None}))
        else:
            left.append(_shown(tool))
    return found, left


def functions_of_responses(tools: Any, place: str = "tools") -> tuple[list[Json], list[str]]:
    """A responses client's tools: the functions, and the names of those left out."""
    found: list[Json] = []
    left: list[str] = []
    for index, tool in enumerate(entries(tools, place)):
        if tool.get("type") == "function":
            found.append(function(text_of(tool.get("name"), f"{place}[{index}].name"), tool))
        else:
            left.append(_shown(tool))
    return found, left


def functions_of_chat(tools: Any, place: str = "tools") -> tuple[list[Json], list[str]]:
    """A chat client's tools: the functions, and the names of those left out."""
    found: list[Json] = []
    left: list[str] = []
    for index, tool in enumerate(entries(tools, place)):
        inside = tool.get("function")
        if tool.get("type", "function") == "function" and isinstance(inside, dict):
            one = function(text_of(inside.get("name"), f"{place}[{index}].function.name"), inside)
            marks = {"cache_control": tool["cache_control"]} if tool.get("cache_control") else {}
            found.append(one | marks)
        else:
            custom = tool.get("custom")
            left.append(_shown({"type": tool.get("type"), **custom} if isinstance(custom, dict) else tool))
    return found, left


def _shown(tool: Json) -> str:
    name, kind = tool.get("name"), tool.get("type")
    return f"{kind}:{name}" if kind and name and kind != name else str(name or kind or "unnamed")


def choice_of_messages(choice: Any) -> tuple[Any, bool | None]:
    """A messages client's choice in the hub's words, and its `parallel_tool_calls` (None: not said)."""
    if not isinstance(choice, dict):
        raise InvalidInput("`tool_choice` is not an object")
    parallel = False if choice.get("disable_parallel_tool_use") is True else None
    kind = choice.get("type")
    if kind == "tool":
        return named(text_of(choice.get("name"), "tool_choice.name")), parallel
    if not isinstance(kind, str) or kind not in _WORDS_OF_MESSAGES:
        raise CannotCarry("tool_choice.type", f"{kind!r} is not known")
    return _WORDS_OF_MESSAGES[kind], parallel


def choice_of_responses(choice: Any) -> Any:
    """A responses client's choice in the hub's words."""
    if isinstance(choice, str):
        return _word(choice)
    if not isinstance(choice, dict):
        raise InvalidInput("`tool_choice` is neither a word nor an object")
    kind = choice.get("type")
    if kind == "function":
        return named(text_of(choice.get("name"), "tool_choice.name"))
    if kind == "allowed_tools":
        names = [
            text_of(tool.get("name"), f"tool_choice.tools[{index}].name")
            for index, tool in enumerate(entries(choice.get("tools"), "tool_choice.tools"))
            if tool.get("type") == "function"
        ]
        return _allowed(choice.get("mode", "auto"), names)
    raise CannotCarry("tool_choice.type", _LEFT_OUT)


def choice_of_chat(choice: Any) -> Any:
    """A chat client's choice, checked."""
    if isinstance(choice, str):
        return _word(choice)
    if not isinstance(choice, dict):
        raise InvalidInput("`tool_choice` is neither a word nor an object")
    kind = choice.get("type")
    inside = choice.get(str(kind))
    if kind == "function" and isinstance(inside, dict):
        return named(text_of(inside.get("name"), "tool_choice.function.name"))
    if kind == "allowed_tools" and isinstance(inside, dict):
        tools = entries(inside.get("tools"), "tool_choice.allowed_tools.tools")
        found, _ = functions_of_chat(tools, "tool_choice.allowed_tools.tools")
        names = [tool["function"]["name"] for tool in found]
        return _allowed(inside.get("mode", "auto"), names)
    raise CannotCarry("tool_choice.type", _LEFT_OUT)


def _word(choice: str) -> str:
    if choice not in _WORDS_OF_THE_HUB:
        raise CannotCarry("tool_choice", f"{choice!r} is not known")
    return choice


def named(name: str) -> Json:
    """The choice of one function, in the hub."""
    return {"type": "function", "function": {"name": name}}


def _allowed(mode: Any, names: list[str]) -> Json:
    if mode not in ("auto", "required"):
        raise CannotCarry("tool_choice.mode", f"{mode!r} is not known")
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named(name) for name in names]}}


def settled(hub: Json) -> tuple[list[Json], Any]:
    """The hub's tools and choice, agreed with each other: allowed tools alone are offered, without tools nothing is
    chosen. Raises CannotCarry when a tool is demanded that is not among those carried."""
    tools: list[Json] = hub.get("tools") or []
    choice = hub.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        inside = choice["allowed_tools"]
        names = {tool["function"]["name"] for tool in inside["tools"]}
        tools = [tool for tool in tools if tool["function"]["name"] in names]
        choice = inside["mode"]
    if isinstance(choice, dict):
        name = choice["function"]["name"]
        if not any(tool["function"]["name"] == name for tool in tools):
            raise CannotCarry("tool_choice", f"it names {name!r}, which is not among the functions that are carried")
    elif choice == "required" and not tools:
        raise CannotCarry("tool_choice", "it demands a tool, and no function is carried")
    return tools, choice if tools else None


# For an upstream


def tools_for_messages(tools: list[Json]) -> list[Json]:
    """Functions of the hub as tools of Anthropic messages."""
    found: list[Json] = []
    for tool in tools:
        inside = tool["function"]
        one: Json = {"name": inside["name"]}
        if "description" in inside:
            one["description"] = inside["description"]
        one["input_schema"] = inside.get("parameters") or _NO_PARAMETERS
        if inside.get("strict") is True:
            one["strict"] = True
        found.append(one | ({"cache_control": tool["cache_control"]} if "cache_control" in tool else {}))
    return found


def choice_for_messages(choice: Any, parallel: bool | None) -> Json | None:
    """A settled choice of the hub as one of Anthropic messages; None leaves it to the server."""
    if isinstance(choice, dict):
        found: Json = {"type": "tool", "name": choice["function"]["name"]}
    elif choice is not None:
        found = {"type": _WORDS_OF_THE_HUB[choice]}
    elif parallel is False:
        found = {"type": "auto"}
    else:
        return None
    if parallel is False and found["type"] != "none":
        found["disable_parallel_tool_use"] = True
    return found


def tools_for_responses(tools: list[Json]) -> list[Json]:
    """Functions of the hub as tools of OpenAI responses."""
    return [
        {
            "type": "function",
            "parameters": _NO_PARAMETERS,
            **tool["function"],
            "strict": tool["function"].get("strict") is True,
        }
        for tool in tools
    ]


def choice_for_responses(choice: Any) -> Any:
    """A choice of the hub as one of OpenAI responses."""
    if not isinstance(choice, dict):
        return choice
    if choice["type"] == "function":
        return {"type": "function", "name": choice["function"]["name"]}
    inside = choice["allowed_tools"]
    names = [{"type": "function", "name": tool["function"]["name"]} for tool in inside["tools"]]
    return {"type": "allowed_tools", "mode": inside["mode"], "tools": names}
