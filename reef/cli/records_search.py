"""`reef records search`: the calls in which something was said."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, LimitOption, ScenarioOption
from reef.cli.look import ERR, OUT, counted
from reef.cli.narrowing import ModelOption, ScoreOption, SessionOption, SinceOption, narrowed
from reef.cli.scope import person_only, read
from reef.errors import UsageError
from reef.paths import Paths

EXAMPLES = (
    "reef records search 'parse_config \"of the parser\"'",
    "reef records search 'tool:bash pytest*' --since 2d --json",
)
_WORDS = re.compile(r'"[^"]*"?|[^\s"]+')
_OF = re.compile(r"(?:request|reply|tools?):", re.IGNORECASE)


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What was said; see above.")],
    limit: LimitOption = 20,
    session: SessionOption = None,
    model: ModelOption = None,
    score: ScoreOption = None,
    since: SinceOption = None,
    before: Annotated[int | None, typer.Option("--before", metavar="SEQUENCE", help="Only older ones.")] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Find records by what was said in them.

    Every word must be in what is new in one call: what was asked, the reply, the tools called and their arguments.
    "words in quotes" stand in that order, `begin*` is how a word begins, and `tool:`, `reply:` or `request:` before
    one says where it stands. An agent repeats the whole conversation with every call; a record is found by what it
    added. Records of the last seconds may not be in the index yet, which is said.
    """
    person_only("read records")
    typed = " ".join(words)
    if not typed.strip():
        raise UsageError("there is nothing to look for", "reef records search --help")
    wanted = narrowed(scenario_name, session, model, score, since)
    found: dict[str, Any] = read(
        Paths.from_environ(),
        lambda client: client.search(typed, limit, before=before, **wanted),
        lambda reader: reader.search(typed, limit, before, **wanted),
        scenario_name,
    )
    if json:
        output.json_value(found)
        return
    for row in found["records"]:
        facts = [OUT.when(row["started_at"]), OUT.id(row["agent_record_id"]), OUT.line(row["scenario"], 16)]
        output.data(OUT.joined(*facts, OUT.line(row.get("model"), 24), row["found_in"]))
        output.data(f"  {_marked(OUT.line(row['snippet'] or row.get('preview'), max(20, OUT.columns - 2)), typed)}")
    _say_limits(found, typed)


def _say_limits(found: dict[str, Any], typed: str) -> None:
    if not found["records"]:
        output.say(f"nothing was found for {ERR.line(typed, 60)}")
    if found["pending"]:
        output.say(ERR.paint(f"{counted(found['pending'], 'record')} not searched yet", "dim"))
    if found["cut"]:
        output.say(ERR.paint(f"{counted(found['cut'], 'very long record')} searched in part", "dim"))
    if found["looked_back_to"] is not None:
        output.say(f"looked long enough; to go on: --before {found['looked_back_to']}")


def _marked(line: str, typed: str) -> str:
    """The line with what was looked for painted."""
    bare = [_OF.sub("", word, count=1).strip('"*') for word in _WORDS.findall(typed)]
    wanted = sorted({word for word in bare if word}, key=len, reverse=True)
    if not wanted:
        return line
    pattern = re.compile("|".join(re.escape(word) for word in wanted), re.IGNORECASE)
    return pattern.sub(lambda match: OUT.paint(match[0], "strong"), line)
