"""Whether the whole prompt reached the model: the tokens that its text should cost beside those the server counted.

Some servers drop the front of a prompt that is longer than their window, with the system text and the tools in it, and
answer as if nothing had happened. What is said here is `likely`, never `certain`.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

from reef.gateway.dialect import ReplyFacts
from reef.gateway.estimate import texts_of, words
from reef.gateway.lenient import parse

BYTES_A_TOKEN = 4
FEWEST = 1000
"""A prompt of fewer expected tokens fits every window."""
_READ_MAX = 4 * 1024 * 1024
_SUSPICIOUS = 8
"""Bytes of a request for each token counted from which on the text is looked at; 4 is usual."""
_WINDOW = 512
"""Windows are multiples of this."""
_SEEN_BEFORE = 2
_ENGINES = 64


class Windows:
    """Remembers, by engine, at which sums of prompt and reply its calls ended; the same one often is its window."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Counter[int]] = OrderedDict()

    def often(self, engine: str, total: int) -> bool:
        """Whether calls to `engine` have ended at exactly `total` before; counts this one."""
        if total % _WINDOW:
            return False
        counts = self._seen.setdefault(engine, Counter())
        counts[total] += 1
        if len(self._seen) > _ENGINES:
            self._seen.popitem(last=False)
        return counts[total] > _SEEN_BEFORE


class PromptCheck:
    """Judges one call."""

    def __init__(self, body: bytes, engine: str, windows: Windows) -> None:
        self._body = body
        self._engine = engine
        self._windows = windows

    def judge(self, facts: ReplyFacts) -> tuple[int | None, bool]:
        """The tokens that the request should have cost, and whether its front was likely dropped.

        The first is None where nothing can be said: the server counts none, or the request is too large to look at.
        """
        if facts.prompt_tokens is None:
            return None, False
        counted = facts.prompt_tokens
        if (facts.cached_tokens or 0) > counted:
            # Here the cached part is not in the first number.
            counted += facts.cached_tokens or 0
        expected, fewest = len(self._body) // BYTES_A_TOKEN, 0
        if counted * _SUSPICIOUS < len(self._body):
            if len(self._body) > _READ_MAX:
                return None, False
            fewest, size = self._text()
            expected = max(fewest, size // BYTES_A_TOKEN)
        if expected < FEWEST:
            return expected, False
        if counted * 2 < fewest or counted * 4 < expected:
            return expected, True
        total = counted + (facts.completion_tokens or 0)
        return expected, expected > counted and self._windows.often(self._engine, total)

    def _text(self) -> tuple[int, int]:
        try:
            return words(texts_of(parse(self._body)))
        except ValueError:
            return 0, 0
