"""`--metadata` of a report: a JSON object as people type it."""

from __future__ import annotations

import json
from typing import Any

from reef.errors import UsageError


def metadata_object(text: str | None) -> dict[str, Any] | None:
    """What `text` says; None without one. Raises UsageError for anything but an object."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--metadata is not JSON: {error}", "reef report --help") from None
    if not isinstance(found, dict):
        raise UsageError("--metadata must be a JSON object", "reef report --help")
    return found
