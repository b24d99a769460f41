"""`reef up`: the daemon in the background, with the model choice said aloud and a person's one confirmation."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from reef.cli import login, output
from reef.cli.flags import Wanted, understand
from reef.cli.group import command, single
from reef.cli.look import ERR, OUT
from reef.cli.scope import person_only
from reef.cli.serve import ConfigOption, ModelOption, PrintOption, RecipeOption, show_settings
from reef.client import Client, running, start_daemon
from reef.config import Resolved
from reef.errors import Conflict, Failed, ReefError
from reef.paths import Paths
from reef.text import one_line, safe

app = single()
_POLL_S = 0.3
_OLLAMA_PORT = 11434


@command(
    app,
    examples=("reef up", "reef up --model ollama/qwen3", "reef up --recipe reefine --reef.port 8901 --at-login"),
    free=True,
    usage="[--KEY VALUE]…",
)
def up(
    context: typer.Context,
    config: ConfigOption = None,
    recipe: RecipeOption = None,
    model: ModelOption = None,
    at_login: Annotated[
        bool | None, typer.Option("--at-login/--no-at-login", help="Start it at every login from now on, or no more.")
    ] = None,
    print_config: PrintOption = False,
) -> None:
    """Start the daemon in the background.

    It takes every flag of `reef serve`. Without a model in the settings it says what it found on this machine: a model
    server of yours or a provider key is used only after you said yes once on a terminal, otherwise the embedded model
    answers, whose weights are fetched once.
    """
    paths = Paths.from_environ()
    wanted = understand(paths, context.args, config, recipe, model)
    if print_config:
        show_settings(wanted.resolved)
        return
    if at_login is not None:
        person_only("change what starts at login")
        if not at_login:
            _set_login(wanted, False)
            return
    found = running(paths)
    if found is None:
        _say_choice(wanted.resolved)
    started = _start(paths, wanted)
    if at_login:
        # Not before: what does not start now is not to be tried at every login.
        _set_login(wanted, True)
    already = found is not None and found.get("pid") == started.get("pid")
    with Client(started, paths) as client:
        status = wait_ready(client)
        tell(status, already)
        _check_model(client, status)
    if not already:
        _tell_next(status)


def _start(paths: Paths, wanted: Wanted) -> dict[str, Any]:
    try:
        return start_daemon(paths, wanted.to_serve(), wanted.resolved.settings.reef.ready_timeout)
    except Conflict as error:
        typed = sys.argv[1:]
        # A key that was typed is not typed again by an error.
        again = "up …" if any("key" in word or "token" in word for word in typed) else shlex.join(typed)
        raise Conflict(error.message, f"reef down && reef {again}") from None


def _say_choice(resolved: Resolved) -> None:
    """Say what will answer and why: the settings name it, or it has to be looked for."""
    inference = resolved.settings.inference
    if inference.backend == "auto" and inference.upstream_url is None:
        choose_model()
        return
    key, named = "inference.upstream-url", f"upstream {inference.upstream_url or ''}"
    if inference.backend in ("embedded", "litellm"):
        model = inference.upstream_model if inference.backend == "litellm" else None
        key, named = "inference.backend", f"{inference.backend} {model or ''}".strip()
    output.say(f"engine {ERR.joined(safe(named), f'named by {safe(resolved.origins.get(key, key))}')}")


def choose_model() -> None:
    """Say what could answer on this machine and why one is chosen; ask once where a person's yes is needed."""
    told = _discover("--json")
    found: list[dict[str, Any]] = told.get("found") or []
    for item in found:
        why_not = item.get("why_not")
        reason = f"not used: {why_not}" if why_not else str(item.get("reason") or "")
        output.say(f"found  {ERR.joined(_named(item), safe(reason))}")
    open_to_choice = [item for item in found if not item.get("why_not") and not item.get("confirmed")]
    if open_to_choice and output.can_ask():
        told = _discover("--confirm", _asked(open_to_choice))
    choice = told.get("choice") or {}
    output.say(f"engine {ERR.joined(_named(choice), safe(str(choice.get('reason') or '')))}")
    if open_to_choice and not output.can_ask():
        output.say("what was found is used after your yes: run `reef up` on a terminal, or name it with --model")


