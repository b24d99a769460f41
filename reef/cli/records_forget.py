"""`reef records forget` and `reef records prune`: what is shown first, what the person is asked, what was removed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, ScenarioOption, YesOption
from reef.cli.look import ERR, OUT, Look, count, counted, size
from reef.cli.receipts import whole
from reef.cli.scope import daemon, person_only
from reef.client import Client
from reef.errors import Failed, InvalidInput, UsageError
from reef.paths import Paths
from reef.text import one_line

Json = dict[str, Any]

FORGET_EXAMPLES = (
    "reef records forget 9f3c --dry-run",
    "reef records forget --session KEY --keep reports",
    'reef records forget --matching "my address" --yes',
)
PRUNE_EXAMPLES = ("reef records prune --keep-bytes 5GB", "reef records prune --keep-bytes 0 --yes --json")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(|k|m|g|t)i?b?\Z")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_LISTED = 8


def forget(
    receipts: Annotated[list[str] | None, typer.Argument(metavar="RECEIPT", help="Whole, or as lists show it.")] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="KEY", help="Every call of this session.")] = None,
    matching: Annotated[
        str | None, typer.Option("--matching", metavar="TEXT", help="Every call whose request or reply holds this.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="KIND", help="Made from them but to stay: reports, asks, steps. May be repeated."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go and what would stay.")] = False,
    finish: Annotated[bool, typer.Option("--finish", help="Go on with what was broken off.")] = False,
    scenario_name: ScenarioOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Remove records, and what was made from them, for good.

    First everything is listed that would go: reports, asks, steps with their candidates, copies of the store; and what
    would stay, because a published version or another record holds it. Then you are asked. It ends when nothing of them
    is left in the database, its log and index, the step folders and git; until then `--finish` goes on. Backups that
    you have made hold what they held.
    """
    person_only("forget records")
    paths = Paths.from_environ()
    with daemon(paths) as client:
        if finish:
            done = _followed(client.finish_forgetting(), "forgotten")
            _tell_forgotten(done, json)
            return
        wish = {"receipts": [whole(paths, text) for text in receipts or ()], "session": session, "matching": matching}
        wish = {name: value for name, value in wish.items() if value}
        if len(wish) != 1:
            raise UsageError("name receipts, --session or --matching", "reef records forget --help")
        wish |= {"keep": keep or [], "scenario": scenario_name}
        found = _followed(client.look_at_forgetting(wish), "found")
        if dry_run and json:
            output.json_value(found)
            return
        for line in _lines_of(found, OUT if dry_run else ERR):
            (output.data if dry_run else output.say)(line)
        if dry_run:
            return
        asked = f"forget {counted(found['records'], 'record')} for good?"
        output.agree(asked, yes, "reef records forget … --yes", "nothing was removed")
        _tell_forgotten(_forgotten(client, found["token"]), json)


