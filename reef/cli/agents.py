"""`reef agents`: the coding agents that reef can run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reef.cli import installing, output
from reef.cli.group import JsonOption, ScenarioOption, command, noun
from reef.cli.look import ERR, OUT
from reef.cli.scope import daemon, head_of, person_only, scenario, versions_of
from reef.errors import ConfigError, NotFound
from reef.paths import Paths

_REGISTRIES = {"npm": "npm", "pypi": "PyPI", "ships": "reef itself"}

app = noun("Install or remove a coding agent, or list them.", "reef agents list", "reef agents add pi")


@command(app, "list", examples=("reef agents list", "reef agents list --json"))
def list_agents(json: JsonOption = False) -> None:
    """List the coding agents that reef knows.

    Whether each is installed, in which version, and which scenarios have a harness installed for it.
    """
    with daemon(Paths.from_environ(), start=False) as client:
        rows = client.adapters()["adapters"]
    if json:
        output.json_value(rows)
        return
    cells = []
    for row in rows:
        installed = OUT.line(_standing(row)) or OUT.symbol("–")
        installed = OUT.paint("broken", "failed") if row.get("problem") else installed
        places = ", ".join(_place(place) for place in row.get("scenarios") or [])
        cells.append([OUT.line(row["name"]), installed, places or OUT.symbol("–")])
    for line in OUT.table(["agent", "installed", "scenarios"], cells):
        output.data(line)
    for row in rows:
        if row.get("problem"):
            output.say(f"{ERR.paint('warning:', 'needs')} {ERR.line(row['problem'])}")


@command(app, "show", examples=("reef agents show codex", "reef agents show pi --json"))
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="`reef agents list` has them.")],
    json: JsonOption = False,
) -> None:
    """Show one coding agent: how it is installed and what it can be given.

    Also what it keeps in your home without reef, what it reads there whatever home it is given, and whom it asks by
    itself.
    """
    with daemon(Paths.from_environ(), start=False) as client:
        rows = {row["name"]: row for row in client.adapters()["adapters"]}
    if name not in rows:
        raise NotFound(f"there is no agent {name!r} (known: {', '.join(sorted(rows))})", "reef agents list")
    row = rows[name]
    if json:
        output.json_value(row)
        return
    if row.get("problem"):
        raise ConfigError(row["problem"], "reef agents list")
    for head, text in _facts(row):
        output.data(f"{head:<10} {OUT.line(text)}")


@command(app, "add", examples=("reef agents add pi", "reef agents add pi -s coding --json"))
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="`reef agents list` has them.")],
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Install a coding agent and its harness.

    The pinned program goes into reef's own folder together with the Node it needs; then the head of the scenario, or
    the version that is pinned, is installed and the command `reef-NAME` is linked. Your own installation and
    configuration of the agent stay as they are.
    """
    person_only("install an agent")
    paths = Paths.from_environ()
    chosen = scenario(paths, scenario_name, quiet=json)
    with daemon(paths) as client:
        head = head_of(versions_of(client, chosen))
        done = installing.run(client.install_harness(chosen, name, None, head), name)
    if json:
        output.json_value(done)
        return
    installing.tell(done)


@command(app, "remove", examples=("reef agents remove pi", "reef agents remove pi -s coding --yes"))
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="`reef agents list` has them.")],
    scenario_name: ScenarioOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    json: JsonOption = False,
) -> None:
    """Remove what reef installed for a coding agent.

    Its harness goes, with the home that reef gave the agent and the sessions in it; calls and versions stay. The
    command `reef-NAME` and the agent's program go when no other scenario has a harness for it. Your own installation of
    the agent stays as it is.
    """
    person_only("remove an agent")
    paths = Paths.from_environ()
    chosen = scenario(paths, scenario_name, quiet=json)
    paste = f"reef agents remove {name} -s {chosen} --yes"
    with daemon(paths) as client:
        output.agree(f"remove {name} of scenario {chosen}, with the sessions in its home?", yes, paste)
        done = client.remove_harness(chosen, name)
    if json:
        output.json_value(done)
        return
    for place in done["removed"]:
        output.data(OUT.joined("removed", OUT.line(str(place))))


def _place(place: dict[str, Any]) -> str:
    return f"{OUT.line(place['name'])} v{place['version']}{' (pinned)' if place.get('pinned') else ''}"


def _standing(row: dict[str, Any]) -> str:
    """The version that is installed; one of an earlier reef with the one that this reef was tested with."""
    if row.get("installed"):
        return str(row.get("version") or "yours")
    others = row.get("others") or []
    return f"{others[-1]} (tested: {row.get('version')})" if others else ""


def _facts(row: dict[str, Any]) -> list[tuple[str, str]]:
    """What `show` prints, a line each."""
    spec, none = row.get("install"), OUT.symbol("–")
    where, least = f"yours: {row['binary']}", None
    if spec:
        where = f"{spec['package']} {spec['version']} from {_REGISTRIES[spec['kind']]}"
        found = [f"{what} {spec[key]}" for key, what in (("python", "Python"), ("node", "Node")) if spec.get(key)]
        least = found[0] if found else None
    own = f"{', '.join(row['own'])}, neither read nor written" if row["own"] else none
    return [
        ("agent", row["title"]),
        ("program", f"{where}, needs {least} or later" if least else where),
        ("installed", _standing(row) or none),
        ("scenarios", ", ".join(_place(place) for place in row.get("scenarios") or []) or none),
        ("speaks", row["dialect"]),
        ("is given", f"{', '.join(row['kinds'])}; rules of at most {row['rules_bytes']:,} bytes"),
        ("alongside", f"reef-{row['name']} --alongside" if row["alongside"] else none),
        ("yours", own),
        ("reads too", ", ".join(row["leaks"]) or none),
        ("asks", ", ".join(f"{address} ({when})" for address, when in row["contacts"].items()) or none),
        ("adapter", row["folder"]),
    ]
