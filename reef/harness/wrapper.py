"""What `reef-<adapter>` runs: `python -m reef.harness.wrapper pi ARGS…`.

A word of reef's own (`evolve`, `good`, `versions`, …) becomes the `reef` command that does it; anything else goes to
the agent, unchanged. The agent runs on the installed tree, whose files are checked first, in a home of its own, with a
session token in place of every key: it can call the model, report and ask, and it decides nothing.
"""

from __future__ import annotations

import fnmatch
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reef import needs
from reef.client import Client, current_scenario
from reef.discovery import SESSION_VARIABLE
from reef.errors import Failed, ReefError, Refused, UsageError
from reef.harness import own_places
from reef.harness.adapter import load_adapter
from reef.harness.adapter_file import Adapter
from reef.harness.agents import agent_argv
from reef.harness.binding import Served, bound_environment, own_arguments
from reef.harness.confirming import CONFIRM_VARIABLE, Confirming
from reef.harness.deciding import Deciding
from reef.harness.home import prepare_alongside, prepare_home
from reef.harness.install import SET_BY_WRAPPER, Install, installed, locked
from reef.harness.launch import Agent, launch
from reef.harness.remaining import end_remaining
from reef.harness.resume import on_terminal, resume_line
from reef.harness.said import said_after, say_why
from reef.paths import Paths
from reef.provided import provided
from reef.text import safe, told

COMMANDS: dict[str, tuple[list[str], str]] = {
    "evolve": (["ask"], 'ask for a change: evolve "…" [--wait] [--timeout SECONDS]'),
    "harness": (["ask"], "the same as evolve"),
    "wait": (["asks", "watch"], "follow an ask until it is settled: wait NUMBER [--timeout SECONDS]"),
    "update": (["versions", "install"], "install the newest version, or one: update [vN]"),
    "versions": (["versions", "list"], "list the versions"),
    "try": (["versions", "try"], "run one session with a version: try v3 [ARGUMENTS OF THE AGENT]"),
    "good": (["good"], 'rate the last answer here as good: good ["note"]'),
    "bad": (["bad"], 'rate the last answer here as bad: bad ["note"]'),
    "report": (["report"], "send a report on receipts: report RECEIPT --score 1"),
    "setup": (["setup"], "what the version needs of this machine: setup [--set NAME=VALUE]"),
    "page": (["page"], "open the page of a version or of an ask: page v3, page 7"),
    "doctor": (["doctor"], "look at everything that reef needs"),
}
"""A word of the wrapper: the `reef` command behind it, and one line of help."""

_PROVIDERS = (
    "AI_GATEWAY ANTHROPIC ANT_LING AZURE BASETEN CEREBRAS CLOUDFLARE COHERE DASHSCOPE DEEPSEEK FIREWORKS GEMINI GOOGLE"
    " GROQ KIMI META MINIMAX MISTRAL MOONSHOT NVIDIA OLLAMA OPENAI OPENCODE OPENROUTER PERPLEXITY QWEN RADIUS REPLICATE"
    " TOGETHER TYPESAFE VOYAGE XAI XIAOMI ZAI"
)
PROVIDER_VARIABLES = (
    *(
        f"{name}*_{what}"
        for name in _PROVIDERS.split()
        for what in ("API_KEY", "API_KEYS", "AUTH_TOKEN", "OAUTH_TOKEN")
    ),
    "*_BASE_URL",
    "*_API_BASE",
    "ANTHROPIC_*",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_*",
    "COPILOT_GITHUB_TOKEN",
    "OPENAI_*",
)
"""Variables of the person's shell that would lead the agent past reef, or hand it a model provider's key.

Other keys stay: the agent works on the person's project and may need them.
"""
ALONGSIDE = "--alongside"
"""First argument: run on top of the person's own configuration."""
_KEPT = ("REEF_HOME", "REEF_BIN_DIR")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MODEL_VARIABLE = "REEF_MODEL"
"""Holds what `_model` found, for an agent that this one starts: its session may not ask the daemon for it."""


