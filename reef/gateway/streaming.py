"""The copy of a running stream: folded for the record, kept raw when that is wanted, flushed now and then."""

from __future__ import annotations

import time

from reef.credentials import Sieve
from reef.gateway.dialect import Dialect
from reef.gateway.guarded import GuardedFold
from reef.gateway.recording import Recording
from reef.gateway.sse import EndWatch

FLUSH_EVERY_S = 0.9
FLUSH_BYTES = 64 * 1024
PARSE_BYTES = 2 * 1024
"""What may wait to be parsed. The end of a stream waits for its record, so little may be left to do by then: streams
that end together would wait for one another."""


def watch_of(dialect: Dialect) -> EndWatch:
    """What finds the end of a stream of `dialect`."""
    return EndWatch(dialect.is_end, dialect.end_tokens, dialect.whole_end, dialect.before_end)


class StreamCopy:
    """What has gone by of one stream."""

    def __init__(self, dialect: Dialect, recording: Recording, keep_raw: bool) -> None:
        self.fold = GuardedFold(dialect.fold())
        self.watch = watch_of(dialect)
        self._recording = recording
        # A key that comes word by word must not be written half by half.
        self._sieve = Sieve()
        self._kept: bytearray | None = bytearray() if keep_raw else None
        self._unparsed = 0
        self._flushed_at = time.monotonic()

    @property
    def raw(self) -> bytes | None:
        """The stream's bytes, when they are kept."""
        return None if self._kept is None else bytes(self._kept)

    def take(self, piece: bytes) -> None:
        """Copy the next bytes; a lot of them is flushed at once."""
        self.fold.feed(piece)
        if self._kept is not None:
            self._kept += piece
        self._unparsed += len(piece)
        if self.fold.pending >= FLUSH_BYTES:
            self._flush(time.monotonic())
        elif self._unparsed >= PARSE_BYTES:
            self._unparsed = 0
            self.fold.keep_up()

    def flush_if_due(self) -> None:
        """Flush what has come, when there is something and the last flush is long enough ago."""
        now = time.monotonic()
        if self.fold.pending and now - self._flushed_at >= FLUSH_EVERY_S:
            self._flush(now)

    def _flush(self, now: float) -> None:
        self._flushed_at = now
        self._unparsed = 0
        said = self._sieve.feed(self.fold.catch_up())
        if not self._recording.settled:
            self._recording.flush(said)
