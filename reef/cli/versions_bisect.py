"""`reef versions bisect`: find the version that broke things, by trying a few of them."""

from __future__ import annotations

from typing import Annotated

import typer

from reef import bisecting
from reef.bisecting import ANSWERS, Answer, Bisection
from reef.cli import installing, output
from reef.cli.difference import lines_of
from reef.cli.group import JsonOption, ScenarioOption
from reef.cli.look import ERR, OUT, counted
from reef.cli.scope import daemon, person_only, scenario, versions_of
from reef.cli.version_rows import AdapterOption, Json, Rows, existing, row_of
from reef.cli.versions_log import asks_of, decision
from reef.cli.versions_try import run, trial
from reef.client import Client
from reef.errors import UsageError
from reef.ids import spans
from reef.paths import Paths

ACTIONS = ("start", *ANSWERS, "status", "reset")
ActionArgument = Annotated[
    str | None, typer.Argument(metavar="ACTION", help=f"{', '.join(ACTIONS)}; none asks you turn by turn.")
]


def bisect(
    action: ActionArgument = None,
    version: Annotated[
        str | None, typer.Argument(metavar="VERSION", help="What an answer is about; else the one that was named.")
    ] = None,
    good: Annotated[str | None, typer.Option("--good", metavar="VERSION", help="Known good; else the base.")] = None,
    bad: Annotated[str | None, typer.Option("--bad", metavar="VERSION", help="Known bad; else the head.")] = None,
    adapter: AdapterOption = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Find the version that broke things.

    Each turn names a version to try, which is one session beside what is installed; your answer halves what is left.
    It ends with the first bad version: its change, its step and its ask. The answers are kept until `reset`, so you can
    go on another day. Nothing is installed and nothing is decided.
    """
    person_only("look for a bad version")
    if action is not None and action not in ACTIONS:
        raise UsageError(
            f"there is no action {action!r} (actions: {', '.join(ACTIONS)})", "reef versions bisect status"
        )
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json)
    if action == "reset":
        _reset(paths, name, json)
        return
    with daemon(paths) as client:
        rows = versions_of(client, name)
        if action is None:
            kept = bisecting.load(paths, name)
            search = bisecting.fits(kept, rows) if kept else _begin(paths, rows, name, good, bad)
            _turns(paths, client, rows, search, installing.adapter_of(client, name, adapter))
            return
        if action == "start":
            bisecting.refuse_running(bisecting.load(paths, name), rows)
            search = _begin(paths, rows, name, good, bad)
        else:
            search = bisecting.running(paths, rows, name)
        for answer in ANSWERS:
            if action == answer:
                _answer(paths, rows, search, existing(rows, name, version) if version else None, answer)
        found = _standing(client, rows, search)
    if json:
        output.json_value(found)
        return
    _tell(found)


def _begin(paths: Paths, rows: Rows, name: str, good: str | None, bad: str | None) -> Bisection:
    low, high = (existing(rows, name, typed) if typed else None for typed in (good, bad))
    search = bisecting.begin(rows, name, low, high)
    bisecting.save(paths, search)
    return search


def _answer(paths: Paths, rows: Rows, search: Bisection, number: int | None, answer: Answer) -> None:
    asked = number or search.next(rows)
    if asked is None:
        raise UsageError(
            f"the bisection of scenario {search.scenario} is at its end",
            f"reef versions bisect reset -s {search.scenario}",
        )
    search.answer(rows, asked, answer)
    bisecting.save(paths, search)


def _reset(paths: Paths, name: str, json: bool) -> None:
    there = bisecting.drop(paths, name)
    if json:
        output.json_value({"scenario": name, "reset": there})
        return
    output.data(f"the bisection of scenario {name} is forgotten" if there else f"no bisection of scenario {name} runs")


def _standing(client: Client, rows: Rows, search: Bisection) -> Json:
    """How far a search is; at its end with the version, and what it changed."""
    left, asked = search.suspects(rows), search.next(rows)
    found: Json = {
        "scenario": search.scenario,
        "good": search.good,
        "bad": search.bad,
        "answers": {f"v{number}": said for number, said in sorted(search.answers.items())},
        "suspects": left,
        "next": asked,
        "left": search.left(rows),
        "found": None,
    }
    if asked is None and len(left) == 1:
        before = max(row["version"] for row in rows if row["state"] == "published" and row["version"] < left[0])
        culprit = row_of(rows, left[0])
        files = client.diff(search.scenario, f"v{before}", f"v{left[0]}")["files"]
        found["found"] = culprit | {"before": before, "decision": decision(culprit), "changes": files}
    return found


def _tell(found: Json) -> None:
    name, asked, culprit = found["scenario"], found["next"], found["found"]
    if asked is not None:
        output.data(f"try v{asked}: reef versions try v{asked} -s {name}")
        output.data(f"then:   reef versions bisect good -s {name}, or bad, or skip")
        output.say(
            ERR.joined(
                f"the first bad one is among {spans('v', found['suspects'])}",
                f"at most {counted(found['left'], 'answer')} to go",
            )
        )
        return
    if culprit is None:
        output.data(f"the first bad one is among {spans('v', found['suspects'])}; the others of them were skipped")
        output.say(f"{ERR.paint('next', 'dim')}   reef versions bisect good|bad {_first(found)} -s {name}")
        return
    output.data(OUT.joined(OUT.paint(f"v{culprit['version']} is the first bad one", "strong"), f"scenario {name}"))
    if culprit.get("summary"):
        output.data(f"what     {OUT.line(culprit['summary'])}")
    if culprit.get("step"):
        output.data(f"step     {culprit['step']}   reef steps show {culprit['step']} -s {name}")
    if asks_of(culprit):
        output.data(f"ask      {asks_of(culprit)}")
    output.data(f"decided  {OUT.line(culprit['decision'])}")
    output.data(f"v{culprit['before']} {OUT.symbol('→')} v{culprit['version']}")
    for line in lines_of({"files": culprit["changes"]}):
        output.data(line)
    output.say(f"{ERR.paint('next', 'dim')}   reef versions rollback v{culprit['before']} -s {name}")


def _first(found: Json) -> str:
    skipped = [version for version, said in found["answers"].items() if said == "skip"]
    return next((version for version in skipped if int(version[1:]) in found["suspects"]), "v1")


def _turns(paths: Paths, client: Client, rows: Rows, search: Bisection, agent: str) -> None:
    """Ask turn by turn until the version is found or the person leaves."""
    if not output.can_ask():
        raise UsageError("this asks you, and there is no terminal to ask on", "reef versions bisect start")
    words: dict[str, Answer] = {"g": "good", "b": "bad", "s": "skip"}
    while (asked := search.next(rows)) is not None:
        output.say(
            ERR.joined(
                f"the first bad one is among {spans('v', search.suspects(rows))}",
                f"at most {counted(search.left(rows), 'answer')} to go",
            )
        )
        typed = output.letter(f"v{asked}: t try it, g good, b bad, s skip, q leave", "tgbsq")
        if typed == "q":
            output.say(f"kept; go on with: reef versions bisect -s {search.scenario}")
            return
        if typed == "t":
            run(trial(client, search.scenario, rows, asked, agent, yes=False))
            continue
        _answer(paths, rows, search, asked, words[typed])
    _tell(_standing(client, rows, search))
