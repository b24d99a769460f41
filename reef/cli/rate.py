"""`reef good`, `reef bad`, `reef undo`: one word of feedback on what an agent just said in this directory."""

from __future__ import annotations

import json as json_module
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, ScenarioOption, command, single
from reef.cli.look import ERR, OUT, counted
from reef.cli.receipts import whole
from reef.cli.scope import daemon, scenario
from reef.client import Client, in_session
from reef.errors import Conflict, Failed, NotFound, UsageError
from reef.paths import Paths, write_atomic
from reef.rating import Rated, rate

good_app = single()
bad_app = single()
undo_app = single()

GOOD, BAD = 1.0, 0.0
_WORDS = {GOOD: "good", BAD: "bad"}
_BACK = re.compile(r"-([1-9][0-9]{0,3})\Z")
_RATED = ("complete", "partial")
_OFFERED = 3
_KEPT_DIRECTORIES = 200
_KEPT_RATINGS = 50
_SESSIONS = 20

ReceiptOption = Annotated[
    str | None, typer.Option("--receipt", "-r", metavar="RECEIPT", help="Rate this record and no other.")
]


@command(
    good_app,
    examples=("reef good", 'reef good -2 "found the cause before it changed code"'),
    free=True,
    usage="[-2|-3|…] [NOTE]",
)
def good(
    context: typer.Context,
    receipt: ReceiptOption = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Rate the last answer as good.

    It rates the last answer of the last session in this directory and says which one; `-2` rates the one before, and so
    on. A note in quotes goes with it. An answer that is rated already is rated anew, and the last rating counts.
    Without a session here it lists the last three answers and asks.
    """
    _rate(GOOD, context.args, receipt, scenario_name, json)


@command(bad_app, examples=("reef bad", 'reef bad "it never ran the tests"'), free=True, usage="[-2|-3|…] [NOTE]")
def bad(
    context: typer.Context,
    receipt: ReceiptOption = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Rate the last answer as bad.

    It rates the last answer of the last session in this directory and says which one; `-2` rates the one before, and so
    on. A note in quotes goes with it and is what a recipe learns most from. An answer that is rated already is rated
    anew, and the last rating counts.
    """
    _rate(BAD, context.args, receipt, scenario_name, json)


@command(undo_app, examples=("reef undo", "reef undo --json"))
def undo(json: JsonOption = False) -> None:
    """Take back the last rating given in this directory.

    Once more takes back the one before it. A first rating is withdrawn: no step uses it from then on. Of a rating that
    was changed, the value before counts again. A step that has used it already keeps its row.
    """
    paths = Paths.from_environ()
    given = _remembered(paths)
    here = str(Path.cwd())
    if not given.get(here):
        raise NotFound("no rating is left to take back in this directory", "reef sessions list")
    last = given[here].pop()
    with daemon(paths) as client:
        try:
            if last.get("revision"):
                done = client.undo_revision(last["report"], int(last["revision"]))
            else:
                done = client.withdraw_report(last["report"])
        except (Conflict, NotFound):
            # It was revised elsewhere since, or forgotten: this one can never be taken back.
            _remember(paths, given)
            raise
    _remember(paths, given)
    if json:
        output.json_value(done)
        return
    output.data(f"{last['word']} taken back from {OUT.id(last['receipt'])}")


def _rate(score: float, words: list[str], receipt: str | None, scenario_name: str | None, json: bool) -> None:
    word = _WORDS[score]
    back, note = _understand(words, word)
    paths = Paths.from_environ()
    if not paths.database.is_file() and not in_session():
        # Starting a daemon would only make an empty home to find nothing in.
        raise NotFound("nothing was recorded here yet, so there is nothing to rate", _first_command(paths))
    name = scenario(paths, scenario_name, quiet=json or receipt is not None)
    with daemon(paths) as client:
        record = _pointed_out(client, whole(paths, receipt), name) if receipt else _answer(client, name, back, word)
        receipt = record["agent_record_id"]
        rated = rate(client, record.get("scenario") or name, receipt, score, note)
    if rated.changed:
        given, here = _remembered(paths), str(Path.cwd())
        entry = {"word": word, "report": rated.report, "receipt": receipt, "revision": rated.revision}
        _remember(paths, given | {here: [*given.pop(here, []), entry][-_KEPT_RATINGS:]})
    if json:
        output.json_value(rated.reply | {"references": [receipt], "score": score})
        return
    output.data(OUT.joined(f"{word} {_became(rated, score)} {OUT.id(receipt)}", _first_line(record)))
    if rated.earlier is not None and rated.earlier["consumed_by"] and rated.changed:
        output.say(f"step {rated.earlier['consumed_by']} has learned from the earlier rating")
    if rated.changed:
        output.say(ERR.paint("undo   reef undo", "dim"))


def _became(rated: Rated, score: float) -> str:
    if not rated.changed:
        return "already on"
    before = None if rated.earlier is None else rated.earlier["score"]
    if before is None or before == score:
        return "stored on"
    return f"instead of {_WORDS.get(before) or f'{before:g}'} on"


def _understand(words: list[str], rating: str) -> tuple[int, str]:
    """How many answers back, and the note."""
    back, note = 1, []
    for word in words:
        match = _BACK.match(word)
        if match is not None:
            back = int(match.group(1))
        elif word.startswith("-"):
            raise UsageError(f"there is no flag {word}", f"reef {rating} --help")
        else:
            note.append(word)
    return back, " ".join(note)


def _answer(client: Client, name: str, back: int, word: str) -> dict[str, Any]:
    """The record that is meant: in the last session of this directory, else what the person points at."""
    if in_session():
        return _own_answer(client, back)
    # A session that only printed the agent's version has nothing to rate; the one before it may.
    for session in client.sessions(cwd=str(Path.cwd()), scenario=name, limit=_SESSIONS)["sessions"]:
        answers = _answers(client.records(session=session["key"], limit=1000)) if session.get("calls") else []
        if len(answers) >= back:
            return answers[back - 1]
        if answers:
            raise NotFound(
                f"the last session here has {counted(len(answers), 'answer')}", f"reef records list -s {name}"
            )
    return _pointed_at(client, name, word)


def _pointed_out(client: Client, receipt: str, name: str) -> dict[str, Any]:
    # An agent's session may not read the record; the daemon checks the receipt all the same.
    return {"agent_record_id": receipt, "scenario": name} if in_session() else client.record(receipt)


def _own_answer(client: Client, back: int) -> dict[str, Any]:
    # The daemon shows an agent's session itself and nothing else, and of its calls the last one.
    own = client.sessions(limit=1)["sessions"]
    if not own or not own[0].get("last_receipt"):
        raise NotFound("this session has no answer to rate yet", "reef report RECEIPT --score 1")
    if back > 1:
        raise UsageError("an agent's session rates its last answer only", "reef report RECEIPT --score 1")
    return {
        "agent_record_id": own[0]["last_receipt"],
        "scenario": own[0]["scenario"],
        "preview": own[0]["last_preview"],
    }


def _answers(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row for row in found["records"] if row["state"] in _RATED and not row["side_call"] and row["source"] != "step"
    ]


def _pointed_at(client: Client, name: str, word: str) -> dict[str, Any]:
    found = _answers(client.records(scenario=name, limit=50))[:_OFFERED]
    if not found:
        raise NotFound(f"scenario {name} has no answer to rate yet", _first_command(client.paths))
    output.say("no session in this directory has an answer; the last answers are")
    for number, row in enumerate(found, 1):
        output.say(
            f"  {number}  {ERR.joined(ERR.id(row['agent_record_id']), ERR.when(row['started_at']), _first_line(row))}"
        )
    if not output.can_ask():
        example = f"reef {word} --receipt {found[0]['agent_record_id']}"
        raise UsageError("say which answer is meant", example)
    chosen = output.choose("which one?", len(found))
    if chosen is None:
        raise Failed("no answer was chosen, nothing was stored", "reef records list")
    return dict(found[chosen - 1])


def _first_line(record: dict[str, Any]) -> str:
    text = OUT.line(record.get("answer_preview") or record.get("preview"), 72)
    return f'"{text}"' if text else ""


def _first_command(paths: Paths) -> str:
    """What makes an answer to rate: the agent, or its installation."""
    return "reef-pi" if (paths.bin / "reef-pi").is_file() else "reef agents add pi"


def _place(paths: Paths) -> Path:
    return paths.state / "last-ratings.json"


def _remembered(paths: Paths) -> dict[str, list[dict[str, Any]]]:
    """The ratings of each directory, oldest first: `{cwd: [{word, report, receipt, revision}]}`.

    Empty when it is not JSON.
    """
    try:
        found = json_module.loads(_place(paths).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {cwd: [kept] if isinstance(kept, dict) else list(kept) for cwd, kept in found.items()}


def _remember(paths: Paths, given: dict[str, list[dict[str, Any]]]) -> None:
    newest = dict(list(given.items())[-_KEPT_DIRECTORIES:])
    write_atomic(_place(paths), json_module.dumps(newest, indent=1).encode())
