"""`reef up`: the daemon in the background, with the model choice said aloud and a person's one confirmation."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Annotated, Any

import typer

from reef.cli import login, output
from reef.cli.flags import Wanted, understand
from reef.cli.group import command, single
from reef.cli.look import ERR, OUT
from reef.cli.scope import person_only
from reef.cli.serve import ConfigOption, ModelOption, PrintOption, RecipeOption, show_settings
from reef.client import Client, running, start_daemon
from reef.config import Resolved
from reef.errors import Failed
from reef.paths import Paths
from reef.text import one_line, safe

app = single()
_POLL_S = 0.3


@command(
    app,
    examples=("reef up", "reef up --model ollama/qwen3", "reef up --recipe reefine --reef.port 8901 --at-login"),
    free=True,
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
        _set_login(wanted, at_login)
        if not at_login:
            return
    found = running(paths)
    if found is None:
        _say_choice(wanted.resolved)
    started = start_daemon(paths, wanted.to_serve(), wanted.resolved.settings.reef.ready_timeout)
    already = found is not None and found.get("pid") == started.get("pid")
    with Client(started, paths) as client:
        status = wait_ready(client)
    _tell(status, already)


def _say_choice(resolved: Resolved) -> None:
    """Say what will answer and why: the settings name it, or it has to be looked for."""
    inference = resolved.settings.inference
    if inference.backend == "auto" and inference.upstream_url is None:
        choose_model()
        return
    key = "inference.backend" if inference.backend == "embedded" else "inference.upstream-url"
    named = "embedded" if inference.backend == "embedded" else f"upstream {inference.upstream_url or ''}"
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


def _tell(status: dict[str, Any], already: bool) -> None:
    engine = status.get("engine") or {}
    named = OUT.joined(f"engine {safe(str(engine.get('name')))}", safe(str(engine.get("model") or "")))
    state = "already running" if already else "up"
    output.data(OUT.joined(f"daemon {state}", safe(str(status["url"])), named))
    if engine.get("state") in ("failed", "down"):
        reason = one_line(str(engine.get("detail") or "no reason given"), 400)
        raise Failed(f"the daemon runs, but its engine does not answer: {reason}", "reef logs")
    if not already:
        output.say(f"\n{ERR.paint('next', 'dim')}   {ERR.joined('reef tui', 'reef agents add pi', 'reef status')}")


def _set_login(wanted: Wanted, on: bool) -> None:
    try:
        told = login.enable(wanted) if on else login.disable()
    except (OSError, subprocess.SubprocessError) as error:
        raise Failed(f"the login entry cannot be changed: {error}", "reef up") from None
    for line in told:
        output.data(line)
