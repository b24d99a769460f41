"""Credential-shaped strings are replaced before a body is hashed and stored; apart from that a body is exact."""

from __future__ import annotations

from reef import credentials


def redact(body: bytes) -> tuple[bytes, int]:
    """`body` with credential-shaped strings replaced by `[redacted:<kind>]`, and how many were replaced."""
    return credentials.redact(body)


def redact_text(value: str | None) -> str | None:
    """The same for a preview, which shows the beginning of a body."""
    if not value:
        return value
    raw = value.encode("utf-8", "surrogatepass")
    changed, count = credentials.redact(raw)
    return value if not count else changed.decode("utf-8", "replace")
