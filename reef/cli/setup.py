"""`reef setup`: what versions need of this machine, and what the person provides of it."""

from __future__ import annotations

import os
import subprocess
from typing import Annotated, Any

import typer

from reef import needs
from reef.cli import installing, output
from reef.cli.group import JsonOption, ScenarioOption, YesOption, command, single
from reef.cli.look import ERR, OUT
from reef.cli.scope import daemon, person_only, scenario, versions_of
from reef.errors import Failed, NotFound, Refused, UsageError
from reef.paths import Paths
from reef.provided import Provided, provided
from reef.text import one_line

app = single()

Need = needs.Json
_CHECK_S = 120


@command(
    app,
    examples=(
        "reef setup",
        "reef setup --set GITHUB_TOKEN",
        "reef setup --run db -s coding",
    ),
)
def setup(
    set_value: Annotated[
        str | None,
        typer.Option("--set", metavar="NAME[=VALUE]", help="Keep a variable's value; without one it is asked for."),
    ] = None,
    mark: Annotated[
        str | None, typer.Option("--mark", metavar="NAME", help="Confirm a permission or a service.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="NAME", help="Show the check of a need, run it, confirm on success.")
    ] = None,
    adapter: Annotated[
        str | None, typer.Option("--adapter", metavar="NAME", help="The agent; else the scenario's.")
    ] = None,
    scenario_name: ScenarioOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Show what versions need of this machine, and provide it.

    It goes through what is missing for the installed, the served and the waiting versions. A value is kept in a file
    that only you can read, beside the install; it reaches the agent's environment and nothing else, and a variable that
    your shell sets wins. A check is a command of the version: it is shown, and runs here after your yes.
    """
    given = [value for value in (set_value, mark, run) if value is not None]
    if len(given) > 1:
        raise UsageError("--set, --mark and --run are one at a time", "reef setup --help")
    if not json or given:
        person_only("provide what a version needs")
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    with daemon(paths) as client:
        wanted = _wanted(versions_of(client, name))
        there = provided(paths, name, installing.adapter_of(client, name, adapter))
    if set_value is not None:
        _set(there, wanted, set_value, name)
    elif mark is not None:
        _mark(there, [_named(wanted, mark, name)], yes)
    elif run is not None:
        _run(there, _named(wanted, run, name), yes)
    elif not json:
        _walk(there, [need for need, _ in wanted], yes)
    _show(there, wanted, name, json)


def _wanted(rows: list[dict[str, Any]]) -> list[tuple[Need, list[int]]]:
    """Each need of a version that is served or newer, once, with those versions."""
    head = next((row["version"] for row in rows if row.get("current")), 0)
    found: dict[str, tuple[Need, list[int]]] = {}
    for row in sorted(rows, key=lambda row: row["version"]):
        if row["version"] < head or row.get("state") not in ("published", "pending"):
            continue
        for need in needs.of(row):
            found.setdefault(needs.key(need), (need, []))[1].append(row["version"])
    return list(found.values())


def _named(wanted: list[tuple[Need, list[int]]], name: str, scenario_name: str) -> Need:
    for need, _ in wanted:
        if name in (need.get("name"), needs.variable(need) if need.get("kind") == "env" else None):
            return need
    there = ", ".join(one_line(str(need.get("name")), 60) for need, _ in wanted) or "nothing"
    raise NotFound(f"no version needs {name!r} (needed: {there})", f"reef setup -s {scenario_name} --json")


def _set(there: Provided, wanted: list[tuple[Need, list[int]]], given: str, scenario_name: str) -> None:
    name, equals, value = given.partition("=")
    need = _named(wanted, name, scenario_name)
    if need.get("kind") != "env":
        raise UsageError(f"{name} is no variable but a {need.get('kind')}", f"reef setup --mark {name}")
    variable = needs.variable(need)
    if not equals:
        value = output.secret(f"{variable}: ", f"reef setup --set {variable}=…")
    if not value or "\0" in value:
        raise UsageError(f"the value of {variable} is empty or no text", f"reef setup --set {variable}")
    there.keep(variable, value)


def _mark(there: Provided, wanted: list[Need], yes: bool) -> None:
    for need in wanted:
        if needs.met(need) is not None:
            raise UsageError(f"{needs.shown(need)} is looked up, not confirmed", "reef setup --json")
        output.say(f"needs  {needs.shown(need)}")
        output.agree("is it there?", yes, f"reef setup --mark {need.get('name')} --yes")
    there.agree(wanted)


def _run(there: Provided, need: Need, yes: bool) -> None:
    """Run a need's own check, which is a program's text: shown whole, and only with the person's yes."""
    check = str(need.get("check") or "")
    if need.get("kind") == "env" or not check:
        raise UsageError(f"{one_line(str(need.get('name')), 100)} has no check to run", "reef setup")
    output.say("this command would run here, with your rights:")
    for line in OUT.folded(f"  {OUT.line(check, 400)}"):
        output.say(line)
    output.agree("run it?", yes, f"reef setup --run {need.get('name')} --yes")
    try:
        ended = subprocess.run(["/bin/sh", "-c", check], timeout=_CHECK_S, check=False).returncode
    except subprocess.TimeoutExpired:
        raise Failed(f"the check did not end within {_CHECK_S} s", "reef setup") from None
    if ended != 0:
        raise Failed(f"the check ended with status {ended}, so nothing was confirmed", "reef setup")
    there.agree([need])


def _walk(there: Provided, wanted: list[Need], yes: bool) -> None:
    """Go through what is missing: ask for values and for a yes, where a person can be asked."""
    for need in there.unmet(wanted, os.environ):
        if needs.met(need) is None:
            if yes or output.can_ask():
                _mark(there, [need], yes)
        elif need.get("kind") == "env" and output.can_ask():
            if need.get("prompt"):
                output.say(f"  {ERR.line(str(need['prompt']), 200)}")
            variable = needs.variable(need)
            if value := output.secret(f"{variable} (enter for none): ", f"reef setup --set {variable}=…"):
                there.keep(variable, value)


def _show(there: Provided, wanted: list[tuple[Need, list[int]]], name: str, json: bool) -> None:
    """What is needed and what is missing of it; ends with 5 when something is."""
    unmet = [needs.key(need) for need in there.unmet([need for need, _ in wanted], os.environ)]
    if json:
        rows = [
            {**need, "versions": versions, "met": needs.key(need) not in unmet, "kept": _is_kept(there, need)}
            for need, versions in wanted
        ]
        output.json_value({"scenario": name, "needs": rows, "missing": len(unmet)})
        return
    if not wanted:
        output.say(f"no version of scenario {name} needs anything")
    environ = there.environ(os.environ, [need for need, _ in wanted])
    for need, versions in wanted:
        sign = ("✗", "failed") if needs.key(need) in unmet else ("✓", "good")
        named = ", ".join(f"v{version}" for version in versions)
        output.data(
            f"{OUT.paint(OUT.symbol(sign[0]), sign[1])} {needs.shown(need, environ)}  {OUT.paint(named, 'dim')}"
        )
    if unmet:
        raise Refused(f"{len(unmet)} of {len(wanted)} needs are not met", f"reef setup -s {name}")


def _is_kept(there: Provided, need: Need) -> bool:
    """Whether reef keeps what meets this need; never the value itself."""
    return needs.variable(need) in there.values if need.get("kind") == "env" else needs.key(need) in there.agreed
