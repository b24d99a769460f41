"""One turn: the person's words, then calls to the model and to tools until the model has nothing more to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reef.errors import Failed, ReefError, UpstreamFailed
from reef.harness.declared import AgentFacts, GraphFacts, Node
from reef.native.harness import Harness
from reef.native.home import Home
from reef.native.model import Caller, Reply
from reef.native.programs import Hooks
from reef.native.prompt import fitting, refused_at, system_prompt
from reef.native.screen import Screen
from reef.native.session import Session
from reef.native.toolbox import Toolbox
from reef.native.tools import Result

Json = dict[str, Any]
Add = Callable[..., None]


class Turns:
    """Takes the turns of one session."""

    def __init__(self, home: Home, session: Session, screen: Screen, caller: Caller, cwd: Path) -> None:
        self._home = home
        self._session = session
        self._screen = screen
        self._caller = caller
        self._cwd = cwd

    def take(self, text: str, harness: Harness) -> str:
        """Answer `text` on `harness`. Returns the answer's last text.

        Raises ReefError when no answer can be had; the session goes on from there all the same, also after an
        interrupt.
        """
        self._session.close_calls()
        hooks = Hooks(harness, self._session.id, self._cwd)
        answer, faults = hooks.run("turn_start", text=text)
        self._screen.notes([*harness.faults, *faults])
        system = system_prompt(harness, self._cwd)
        if note := answer.get("note"):
            system += f"\n\nFor this turn:\n{note}"

        def delegate(name: str, task: str) -> Result:
            return self._delegated(name, task, harness, hooks)

        tools = Toolbox(harness, self._home.limits, self._cwd, hooks, self._screen, delegate)
        self._session.shown(system, tools.offered)
        self._session.add({"role": "user", "content": text})
        try:
            said = self._converse(system, tools, self._session.messages, self._session.add, aloud=True)
        finally:
            self._session.close_calls()
        self._screen.notes(hooks.run("turn_end", text=said)[1])
        return said

    def _converse(self, system: str, tools: Toolbox | None, messages: list[Json], add: Add, aloud: bool) -> str:
        """Call the model until it calls no more tools. `add` appends to `messages`."""
        model, rounds = self._home.model, self._home.limits.tool_rounds
        offered = tools.offered if tools is not None else []
        for _ in range(rounds):
            sent, left_out = fitting(system, offered, messages, model)
            try:
                reply = self._ask(sent, offered, add, aloud)
            except UpstreamFailed as error:
                # Some texts have more tokens than their length tells: digits, hex, other alphabets.
                tighter, left_out = fitting(system, offered, messages, model, refused_at(error.message))
                if refused_at(error.message) is None or tighter == sent:
                    raise
                reply = self._ask(tighter, offered, add, aloud)
            add(
                reply.message(),
                model=model.name,
                receipt=reply.receipt,
                reply=reply.id,
                finish=reply.finish,
                usage=reply.usage,
                left_out=left_out or None,
            )
            if aloud:
                self._screen.end_text()
                self._screen.event("reply", text=reply.text, receipt=reply.receipt, finish=reply.finish)
            if reply.finish == "length":
                self._screen.note(f"(the reply was cut at {model.max_tokens:,} tokens)")
            if not reply.calls or tools is None:
                return reply.text
            for call in reply.calls:
                result = tools.call(call)
                add({"role": "tool", "tool_call_id": call["id"], "content": result.text}, failed=result.failed or None)
        raise Failed(f"the turn was ended after {rounds} rounds of tools", "reef-native --continue")

    def _ask(self, sent: list[Json], offered: list[Json], add: Add, aloud: bool) -> Reply:
        said: list[str] = []

        def on_text(piece: str) -> None:
            said.append(piece)
            if aloud:
                self._screen.text(piece)

        try:
            return self._caller.ask(sent, offered, on_text)
        except KeyboardInterrupt:
            # What the model had said is part of the conversation that goes on.
            if said:
                add({"role": "assistant", "content": "".join(said)}, model=self._home.model.name, finish="interrupted")
            raise

    def _delegated(self, name: str, task: str, harness: Harness, hooks: Hooks) -> Result:
        try:
            if name in harness.graphs:
                return Result(self._run_graph(harness.graphs[name], task, harness, hooks))
            return Result(self._run_agent(harness.agents[name], task, harness, hooks))
        except ReefError as error:
            return Result(f"{name}: {error.message}", failed=True)

    def _run_agent(self, agent: AgentFacts, task: str, harness: Harness, hooks: Hooks) -> str:
        # Without a delegate: an agent starts no agent.
        tools = Toolbox(harness, self._home.limits, self._cwd, hooks, self._screen, None, agent.tools)
        return self._aside(agent.prompt, task, tools)

    def _run_graph(self, graph: GraphFacts, task: str, harness: Harness, hooks: Hooks) -> str:
        done: dict[str, str] = {}
        for node in graph.nodes:
            words = "\n\n".join([task, *(f"Result of {name}:\n{done[name]}" for name in node.after)])
            self._screen.note(f"· {node.id}")
            done[node.id] = self._run_node(node, words, harness, hooks)
        return "\n\n".join(done[name] for name in graph.last)

    def _run_node(self, node: Node, words: str, harness: Harness, hooks: Hooks) -> str:
        if node.agent is None:
            return self._aside(node.prompt or "", words, None)
        agent = harness.agents.get(node.agent)
        if agent is None:
            raise Failed(f"there is no agent {node.agent!r}")
        return self._run_agent(agent, words, harness, hooks)

    def _aside(self, prompt: str, task: str, tools: Toolbox | None) -> str:
        """A conversation of its own, of which only the result is kept."""
        messages: list[Json] = [{"role": "user", "content": task}]

        def add(message: Json, **facts: Any) -> None:
            messages.append(message)

        where = f"{prompt}\n\nYou work in {self._cwd}."
        return self._converse(where, tools, messages, add, aloud=False)
