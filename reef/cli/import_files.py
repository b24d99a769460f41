"""What `reef import` sends: the lines of a file of records, or the calls of a transcript, each with where it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.errors import InvalidInput, TooLarge
from reef.transcripts.call import Reading
from reef.transcripts.finding import READERS, RECORDS, Found

LONGEST = 64 * 1024 * 1024
"""The daemon takes no larger body."""
_ENVELOPE = {"agent_record_id", "request_type", "payload"}
_STRANGE = (LookupError, TypeError, AttributeError, ValueError)
"""What a reader of transcripts raises at a file that is not shaped as its agent shapes it."""


@dataclass
class Entry:
    """One envelope on its way."""

    where: str
    """`line 7`, or which reply of which session."""
    envelope: bytes
    kind: str
    """`inference` or `report`."""
    scenario: str | None
    """The scenario that the envelope itself names."""
    started_at: str | None = None
    end: int = 0
    """Bytes of the file up to and with this entry."""


def entries(found: Found, reading: Reading, start: int = 0, line: int = 0) -> Iterator[Entry | InvalidInput]:
    """What is in a file, from byte `start` on, which is behind line number `line`.

    A line that cannot be imported comes as the error that says why.
    """
    if found.kind == RECORDS:
        yield from _lines(found.path, start, line)
        return
    size = found.path.stat().st_size
    try:
        for call in READERS[found.kind](found.path, reading):
            where = f"reply {call.message} of session {call.session}"
            yield Entry(where, call.envelope(), "inference", None, call.started_at, size)
    except _STRANGE as error:
        yield InvalidInput(f"this session of {found.kind} is not written as {found.kind} writes them: {error!r}")


def _lines(path: Path, start: int, number: int) -> Iterator[Entry | InvalidInput]:
    with path.open("rb") as source:
        source.seek(start)
        while line := source.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                yield TooLargeLine(f"line {number} is over {LONGEST} bytes", "reef records export")
                return
            if not line.strip():
                continue
            try:
                yield _entry(line.strip(), number, source.tell())
            except InvalidInput as error:
                yield error


class TooLargeLine(TooLarge, InvalidInput):
    """A line that no daemon takes; what comes behind it is not read."""

    code = TooLarge.code
    http_status = TooLarge.http_status


def _entry(line: bytes, number: int, end: int) -> Entry:
    where = f"line {number}"
    try:
        found: Any = _LENIENT.decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict) or set(found) != _ENVELOPE or not isinstance(found["payload"], dict):
        raise InvalidInput(f"{where} is not {{agent_record_id, request_type, payload}} and nothing else")
    kind = found["request_type"]
    if kind not in ("inference", "report"):
        raise InvalidInput(f"{where}: 'request_type' must be 'inference' or 'report'")
    facts = found["payload"].get("reef")
    facts = facts if isinstance(facts, dict) else {}
    at = facts.get("started_at") or facts.get("created_at")
    return Entry(where, line, kind, _text(facts.get("scenario")), _text(at), end)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _nothing(text: str) -> None:
    return None


_LENIENT = json.JSONDecoder(parse_int=_nothing, parse_float=_nothing)
"""Numbers are nobody's business here, and may be longer than the plain decoder takes."""
