"""What plain agents keep in the person's home, with the checksums that were taken before and the one of now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reef.harness import own_places
from reef.harness.adapter import known_adapters
from reef.harness.adapter_file import Adapter
from reef.paths import Paths


def rows(paths: Paths) -> Iterator[dict[str, Any]]:
    """One row for each place of each agent."""
    for _, adapter in known_adapters(paths):
        if not isinstance(adapter, Adapter) or not adapter.own.places:
            continue
        installed, started = (own_places.noted(moment, adapter, paths) for moment in ("installed", "started"))
        names = own_places.changed(adapter, paths)
        for now in own_places.look(adapter, paths):
            first, last = installed.get(now.place), started.get(now.place)
            yield {
                "agent": adapter.name,
                "place": now.place,
                "there": now.there,
                "files": now.files,
                "bytes": now.bytes,
                "installed": first.sha256 if first else None,
                "installed_at": first.at if first else None,
                "started": last.sha256 if last else None,
                "started_at": last.at if last else None,
                "now": now.sha256,
                "changed": names[now.place],
            }
