"""`reef good`, `reef bad`, `reef undo`: one word of feedback on what an agent just said in this directory."""

from __future__ import annotations

import json as json_module
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, ScenarioOption, command, single
from reef.cli.look import ERR, OUT
from reef.cli.receipts import whole
from reef.cli.scope import daemon, scenario
from reef.client import Client, in_session
from reef.errors import NotFound, UsageError
from reef.paths import Paths, write_atomic

good_app = single()
bad_app = single()
undo_app = single()

GOOD, BAD = 1.0, 0.0
_BACK = re.compile(r"-([1-9][0-9]{0,3})\Z")
_RATED = ("complete", "partial")
_OFFERED = 3
_KEPT_DIRECTORIES = 200

ReceiptOption = Annotated[
    str | None, typer.Option("--receipt", "-r", metavar="RECEIPT", help="Rate this record and no other.")
]


@command(good_app, examples=("reef good", 'reef good -2 "found the cause before it changed code"'), free=True)
def good(
    context: typer.Context,
    receipt: ReceiptOption = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Rate the last answer as good.

    It rates the last answer of the last session in this directory and says which one; `-2` rates the one before, and so
    on. A note in quotes goes with it. Without a session here it lists the last three answers and asks.
    """
    _rate(GOOD, context.args, receipt, scenario_name, json)


@command(bad_app, examples=("reef bad", 'reef bad "it never ran the tests"'), free=True)
def bad(
    context: typer.Context,
    receipt: ReceiptOption = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Rate the last answer as bad.

    It rates the last answer of the last session in this directory and says which one; `-2` rates the one before, and so
    on. A note in quotes goes with it and is what a recipe learns most from.
    """
    _rate(BAD, context.args, receipt, scenario_name, json)


@command(undo_app, examples=("reef undo", "reef undo --json"))
def undo(json: JsonOption = False) -> None:
    """Take back the last rating given in this directory.

    The report is withdrawn: no step uses it from then on. A step that has used it already keeps its row.
    """
    paths = Paths.from_environ()
    given = _remembered(paths)
    here = str(Path.cwd())
    if here not in given:
        raise NotFound("no rating was given in this directory", "reef sessions list")
    last = given[here]
    with daemon(paths) as client:
        done = client.withdraw_report(last["report"])
    del given[here]
    _remember(paths, given)
    if json:
        output.json_value(done)
        return
    output.data(f"{last['word']} taken back from {OUT.id(last['receipt'])}")


def _rate(score: float, words: list[str], receipt: str | None, scenario_name: str | None, json: bool) -> None:
    word = "good" if score == GOOD else "bad"
    back, note = _understand(words, word)
    paths = Paths.from_environ()
    name = scenario(paths, scenario_name, quiet=json or receipt is not None)
    with daemon(paths) as client:
        record = _pointed_out(client, whole(paths, receipt), name) if receipt else _answer(client, name, back, word)
        body: dict[str, Any] = {"score": score, "references": [record["agent_record_id"]]}
        if note:
            body["feedback"] = note
        stored = client.report(record.get("scenario") or name, body)
    _remember(paths, _remembered(paths) | {str(Path.cwd()): _entry(word, stored, record)})
    if json:
        output.json_value(stored | {"references": body["references"], "score": score})
        return
    output.data(OUT.joined(f"{word} stored on {OUT.id(record['agent_record_id'])}", _first_line(record)))
    output.say(ERR.paint("undo   reef undo", "dim"))


def _understand(words: list[str], rating: str) -> tuple[int, str]:
    """How many answers back, and the note."""
    back, note = 1, []
    for word in words:
        match = _BACK.match(word)
        if match is not None:
            back = int(match.group(1))
        elif word.startswith("-"):
            raise UsageError(f"there is no option {word}", f"reef {rating} --help")
        else:
            note.append(word)
    return back, " ".join(note)


def _answer(client: Client, name: str, back: int, word: str) -> dict[str, Any]:
    """The record that is meant: in the last session of this directory, else what the person points at."""
    if in_session():
        return _own_answer(client, back)
    here = client.sessions(cwd=str(Path.cwd()), scenario=name, limit=1)["sessions"]
    if not here:
        return _pointed_at(client, name, word)
    answers = _answers(client.records(session=here[0]["key"], limit=1000))
    if len(answers) < back:
        raise NotFound(f"the last session here has {len(answers)} answers", f"reef records list -s {name}")
    return answers[back - 1]


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
        raise NotFound(f"scenario {name} has no answer to rate yet", "reef-pi")
    output.say("no session was run in this directory; the last answers are")
    for number, row in enumerate(found, 1):
        output.say(
            f"  {number}  {ERR.joined(ERR.id(row['agent_record_id']), ERR.when(row['started_at']), _first_line(row))}"
        )
    if not output.can_ask():
        example = f"reef {word} --receipt {found[0]['agent_record_id']}"
        raise UsageError("say which answer is meant", example)
    chosen = output.choose("which one?", len(found))
    if chosen is None:
        raise UsageError("no answer was chosen, nothing was stored", "reef records list")
    return dict(found[chosen - 1])


def _first_line(record: dict[str, Any]) -> str:
    text = OUT.line(record.get("answer_preview") or record.get("preview"), 72)
    return f'"{text}"' if text else ""


def _entry(word: str, stored: dict[str, Any], record: dict[str, Any]) -> dict[str, str]:
    return {"word": word, "report": stored["agent_record_id"], "receipt": record["agent_record_id"]}


def _place(paths: Paths) -> Path:
    return paths.state / "last-ratings.json"


def _remembered(paths: Paths) -> dict[str, dict[str, str]]:
    """The last rating of each directory: `{cwd: {word, report, receipt}}`; empty when the file is not readable JSON."""
    try:
        found = json_module.loads(_place(paths).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(paths: Paths, given: dict[str, dict[str, str]]) -> None:
    newest = dict(list(given.items())[-_KEPT_DIRECTORIES:])
    write_atomic(_place(paths), json_module.dumps(newest, indent=1).encode())
