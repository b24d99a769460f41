"""What hooks said in a run whose agent shows nothing of it: the wrapper says it on standard error after the run."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reef.harness.adapter_file import Adapter
from reef.harness.hook import SAID_VARIABLE
from reef.text import safe


@contextmanager
def said_after(adapter: Adapter, arguments: Sequence[str]) -> Iterator[dict[str, str]]:
    """The variables of one run; what its hooks said follows when it has ended."""
    if not set(arguments) & set(adapter.run.mute):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="reef-") as folder:
        place = Path(folder) / "said"
        try:
            yield {SAID_VARIABLE: str(place)}
        finally:
            if place.is_file():
                sys.stderr.write(safe(place.read_text(encoding="utf-8", errors="replace")))