def _asked(found: list[dict[str, Any]]) -> str:
    """The kind that the person says yes to; `embedded` when to none."""
    for item in found:
        if output.confirm(f"use {_named(item)} for every call?", True):
            return str(item["kind"])
    return "embedded"


def _named(item: dict[str, Any]) -> str:
    return safe(f"{item.get('kind', 'embedded')} {item.get('model') or ''}".strip())


def _discover(*arguments: str) -> dict[str, Any]:
    """Run the search for model servers, a program of its own. Raises Failed with what it said."""
    command_line = [sys.executable, "-P", "-m", "reef.engines.discovery", *arguments]
    done = subprocess.run(command_line, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        found = json.loads(done.stdout) if done.stdout.strip() else {}
    except ValueError:
        found = {}
    if done.returncode != 0 or not isinstance(found, dict):
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise Failed(
            f"looking for model servers failed: {said[-1] if said else done.returncode}", "reef up --model embedded"
        )
    return found


def wait_ready(client: Client) -> dict[str, Any]:
    """Wait until the engine has started or failed, showing what it does meanwhile. Returns the last status."""
    progress = output.Progress()
    try:
        while True:
            status = client.status()
            engine = status.get("engine") or {}
            detail = one_line(str(engine.get("detail") or ""), 200)
            if engine.get("state") == "starting":
                progress.show(f"engine {safe(str(engine.get('name')))}: {detail or 'starting'}")
                time.sleep(_POLL_S)
                continue
            return status
    finally:
        progress.clear()


def tell(status: dict[str, Any], already: bool) -> None:
    """Say that the daemon runs, and with what. Raises Failed when its engine does not answer."""
    engine = status.get("engine") or {}
    named = OUT.joined(f"engine {safe(str(engine.get('name')))}", safe(str(engine.get("model") or "")))
    state = "already running" if already else "up"
    for line in OUT.folded(OUT.joined(f"daemon {state}", safe(str(status["url"])), named)):
        output.data(line)
    if engine.get("state") not in ("failed", "down"):
        return
    reason = one_line(str(engine.get("detail") or "no reason given"), 400)
    url = str(engine.get("url") or "")
    if engine["state"] == "down" and urlsplit(url).port == _OLLAMA_PORT:
        raise Failed(f"the daemon runs, but {reason}; start Ollama, and the daemon uses it", "ollama serve")
    raise Failed(f"the daemon runs, but its engine does not answer: {reason}", "reef logs")


def _check_model(client: Client, status: dict[str, Any]) -> None:
    """Say when the model server does not list the model that was named; it may still take the name."""
    model = (status.get("engine") or {}).get("model")
    try:
        rows = client.models().get("data") or []
    except ReefError:
        # Many servers have no list, and then there is nothing to compare.
        return
    listed = [str(row.get("id")) for row in rows if isinstance(row, dict)]
    if model and listed and model not in (*listed, *(name.partition(":")[0] for name in listed)):
        known = one_line(", ".join(listed), 200)
        said = f"the model server has no model {safe(str(model))} (it has: {known})"
        output.say(f"{ERR.paint('warning:', 'needs')} {said}")


def _tell_next(status: dict[str, Any]) -> None:
    agents = [safe(str(row.get("name"))) for row in status.get("agents") or [] if row.get("installed")]
    agent = f"reef-{agents[0]}" if agents else "reef agents add pi"
    output.say(f"\n{ERR.paint('next', 'dim')}   {ERR.joined('reef tui', agent, 'reef status')}")


def _set_login(wanted: Wanted, on: bool) -> None:
    try:
        told = login.enable(wanted) if on else login.disable()
    except (OSError, subprocess.SubprocessError) as error:
        raise Failed(f"the login entry cannot be changed: {error}", "reef up") from None
    for line in told:
        output.data(line)
