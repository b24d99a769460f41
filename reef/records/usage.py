"""What was used: calls, tokens, cost and time by agent, model, version, day or tool; counted in the database.

Tools are not counted there: a reply's tool calls stand in its body, so those are read, newest first and not without
end. See `tools`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, cast, get_args

from reef.errors import Failed, InvalidInput
from reef.records import parts
from reef.records.prices import Prices

By = Literal["agent", "model", "version", "tool", "day"]
Row = dict[str, Any]

TOOL_REPLIES = 5000
"""Replies that are read for tool calls, the newest of the time that is asked for."""
SLICE = 100
"""Replies that are read in one go, so that other readers are not kept waiting."""
_KEYS = {
    "agent": "coalesce(adapter, 'other programs')",
    "model": "coalesce(model, 'unknown')",
    "version": "scenario || coalesce(' v' || version, '')",
    "day": "date(started_at, 'localtime')",
    "tool": "''",
}
_COUNTED = ("calls", "failed", "prompt_tokens", "cached_tokens", "completion_tokens", "unpriced_calls")
_TOTALS = """SELECT {key}, model, engine, count(*), sum(state IN ('failed', 'interrupted')),
 sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0) > 0),
 coalesce(sum(prompt_tokens), 0), coalesce(sum(cached_tokens), 0), coalesce(sum(completion_tokens), 0)
 FROM records{where} GROUP BY 1, 2, 3"""
# The smallest duration that at least half, or 95 of 100, do not go over.
_TIMES = """WITH timed AS (SELECT {key} AS key, duration_ms AS took,
 row_number() OVER (PARTITION BY {key} ORDER BY duration_ms) AS place, count(*) OVER (PARTITION BY {key}) AS number
 FROM records{where} AND duration_ms IS NOT NULL)
 SELECT key, min(CASE WHEN place * 2 >= number THEN took END), min(CASE WHEN place * 100 >= number * 95 THEN took END)
 FROM timed GROUP BY key"""
_REPLIES = """SELECT sequence, response_part, response_chain FROM records{where}
 AND sequence < ? AND (response_part IS NOT NULL OR response_chain IS NOT NULL) ORDER BY sequence DESC LIMIT ?"""


def checked_by(by: str) -> By:
    """Raises InvalidInput when usage cannot be shown by this."""
    if by in get_args(By):
        return cast(By, by)
    raise InvalidInput(f"usage is shown by {', '.join(get_args(By))}, not by {by[:40]!r}", "reef usage --by model")


def usage(
    conn: sqlite3.Connection,
    by: By,
    prices: Prices,
    since: str | None = None,
    scenario: str | None = None,
    times: bool = True,
) -> Row:
    """`{"by", "since", "prices_of", "rows": [...], "total": {...}}`; the rows with most tokens first, days in order.

    A row: `key, calls, failed, prompt_tokens, cached_tokens, completion_tokens, cost, unpriced_calls, p50_ms, p95_ms`.
    `cost` is in US dollars, None when no call had a price. With `by="tool"` the rows are left empty for `Tools`.
    Without `times` no call's duration is looked at, which is most of the work.
    """
    where, values = _where(since, scenario)
    rows = _rows(conn, _KEYS[by], where, values, prices)
    total = _sum(rows)
    if times:
        _add_times(conn, "''", where, values, {"": total})
        _add_times(conn, _KEYS[by], where, values, rows)
    shown = [] if by == "tool" else list(rows.values())
    shown.sort(key=lambda row: row["key"] if by == "day" else -(row["prompt_tokens"] + row["completion_tokens"]))
    return {"by": by, "since": since, "prices_of": prices.checked, "rows": shown, "total": total}


def _rows(conn: sqlite3.Connection, key: str, where: str, values: list[str], prices: Prices) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for name, model, engine, calls, failed, billed, prompt, cached, completion in conn.execute(
        _TOTALS.format(key=key, where=where), values
    ):
        row = found.setdefault(name, _empty(name))
        row["calls"] += calls
        row["failed"] += failed
        row["prompt_tokens"] += prompt
        row["cached_tokens"] += cached
        row["completion_tokens"] += completion
        price = prices.of(model, engine)
        if price is None:
            # A call without tokens, as one that was refused, needs no price.
            row["unpriced_calls"] += billed
        else:
            row["cost"] = (row["cost"] or 0.0) + price.of(prompt, cached, completion)
    return found


def _add_times(conn: sqlite3.Connection, key: str, where: str, values: list[str], rows: dict[str, Row]) -> None:
    for name, middle, most in conn.execute(_TIMES.format(key=key, where=where), values):
        # A call may have come since the rows were counted.
        if name in rows:
            rows[name]["p50_ms"], rows[name]["p95_ms"] = middle, most


def _sum(rows: dict[str, Row]) -> Row:
    total = _empty("")
    del total["key"]
    for name in _COUNTED:
        total[name] = sum(row[name] for row in rows.values())
    costs = [row["cost"] for row in rows.values() if row["cost"] is not None]
    total["cost"] = sum(costs) if costs else None
    return total


def _empty(key: str) -> Row:
    return {"key": key} | dict.fromkeys(_COUNTED, 0) | {"cost": None, "p50_ms": None, "p95_ms": None}


def _where(since: str | None, scenario: str | None) -> tuple[str, list[str]]:
    conditions, values = ["1"], []
    if since is not None:
        conditions.append("started_at >= ?")
        values.append(since)
    if scenario is not None:
        conditions.append("scenario = ? COLLATE NOCASE")
        values.append(scenario)
    return f" WHERE {' AND '.join(conditions)}", values


class Tools:
    """Counts the tool calls in replies, a slice at a time: `while tools.read(conn): …`."""

    def __init__(self, since: str | None = None, scenario: str | None = None, most: int = TOOL_REPLIES) -> None:
        self._where, self._values = _where(since, scenario)
        self._before = 1 << 62
        self._left = most
        self._calls: Counter[str] = Counter()
        self._replies: Counter[str] = Counter()
        self.read_replies = 0

    def read(self, conn: sqlite3.Connection) -> bool:
        """Read one slice; whether there may be more."""
        wanted = min(SLICE, self._left)
        found = conn.execute(_REPLIES.format(where=self._where), (*self._values, self._before, wanted)).fetchall()
        for sequence, part, chain in found:
            self._before = sequence
            try:
                names = called(parts.get_body(conn, (part, chain)) or b"")
            except Failed:
                # One damaged body must not hide the rest; `reef doctor` names it.
                names = []
            self._calls.update(names)
            self._replies.update(set(names))
        self.read_replies += len(found)
        self._left -= len(found)
        return len(found) == wanted and self._left > 0

    def rows(self) -> list[Row]:
        """`{"key", "calls", "replies"}` for each tool, the most called first."""
        return [
            {"key": name, "calls": number, "replies": self._replies[name]} for name, number in self._calls.most_common()
        ]


def called(reply: bytes) -> list[str]:
    """The names of the tools that a reply calls, in any of the three dialects; none for what is no reply."""
    try:
        body = json.loads(reply)
    except (ValueError, RecursionError):
        return []
    if not isinstance(body, dict):
        return []
    names = [
        _text(_field(_field(call, "function"), "name") or _field(call, "name"))
        for choice in _list(body.get("choices"))
        for call in _list(_field(_field(choice, "message"), "tool_calls"))
    ]
    names += [_text(item.get("name")) for item in _list(body.get("content")) if _field(item, "type") in _MESSAGES]
    names += [
        _text(item.get("name") or str(item["type"]).removesuffix("_call"))
        for item in _list(body.get("output"))
        if str(_field(item, "type") or "").endswith("_call")
    ]
    return [name for name in names if name]


_MESSAGES = ("tool_use", "server_tool_use", "mcp_tool_use")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""


def with_tools(query: Callable[[Callable[[sqlite3.Connection], bool]], bool], found: Row, tools: Tools) -> Row:
    """`found` with the rows of `tools`, read slice by slice through `query`, and how many replies were read."""
    while query(tools.read):
        continue
    return found | {"rows": tools.rows(), "replies_read": tools.read_replies}