def prune(
    keep_bytes: Annotated[
        str, typer.Option("--keep-bytes", metavar="SIZE", help="Bytes of bodies that stay: `5GB`, `200MB`, `0`.")
    ],
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Remove the oldest bodies until so many bytes of them are left, and shrink the file.

    Rows and receipts stay, with `body pruned`. What an unfinished step or a task needs stays whole. The daemon does the
    same by itself when bodies outgrow `records.max-bytes`.
    """
    person_only("prune records")
    keep = _bytes(keep_bytes)
    output.agree(
        f"remove the oldest bodies until {size(keep)} of them are left?",
        yes,
        f"reef records prune --keep-bytes {keep_bytes} --yes",
        "nothing was removed",
    )
    with daemon(Paths.from_environ()) as client:
        done = _followed(client.prune(keep), "pruned")
    if json:
        output.json_value(done)
        return
    output.data(f"before   {size(done['store_before'])}, of it {size(done['bodies_before'])} bodies")
    output.data(f"after    {size(done['store_after'])}, of it {size(done['bodies_after'])} bodies")
    output.data(f"pruned   {counted(done['records'], 'record')}, {size(done['bytes'])}")
    if done["bodies_after"] > keep:
        output.say("what is left over that is needed by a step, a task or a call that is running")


def _forgotten(client: Client, token: str) -> Json:
    try:
        return _followed(client.forget(token), "forgotten")
    except KeyboardInterrupt:
        output.say("the daemon goes on with it")
        raise


def _tell_forgotten(done: Json, json: bool) -> None:
    if json:
        output.json_value(done)
        return
    if not done:
        output.data("nothing is left to forget")
        return
    grown = f"{size(done['store_before'])} {OUT.symbol('→')} {size(done['store_after'])}"
    output.data(OUT.joined(f"forgot {counted(done['records'], 'record')}", f"the store {grown}"))
    for row in done["versions"]:
        name = OUT.line(row["scenario"])
        output.say(f"stays    v{row['version']} of {name}   reef versions show v{row['version']} -s {name}")


def _followed(lines: Iterable[Json], end: str) -> Json:
    """Show the progress of a removal and return how it ended. Raises the error that it ended with."""
    progress = output.Progress()
    try:
        for line in lines:
            if end in line:
                return dict(line[end])
            if "progress" in line:
                progress.show(f"  {one_line(str(line['progress']), 200)}")
    finally:
        progress.clear()
    raise Failed("the daemon ended this without an answer", "reef records forget --finish")


def _lines_of(found: Json, look: Look) -> list[str]:
    """What would go and what would stay, a line for each kind or thing."""
    keep = set(found["keep"])
    running = f"{counted(found['running'], 'call')} still running, not among them" if found["running"] else None
    facts = [("records", look.joined(counted(found["records"], "record"), running))]
    facts += [(_kind("reports", keep), line) for line in _some(found["reports"], lambda row: _report(row, look), look)]
    facts += [(_kind("asks", keep), line) for line in _some(found["asks"], lambda row: _ask(row, look), look)]
    facts += [(_kind("steps", keep), line) for line in _some(found["steps"], lambda row: _step(row, look), look)]
    facts += [("task", look.line(name)) for name in found["tasks"]]
    facts += [("copy", f"{look.line(name)}, the whole store before an upgrade") for name in found["copies"]]
    facts += [
        ("stays", f"v{row['version']} of {look.line(row['scenario'])} ({row['state']}), made by step {row['step']}")
        for row in found["versions"]
    ]
    facts += [("stays", f"{look.line(place)}, kept by a restore") for place in found["kept_copies"]]
    shared = found["shared"]
    if shared["parts"]:
        named = ", ".join(look.id(receipt) for receipt in shared["receipts"])
        what = f"{counted(shared['parts'], 'part')}, {size(shared['bytes'])}"
        facts.append(("stays", f"{what}: {counted(shared['records'], 'other record')} hold them too, as {named}"))
    if found["same_session"]:
        facts.append(
            ("stays", f"{counted(found['same_session'], 'other call')} of the same session, which may repeat it")
        )
    return [f"{label:<9} {text}" for label, text in facts]


def _kind(name: str, keep: set[str]) -> str:
    return "stays" if name in keep else name.removesuffix("s")


def _some(rows: list[Json], shown: Any, look: Look) -> list[str]:
    lines = [shown(row) for row in rows[:_LISTED]]
    return [*lines, f"{look.symbol('…')} and {count(len(rows) - _LISTED)} more"] if len(rows) > _LISTED else lines


def _report(row: Json, look: Look) -> str:
    score = None if row["score"] is None else f"score {row['score']:g}"
    others = f"also on {counted(row['others'], 'record')} that stay" if row["others"] else None
    return look.joined(look.id(row["id"]), f"by {row['source']}", score, look.line(row["feedback"], 60), others)


def _ask(row: Json, look: Look) -> str:
    return look.joined(f"#{row['number']} of {look.line(row['scenario'])}", row["state"], look.line(row["text"], 60))


def _step(row: Json, look: Look) -> str:
    candidate = "with its candidate" if row["candidate"] else None
    named = f"{row['step']} of {look.line(row['scenario'])}"
    return look.joined(named, row["state"], look.line(row["summary"], 60), candidate)


def _bytes(text: str) -> int:
    match = _SIZE.match(text.strip().lower())
    if match is None:
        raise InvalidInput(f"{text!r} is no size such as 5GB or 200MB", "reef records prune --keep-bytes 5GB")
    return int(float(match.group(1)) * _UNITS[match.group(2)])
