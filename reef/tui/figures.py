"""Times, counts and sizes as people read them: relative times, local clock, units next to numbers."""

from __future__ import annotations

from datetime import UTC, datetime

NOTHING = "–"


def moment(text: object) -> datetime | None:
    """RFC 3339 text as a time with zone; None when it is missing or malformed."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def when(text: object, now: datetime | None = None) -> str:
    """A past time in a column of 6: `12:04` today, `3 d` for older, `5 mo` for much older."""
    at = moment(text)
    if at is None:
        return NOTHING
    current = now or datetime.now(UTC)
    local = at.astimezone()
    if local.date() == current.astimezone().date():
        return local.strftime("%H:%M")
    return ago(text, current)


def ago(text: object, now: datetime | None = None) -> str:
    """How long ago, in one unit: `12 s`, `14 min`, `2 h`, `5 d`, `3 mo`, `2 y`."""
    at = moment(text)
    if at is None:
        return NOTHING
    seconds = max(0, int(((now or datetime.now(UTC)) - at).total_seconds()))
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h"), (60 * 86400, 86400, "d")):
        if seconds < limit:
            return f"{seconds // size} {unit}"
    months = seconds // (30 * 86400)
    return f"{months} mo" if months < 24 else f"{months // 12} y"


def clock(text: object) -> str:
    """Local date and time with seconds and zone: `2026-01-31 12:04:31 CET`."""
    at = moment(text)
    return NOTHING if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def hour(text: object) -> str:
    """Local time of the day with seconds: `12:04:31`."""
    at = moment(text)
    return NOTHING if at is None else at.astimezone().strftime("%H:%M:%S")


def count(number: object) -> str:
    """A count with a unit letter where it is long: `812`, `18.2k`, `1.9M`."""
    if not isinstance(number, int | float):
        return NOTHING
    if number < 10_000:
        return f"{int(number):,}"
    for size, unit in ((1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G")):
        if number < size * 999.5:
            return f"{number / size:.1f}{unit}"
    return f"{number / 1e9:.0f}G"


def took(milliseconds: object) -> str:
    """A duration: `12 ms`, `0.7 s`, `48 s`, `1:12`, `1 h 04`."""
    if not isinstance(milliseconds, int | float):
        return NOTHING
    seconds = milliseconds / 1000
    if seconds < 0.1:
        return f"{milliseconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes}:{int(seconds) % 60:02}"
    return f"{minutes // 60} h {minutes % 60:02}"


def size(number: object) -> str:
    """Bytes: `812 B`, `18 kB`, `61 MB`."""
    if not isinstance(number, int | float):
        return NOTHING
    for limit, unit, step in ((1000, "B", 1), (10**6, "kB", 10**3), (10**9, "MB", 10**6)):
        if number < limit:
            return f"{number / step:.0f} {unit}"
    return f"{number / 10**9:.1f} GB"


def many(number: int, noun: str) -> str:
    """A count with its noun: `1 record`, `18,402 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def score(value: object) -> str:
    """A score as a word where it is one: 1 is `good`, 0 or less `bad`, else the number."""
    if not isinstance(value, int | float):
        return ""
    return "good" if value == 1 else "bad" if value <= 0 else f"{value:g}"
