"""Times as people type them: how long ago (`2d`, `90min`), or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from reef.errors import UsageError
from reef.ids import stamp

_AGO = re.compile(r"(\d{1,6})\s*(min|m|h|d|w|y)\Z")
_UNITS = {"m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}


def since(text: str | None) -> str | None:
    """`text` as a time in the form in which times are stored. A date without a zone is local. Raises UsageError."""
    if text is None:
        return None
    typed = text.strip().lower()
    match = _AGO.match(typed)
    try:
        if match is not None:
            found = datetime.now(UTC) - timedelta(seconds=int(match.group(1)) * _UNITS[match.group(2)])
        else:
            found = datetime.fromisoformat(typed.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is neither an age such as 2d, 3h or 30min nor a date such as 2026-01-31", "--since 2d"
        ) from None
    return stamp(found)
