"""The tools that one conversation may use: the agent's own four, the version's, and its agents and graphs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from reef.native.harness import Harness
from reef.native.home import Limits
from reef.native.programs import Hooks, call_tool
from reef.native.screen import Screen
from reef.native.tools import BUILT_IN, Result, built_in, cut, schema

Json = dict[str, Any]
Delegate = Callable[[str, str], Result]
"""Gives a task to an agent or a graph of this name."""
_TASK: Json = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "what is to be done, with all that must be known for it"}},
    "required": ["task"],
}


class Toolbox:
    """What is offered to the model, and how a call of it is carried out."""

    def __init__(
        self,
        harness: Harness,
        limits: Limits,
        cwd: Path,
        hooks: Hooks,
        screen: Screen,
        delegate: Delegate | None = None,
        allowed: Collection[str] | None = None,
    ) -> None:
        """`delegate` is None for a conversation that may not start others; `allowed` narrows by name."""
        self._harness = harness
        self._limits = limits
        self._cwd = cwd
        self._hooks = hooks
        self._screen = screen
        self._delegate = delegate
        offered = {name: schema(name, *told) for name, told in BUILT_IN.items()}
        if delegate is not None:
            for name, agent in harness.agents.items():
                offered[name] = schema(name, agent.description, _TASK)
            for name, graph in harness.graphs.items():
                offered[name] = schema(name, graph.description, _TASK)
        for name, (_, facts) in harness.tools.items():
            offered[name] = schema(name, facts.description, facts.parameters)
        self._offered = {name: tool for name, tool in offered.items() if allowed is None or name in allowed}

    @property
    def offered(self) -> list[Json]:
        """The tools as a request holds them."""
        return list(self._offered.values())

    def call(self, call: Json) -> Result:
        """Carry out one call of the model, with the hooks around it. Only an interrupt is raised."""
        function = call.get("function") or {}
        name, given = str(function.get("name")), function.get("arguments") or "{}"
        arguments = _arguments(given)
        self._screen.tool(name, given if arguments is None else arguments)
        result = self._result(name, arguments)
        self._screen.result(name, result)
        return result

    def _result(self, name: str, arguments: Json | None) -> Result:
        if name not in self._offered:
            return Result(f"there is no tool {name!r} (tools: {', '.join(self._offered)})", failed=True)
        if arguments is None:
            return Result("the arguments are not one JSON object; send them again", failed=True)
        answer, faults = self._hooks.run("before_tool", name, arguments=arguments)
        self._screen.notes(faults)
        if "block" in answer:
            return Result(f"not done: {answer['block']}", failed=True)
        result = self._run(name, arguments)
        about = {"arguments": arguments, "text": result.text, "failed": result.failed}
        answer, faults = self._hooks.run("after_tool", name, **about)
        self._screen.notes(faults)
        if "result" in answer:
            return Result(cut(answer["result"], self._limits.tool_output_bytes), result.failed)
        return result

    def _run(self, name: str, arguments: Json) -> Result:
        # A tool of the version goes before one of the same name that the agent brings.
        if name in self._harness.tools:
            return call_tool(self._harness.tools[name][0], arguments, self._cwd, self._limits.tool_output_bytes)
        if self._delegate is not None and (name in self._harness.agents or name in self._harness.graphs):
            task = arguments.get("task")
            if not isinstance(task, str) or not task.strip():
                return Result("'task' is missing", failed=True)
            done = self._delegate(name, task)
            return Result(cut(done.text, self._limits.tool_output_bytes), done.failed)
        return built_in(name, arguments, self._cwd, self._limits)


def _arguments(given: Any) -> Json | None:
    if isinstance(given, dict):
        return given
    try:
        value = json.loads(given) if isinstance(given, str) else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
