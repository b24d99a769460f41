"""Recorded calls as rows that other programs train on: conversations, and pairs of a better and a worse answer.

A program of its own, `python -m reef.gateway.training_rows JSON`, so that it works while the daemon is down and costs
the daemon nothing while it is up. It writes one JSON object a line: `{"row": …}` for each row, then `{"done": …}`.
Whatever dialect a call was in, its row is a chat.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reef.engines.engine import CHAT
from reef.errors import ReefError
from reef.gateway.translate import exact, translate
from reef.gateway.translate.exchange import Exchange
from reef.gateway.translate.reply import Setting
from reef.records.reader import Reader

Json = dict[str, Any]
_WINDOW = 500
_SAID = ("role", "content", "reasoning_content", "tool_calls")
"""What of an answer is part of a row."""


@dataclass
class Rows:
    """The rows of a store."""

    reader: Reader
    scenario: str | None = None
    session: str | None = None
    since: str | None = None
    left_out: int = 0
    """Complete calls that cannot be written as a chat, or whose conversation is not whole; counted on the way."""
    shown: set[str] = field(default_factory=set)

    def chats(self) -> Iterator[Json]:
        """`{"messages", "tools"?}` of every complete call, oldest first; the last message is the answer."""
        for record in self._records():
            found = self._chat(record)
            if found is not None:
                prompt, answer = found
                yield {**prompt, "messages": [*prompt["messages"], answer]}

    def pairs(self) -> Iterator[Json]:
        """`{"prompt", "chosen", "rejected", "tools"?}`: two answers to one conversation, the first rated higher."""
        groups: dict[bytes, list[tuple[float, int, str]]] = {}
        for record in self._records():
            score = record["score"] if record["score"] is not None else record["program_score"]
            if score is not None and (found := self._chat(record)) is not None:
                place = (float(score), int(record["sequence"]), str(record["agent_record_id"]))
                groups.setdefault(_name_of(found[0]), []).append(place)
        for rated in groups.values():
            rated.sort()
            best = rated[-1]
            for worse in rated[:-1]:
                if worse[0] < best[0]:
                    yield from self._pair(best[2], worse[2])

    def _pair(self, better: str, worse: str) -> Iterator[Json]:
        chosen, rejected = self._chat(self.reader.record(better)), self._chat(self.reader.record(worse))
        # Two answers that say the same were rated for something else than what they say.
        if chosen is not None and rejected is not None and chosen[1] != rejected[1]:
            prompt = dict(chosen[0])
            messages = prompt.pop("messages")
            yield {"prompt": messages, "chosen": [chosen[1]], "rejected": [rejected[1]], **prompt}

    def _records(self) -> Iterator[Json]:
        wanted: Json = {"scenario": self.scenario, "session": self.session, "since": self.since}
        last = 0
        while rows := self.reader.records(after=last, limit=_WINDOW, **wanted):
            for row in reversed(rows):
                last = row["sequence"]
                if row["state"] == "complete" and not row["side_call"]:
                    yield row

    def _chat(self, record: Json) -> tuple[Json, Json] | None:
        """What a call was asked, as `{"messages", "tools"?}`, and what it answered; None when that cannot be said."""
        receipt = record["agent_record_id"]
        request, response = self.reader.request_bytes(receipt), self.reader.response_bytes(receipt)
        if request is not None and response is not None and not record["follows"]:
            try:
                return as_chat(record["dialect"], receipt, exact(request), exact(response))
            except (ReefError, ValueError, LookupError, TypeError, RecursionError):
                # Not of its dialect, or of none: whatever is wrong with it, it is no row.
                pass
        if receipt not in self.shown:
            self.shown.add(receipt)
            self.left_out += 1
        return None


def as_chat(dialect: str, receipt: str, request: Json, reply: Json) -> tuple[Json, Json]:
    """A call of any dialect as a chat: `{"messages", "tools"?}` and the answer.

    Raises ReefError, ValueError, LookupError or TypeError for a call that is none.
    """
    if dialect != CHAT:
        request = translate(dialect, CHAT, {"model": "", **request}, receipt=receipt, created=0).body
        reply = Exchange(CHAT, dialect, {}, (), (), Setting(receipt, 0, request)).reply(reply)
    message = reply["choices"][0]["message"]
    answer = {name: message[name] for name in _SAID if message.get(name) is not None}
    if not isinstance(request["messages"], list) or not (answer.get("content") or answer.get("tool_calls")):
        raise ValueError("no conversation")
    prompt: Json = {"messages": request["messages"]}
    if request.get("tools"):
        prompt["tools"] = request["tools"]
    return prompt, {"role": "assistant", **answer}


def _name_of(prompt: Json) -> bytes:
    """Equal for equal conversations with equal tools."""
    return hashlib.sha256(json.dumps(prompt, sort_keys=True).encode()).digest()[:16]


def _tell(line: Json) -> None:
    sys.stdout.write(json.dumps(line) + "\n")


def main(argv: list[str]) -> int:
    """`argv`: one JSON object with `database`, `format`, and what is wanted of `scenario`, `session`, `since`."""
    asked = json.loads(argv[0])
    kind = asked.pop("format")
    reader = Reader(Path(asked.pop("database")))
    rows = Rows(reader, **asked)
    try:
        for row in rows.pairs() if kind == "pairs" else rows.chats():
            _tell({"row": row})
        _tell({"done": {"left_out": rows.left_out}})
    except ReefError as error:
        _tell(error.to_json())
        return error.exit_code
    finally:
        reader.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
