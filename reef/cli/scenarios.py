"""`reef scenarios`: the named workloads of this home."""

from __future__ import annotations

import json as json_module
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, command, noun
from reef.cli.look import ERR, OUT
from reef.cli.scope import daemon, person_only, read
from reef.config import model_flags, recipe_folder
from reef.errors import ConfigError, NotFound, UsageError
from reef.ids import scenario_name
from reef.paths import Paths
from reef.providers import provider_of

app = noun(
    "List, create or archive scenarios. A scenario has its own records, recipe, engine and versions.",
    "reef scenarios list",
    "reef scenarios create coding --recipe reefine",
)


@command(app, "list", examples=("reef scenarios list", "reef scenarios list --json"))
def list_scenarios(
    archived: Annotated[bool, typer.Option("--archived", help="Those that were taken out of use.")] = False,
    json: JsonOption = False,
) -> None:
    """List the scenarios of this home.

    Each with its recipe, its agent, its engine and the version that is served. The one named `default` takes every call
    that names none.
    """
    rows: list[dict[str, Any]] = read(
        Paths.from_environ(),
        lambda client: client.scenarios(archived)["scenarios"],
        lambda reader: reader.scenarios(archived),
    )
    if json:
        output.json_value(rows)
        return
    if not rows:
        output.say(
            "no scenario is archived" if archived else "no scenarios yet, create one: reef scenarios create NAME"
        )
        return
    cells = []
    for row in rows:
        version = f"v{row['version']}" if row.get("version") else OUT.symbol("–")
        engine = OUT.line(_engine(row.get("engine")))
        cells.append(
            [
                OUT.line(row["name"]),
                version,
                OUT.line(row.get("recipe")),
                OUT.line(row.get("adapter")),
                engine,
                OUT.when(row.get("created_at")),
            ]
        )
    for line in OUT.table(["scenario", "version", "recipe", "agent", "engine", "created"], cells):
        output.data(line)
    for row in rows:
        if row.get("problem"):
            output.say(
                f"{ERR.paint('warning:', 'needs')} {OUT.line(row['name'])} is broken: {ERR.line(row['problem'])}"
            )


@command(
    app,
    "create",
    examples=("reef scenarios create coding --recipe reefine", "reef scenarios create demo --engine embedded"),
)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 64 letters, digits, '.', '_' or '-'.")],
    recipe: Annotated[
        str | None, typer.Option("--recipe", metavar="NAME", help="How it learns; else the daemon's.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="ENGINE", help="`embedded`, `ollama/ID`, `openai/ID`, `bedrock/ID`, an address."
        ),
    ] = None,
    adapter: Annotated[
        str | None, typer.Option("--adapter", metavar="NAME", help="The coding agent; else the daemon's.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Create a scenario with its base version v1.

    Without --engine the daemon's own engine answers. The same name again changes nothing and ends with 0. A call with a
    new name in `x-reef-scenario` creates one too, unless `reef.allow-implicit-scenario-creation` is off.
    """
    person_only("create a scenario")
    scenario_name(name)
    paths = Paths.from_environ()
    if recipe is not None:
        _check_recipe(recipe, paths)
    spec = None if engine is None else engine_spec(engine)
    with daemon(paths) as client:
        made = client.create_scenario(name, recipe=recipe, engine=spec, adapter=adapter)
    if json:
        output.json_value(made)
        return
    config = made.get("config") or {}
    known = [f"recipe {OUT.line(str(config['recipe']))}" if config.get("recipe") else None]
    output.data(OUT.joined(f"scenario {name}", "v1" if not made.get("version") else f"v{made['version']}", *known))
    output.say(f"{ERR.paint('next', 'dim')}   reef use {name}")


@command(app, "archive", examples=("reef scenarios archive coding", "reef scenarios archive coding --json"))
def archive(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The scenario.")],
    json: JsonOption = False,
) -> None:
    """Take a scenario out of use; nothing of it is lost.

    It is no longer listed, and calls, reports and asks that name it are refused. Its records and versions stay readable
    by its name, and `reef scenarios restore` brings it back. A step that runs must end first.
    """
    person_only("archive a scenario")
    with daemon(Paths.from_environ()) as client:
        done = client.archive_scenario(name)
    if json:
        output.json_value(done)
        return
    output.data(f"scenario {name} archived")
    output.say(f"{ERR.paint('undo', 'dim')}   reef scenarios restore {name}")


@command(app, "restore", examples=("reef scenarios restore coding", "reef scenarios restore coding --json"))
def restore(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The scenario.")],
    json: JsonOption = False,
) -> None:
    """Bring an archived scenario back into use.

    With its records, reports, steps and versions as they were, and its asks still queued. A scenario that is in use
    stays as it is.
    """
    person_only("restore a scenario")
    with daemon(Paths.from_environ()) as client:
        done = client.restore_scenario(name)
    if json:
        output.json_value(done)
        return
    output.data(f"scenario {name} restored")


def engine_spec(text: str) -> str:
    """What `--engine` stands for, as the daemon takes it: `embedded`, or the JSON object of an upstream.

    Raises UsageError for anything else.
    """
    if text == "embedded" or text.startswith("{"):
        return text
    if text.startswith(("http://", "https://")):
        return json_module.dumps({"url": text})
    try:
        named = dict(model_flags(text))
    except ConfigError:
        named = {}
    url, model = named.get("inference.upstream-url") or None, named.get("inference.upstream-model")
    if url is None:
        if model is not None and provider_of(model) is not None:
            return json_module.dumps({"model": model})
        raise UsageError(
            f"{text!r} is neither `embedded`, `ollama/ID`, `openai/ID`, a vendor's model nor an address",
            "reef help providers",
        )
    key = {"key_env": "OPENAI_API_KEY"} if text.startswith("openai/") else {}
    return json_module.dumps({"url": url, "model": model} | key)


def _check_recipe(name: str, paths: Paths) -> None:
    try:
        recipe_folder(name, paths)
    except NotFound as error:
        raise UsageError(error.message, error.hint) from None


def _engine(spec: str | None) -> str:
    """An engine as people read it: `the daemon's`, `embedded`, or model and address."""
    if spec is None or not spec.startswith("{"):
        return spec or "the daemon's"
    found = json_module.loads(spec)
    return " ".join(part for part in (found.get("model"), found.get("url")) if part)