def main(argv: list[str]) -> int:
    """Run the wrapper of the adapter `argv[0]` with the other arguments. Returns the exit status."""
    try:
        if not argv:
            raise UsageError("no agent is named", "reef agents list")
        paths = Paths.from_environ()
        adapter = load_adapter(argv[0], paths)
        arguments = argv[1:]
        if arguments[:1] == ["help"]:
            sys.stdout.write(_help(adapter))
            return 0
        scenario, _ = current_scenario(paths)
        if arguments and arguments[0] in COMMANDS:
            _become_reef(COMMANDS[arguments[0]][0], arguments, adapter, scenario)
        return run_agent(adapter, arguments, paths, scenario)
    except ReefError as error:
        sys.stderr.write(told(error.message, error.hint))
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def run_agent(adapter: Adapter, arguments: list[str], paths: Paths, scenario: str) -> int:
    """Run the agent on the installed tree of `scenario`. Returns its exit status; raises ReefError before it starts."""
    argv = agent_argv(adapter, paths)
    installed(paths, scenario, adapter.name).verify()
    alongside = arguments[:1] == [ALONGSIDE]
    if alongside:
        arguments = arguments[1:]
    if arguments in (["--help"], ["-h"]):
        sys.stdout.write(_words(adapter))
        sys.stdout.flush()
    with Client.connect(paths, told=_say_started) as client:
        around = _provided(client, adapter, scenario, paths)
        session = _session(client, adapter, scenario, paths)
        try:
            model = _model(client, scenario, adapter)
            with locked(paths.harness / scenario / adapter.name):
                # What is checked is what is linked: an install that runs at this moment waits.
                install = installed(paths, scenario, adapter.name)
                install.verify()
                prepare = prepare_alongside if alongside else prepare_home
                values = prepare(install, adapter, Served(client.url, *model), Path.cwd())
            values["token"] = str(session["token"])
            bound = bound_environment(adapter, values, alongside)
            kept = adapter.alongside.kept if alongside and adapter.alongside else ()
            environment = agent_environment(around, adapter, install, bound, client.url, session, kept)
            environment["REEF_WRAPPER"] = str(paths.bin / f"reef-{adapter.name}")
            environment[_MODEL_VARIABLE] = json.dumps(model)
            began = time.time()
            command = [*argv, *own_arguments(adapter, values, alongside), *arguments]
            if session.get("opened"):
                with own_places.noting_start(adapter, paths), said_after(adapter, arguments) as more:
                    status = _launch_confirming(command, environment | more, adapter, paths, scenario)
                say_why(client, adapter, scenario, str(session["session"]), status, model[1])
                _say_ended(adapter, end_remaining(str(session["token"])))
            else:
                # An agent that another one started decides through nobody: its wrapper is inside a session itself.
                status = launch(command, environment)
            line = (
                resume_line(adapter, Path(str(values["home"])), arguments, began)
                if status == 0 and on_terminal()
                else None
            )
            if line is not None:
                sys.stdout.write(safe(line) + "\n")
            return status
        finally:
            if session.get("opened"):
                # The daemon also ends it when this process is gone.
                with suppress(ReefError):
                    client.close_session(session["session"])


def _launch_confirming(
    command: list[str], environment: dict[str, str], adapter: Adapter, paths: Paths, scenario: str
) -> int:
    """Launch the agent with this wrapper's socket at its side, on which it can ask for the person's decision."""
    agent = Agent()
    deciding = Deciding(paths, adapter, scenario, agent)
    agent.ended = deciding.close
    confirming = Confirming(paths, deciding.decide)
    try:
        return launch(command, environment | {CONFIRM_VARIABLE: str(confirming.path)}, agent)
    finally:
        deciding.close()
        confirming.close()


def _provided(client: Client, adapter: Adapter, scenario: str, paths: Paths) -> dict[str, str]:
    """This process's environment with what the person has provided for the installed version.

    Raises Refused when the version needs something that is not there.
    """
    version = installed(paths, scenario, adapter.name).version
    rows = client.releases(scenario)["releases"]
    wanted = next((needs.of(row) for row in rows if row["version"] == version), [])
    there = provided(paths, scenario, adapter.name)
    unmet = there.unmet(wanted, os.environ)
    needs.refuse(f"v{version} of scenario {scenario}", unmet, scenario, rows, version)
    return there.environ(os.environ, wanted)


def _say_ended(adapter: Adapter, names: list[str]) -> None:
    """Tell a person who watches what was ended with the agent."""
    if names and on_terminal():
        told = ", ".join(sorted(set(names)))
        sys.stderr.write(safe(f"reef: ended what {adapter.title} left running: {told}") + "\n")


def _say_started(parts: list[str]) -> None:
    sys.stderr.write(safe(" · ".join(parts)) + "\n")


def agent_environment(
    environ: Mapping[str, str],
    adapter: Adapter,
    install: Install,
    bound: Mapping[str, str],
    url: str,
    session: Mapping[str, Any],
    stays: Iterable[str] = (),
) -> dict[str, str]:
    """The agent's environment: the person's, without any key or address but reef's own, which are in `bound`.

    What a pattern of `stays` names is left, although the adapter removes it.
    """
    wrapper_set = environ.get(SET_BY_WRAPPER, "").split()
    kept = {
        name: value
        for name, value in environ.items()
        if name not in wrapper_set
        and not _matches(name, PROVIDER_VARIABLES)
        and (_matches(name, stays) or not _matches(name, adapter.run.removed))
        and (not name.startswith("REEF_") or name in _KEPT)
    }
    # A switch that the person set in the shell is theirs.
    switches = {name: value for name, value in adapter.run.environment.items() if name not in kept}
    own = {
        "REEF_URL": url,
        SESSION_VARIABLE: str(session["token"]),
        "REEF_SESSION_ID": str(session["session"]),
        "REEF_SCENARIO": install.scenario,
        "REEF_VERSION": f"v{install.version}",
        "REEF_RELEASE": install.release_id,
        "REEF_TREE": str(install.tree),
    }
    if adapter.render.rules:
        own["REEF_RULES"] = str(install.tree / adapter.render.rules)
    own |= {f"REEF_SHELL_{name}": kept.get(name, "") for name in adapter.run.shell}
    return kept | switches | _straight_to(url, kept) | dict(bound) | own


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name.upper(), pattern) for pattern in patterns)


