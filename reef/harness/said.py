"""What an agent keeps from the person, said by the wrapper on standard error after the run.

What hooks said, where the agent shows nothing of it, and why the last model call failed, where it says that in words of
its own alone.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from reef.client import Client
from reef.errors import ReefError
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


def say_why(
    client: Client, adapter: Adapter, scenario: str, session: str, status: int, window: int | None = None
) -> None:
    """After a run that failed: what the daemon answered to the last call of the session, when that was an error.

    An agent that cannot fit into the model's `window` has called nobody.
    """
    if status == 0 or not adapter.run.rewords:
        return
    if window is not None and window < adapter.models.bare:
        sys.stderr.write(f"reef: request needs about {adapter.models.bare:,} tokens, the model has {window:,}\n")
        return
    # What cannot be asked any more is no reason for another status than the agent's.
    with suppress(ReefError):
        for record in client.records(1, scenario=scenario, session=session)["records"]:
            if record["error"]:
                sys.stderr.write(safe(f"reef: {record['error']}") + "\n")
