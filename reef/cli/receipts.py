"""Receipts as people type them: whole, cut to a beginning that only one record has, or as shown (`9f3c…e1`)."""

from __future__ import annotations

import re

from reef.client import in_session
from reef.errors import InvalidInput, NotFound
from reef.ids import is_id
from reef.paths import Paths

_SHOWN = re.compile(r"([0-9a-f]{4,})(?:(?:…|\.{2,3})([0-9a-f]{1,28}))?\Z")


def whole(paths: Paths, text: str) -> str:
    """The receipt that `text` means. Raises NotFound, or InvalidInput when several records fit.

    A beginning is looked up in the database, so an agent's session, which may not read that, gives whole receipts.
    """
    typed = text.strip().lower()
    if is_id(typed):
        return typed
    match = _SHOWN.match(typed)
    if match is None or len(typed) > 32:
        raise InvalidInput(f"{text!r} is not a receipt (32 hex digits, or at least the first 4)", "reef records list")
    if in_session() or not paths.database.is_file():
        raise NotFound(f"there is no record {typed}", "reef records list")
    from reef.records.reader import Reader

    reader = Reader(paths.database)
    try:
        begun: list[str] = reader.receipts(match.group(1), 200)
    finally:
        reader.close()
    found = [receipt for receipt in begun if receipt.endswith(match.group(2) or "")]
    if not found:
        raise NotFound(f"there is no record {typed}", "reef records list")
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} records begin with {typed}", "reef records list --json")
    return found[0]
