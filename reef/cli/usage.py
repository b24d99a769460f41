"""`reef usage`: what agents and programs used, and what it costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from reef.cli import output, usage_line
from reef.cli.group import JsonOption, ScenarioOption, command, single
from reef.cli.look import OUT, count, counted, span
from reef.cli.scope import person_only, read
from reef.cli.since import since as moment
from reef.errors import UsageError
from reef.paths import Paths

app = single()


@command(app, examples=("reef usage", "reef usage --by tool --since 1d -s coding", "reef usage --line"))
def usage(
    by: Annotated[
        Literal["agent", "model", "version", "tool", "day"], typer.Option("--by", help="What each row stands for.")
    ] = "model",
    since: Annotated[str, typer.Option("--since", metavar="AGE", help="2d, 3h, 2026-01-31, or `all`.")] = "7d",
    scenario_name: ScenarioOption = None,
    line: Annotated[bool, typer.Option("--line", help="One short line about today, and nothing else.")] = False,
    json: JsonOption = False,
) -> None:
    """Show calls, tokens, cost and time by agent, model, day or tool.

    Costs are list prices of a dated table, or your own from `usage.prices`; a model without a price shows none, one on
    this machine costs nothing. `--by tool` reads the replies themselves, at most the newest 5,000, which takes about a
    second for a thousand long ones. `--line` reads the database directly, for tmux or an agent's status line.
    """
    if line:
        if json or by != "model" or scenario_name:
            raise UsageError("--line stands alone", "reef usage --line")
        usage_line.show()
        return
    person_only("read usage")
    paths, at = Paths.from_environ(), None if since == "all" else moment(since)
    found = read(
        paths,
        lambda client: client.usage(by, at, scenario_name),
        lambda reader: reader.usage(by, usage_line.own_prices(paths), at, scenario_name),
        scenario_name,
    )
    if json:
        output.json_value(found)
        return
    if not found["total"]["calls"]:
        output.say(f"no calls since {at or 'the beginning'}")
        return
    for text in _tools(found) if by == "tool" else _table(found):
        output.data(text)
    unpriced = found["total"]["unpriced_calls"]
    missing = f"; {counted(unpriced, 'call')} without a known price" if unpriced else ""
    output.say(f"list prices of {found['prices_of']} or your own{missing}")


def _table(found: dict[str, Any]) -> list[str]:
    heads = [found["by"], "calls", "failed", "in", "cached", "out", "cost", "p50", "p95"]
    rows = [*found["rows"], {"key": "all", **found["total"]}]
    cells = []
    for row in rows if len(found["rows"]) > 1 else found["rows"]:
        tokens = [count(row[name]) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")]
        times = [_took(row["p50_ms"]), _took(row["p95_ms"])]
        cells.append(
            [
                OUT.line(row["key"], 32),
                count(row["calls"]),
                count(row["failed"]) if row["failed"] else OUT.symbol("–"),
                *tokens,
                usage_line.dollars(row["cost"]) or OUT.symbol("–"),
                *times,
            ]
        )
    return OUT.table(heads, cells, right=range(1, len(heads)))


def _tools(found: dict[str, Any]) -> list[str]:
    cells = [[OUT.line(row["key"], 48), count(row["calls"]), count(row["replies"])] for row in found["rows"]]
    output.say(f"tool calls in the newest {counted(found['replies_read'], 'reply').replace('replys', 'replies')}")
    return OUT.table(["tool", "calls", "replies"], cells, right=(1, 2))


def _took(milliseconds: float | None) -> str:
    return OUT.symbol("–") if milliseconds is None else span(milliseconds / 1000)
