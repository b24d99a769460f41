"""Ids as people type them: whole, cut to a beginning that only one record or report has, or as shown (`9f3c…e1`)."""

from __future__ import annotations

import re
from typing import Literal

from reef.client import in_session
from reef.errors import InvalidInput, NotFound
from reef.ids import is_id
from reef.paths import Paths

_SHOWN = re.compile(r"([0-9a-f]{4,})(?:(?:…|\.{2,3})([0-9a-f]{1,28}))?\Z")


def whole(paths: Paths, text: str) -> str:
    """The receipt that `text` means. Raises NotFound, or InvalidInput when several records fit.

    A beginning is looked up in the database, so an agent's session, which may not read that, gives whole receipts.
    """
    return _whole(paths, text, "record")


def whole_report(paths: Paths, text: str) -> str:
    """The id of the report that `text` means, as `whole` finds a receipt."""
    return _whole(paths, text, "report")


def _whole(paths: Paths, text: str, noun: Literal["record", "report"]) -> str:
    hint = f"reef {noun}s list"
    typed = text.strip().lower()
    if is_id(typed):
        return typed
    match = _SHOWN.match(typed)
    if match is None or len(typed) > 32:
        called = "a receipt" if noun == "record" else "the id of a report"
        raise InvalidInput(f"{text!r} is not {called} (32 hex digits, or at least the first 4)", hint)
    if in_session() or not paths.database.is_file():
        raise NotFound(f"there is no {noun} {typed}", hint)
    from reef.records.reader import Reader

    reader = Reader(paths.database)
    try:
        begun: list[str] = reader.receipts(match.group(1), 200, "records" if noun == "record" else "reports")
    finally:
        reader.close()
    found = [id for id in begun if id.endswith(match.group(2) or "")]
    if not found:
        raise NotFound(f"there is no {noun} {typed}", hint)
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} {noun}s begin with {typed}", f"{hint} --json")
    return found[0]