def _straight_to(url: str, environ: Mapping[str, str]) -> dict[str, str]:
    """`NO_PROXY` in both spellings with this machine and the daemon added: a proxy would read the session's token."""
    hosts = dict.fromkeys([*_LOOPBACK, urlsplit(url).hostname or ""])
    found = {}
    for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")):
        theirs = environ.get(name) or environ.get(other) or ""
        entries = [entry.strip() for entry in theirs.split(",") if entry.strip()]
        missing = [host for host in hosts if host and host not in entries]
        # A lone star means everything, and means nothing any more once it has company.
        found[name] = theirs if entries == ["*"] else ",".join([*entries, *missing])
    return found


def _session(client: Client, adapter: Adapter, scenario: str, paths: Paths) -> dict[str, Any]:
    """A session of this run; an agent that starts an agent hands its own on."""
    token = os.environ.get(SESSION_VARIABLE)
    if token:
        inside = os.environ.get("REEF_SCENARIO")
        if inside is not None and inside != scenario:
            raise Refused(f"this session belongs to scenario {inside}, not {scenario}")
        return {"token": token, "session": os.environ.get("REEF_SESSION_ID", "")}
    version = installed(paths, scenario, adapter.name).version
    opened = client.open_session(scenario, adapter.name, version, str(Path.cwd()), os.getpid())
    return opened | {"opened": True}


def _model(client: Client, scenario: str, adapter: Adapter) -> tuple[str, int | None, int | None]:
    """Model id, context window, most tokens of a reply; None for a size that the server does not name.

    The id is the one that the person configured where the scenario uses the daemon's own engine, else the first that
    the scenario's engine lists.
    """
    if os.environ.get(SESSION_VARIABLE) and (told := os.environ.get(_MODEL_VARIABLE)):
        model, window, most = json.loads(told)
        return model, window, most
    engine = client.status().get("engine") or {}
    engines = {row["name"]: row.get("engine") for row in client.scenarios()["scenarios"]}
    own = engines.get(scenario)
    configured = engine.get("model") if own is None else None
    rows = [row for row in client.models(scenario).get("data") or [] if isinstance(row, dict) and row.get("id")]
    listed = next((row for row in rows if row["id"] == configured), None)
    row = listed or ({"id": configured} if configured else rows[0] if rows else None)
    if row is None:
        raise Failed("the model server lists no model", "reef status")
    facts = row | (row["meta"] if isinstance(row.get("meta"), dict) else {})
    window = _size(facts, "context_window", "context_length", "max_model_len", "max_context_length", "n_ctx")
    if window is None and own is None:
        window = _size(engine, "context_window")
    if window is None and (trained := _size(facts, "n_ctx_train")):
        # What a model was trained for says only what it cannot exceed.
        window = min(trained, adapter.models.context_window)
    return str(row["id"]), window, _size(facts, "max_output_tokens", "max_tokens")


def _size(facts: Mapping[str, Any], *names: str) -> int | None:
    found = (facts.get(name) for name in names)
    return next(
        (value for value in found if isinstance(value, int) and not isinstance(value, bool) and value > 0), None
    )


def _become_reef(command: list[str], arguments: list[str], adapter: Adapter, scenario: str) -> None:
    """Replace this process by the `reef` command behind a word. Does not return."""
    rest = arguments[1:]
    if command == ["versions", "list"] and rest and not rest[0].startswith("-"):
        command, rest = ["versions", rest[0]], rest[1:]
    extra = [] if command == ["doctor"] else ["--scenario", scenario]
    if command in (["versions", "install"], ["versions", "try"], ["setup"]):
        extra += ["--adapter", adapter.name]
    if command == ["versions", "try"] and "--" not in rest:
        rest = [*rest[:1], "--", *rest[1:]]
    argv = [*command, *extra, *rest]
    os.execv(sys.executable, [sys.executable, "-P", "-m", "reef.cli.app", *argv])


def _words(adapter: Adapter) -> str:
    """Three lines before the agent's own help."""
    named = f"Words of reef's own, before those of {adapter.title} (reef-{adapter.name} help explains them):"
    return f"{named}\n  {'  '.join(COMMANDS)}\n\n"


def _help(adapter: Adapter) -> str:
    lines = [f"reef-{adapter.name} runs {adapter.title} on the harness that reef installed.", ""]
    lines += [f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items()]
    if adapter.alongside is not None:
        lines += ["", f"reef-{adapter.name} {ALONGSIDE} … runs it on top of your own configuration of {adapter.title}."]
    lines += ["", f"Anything else goes to {adapter.title}: reef-{adapter.name} --help", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
