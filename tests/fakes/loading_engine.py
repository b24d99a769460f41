"""An engine that loads new weights before each call it takes, and breaks off what it was saying."""

from __future__ import annotations

from reef.engines.upstream import UpstreamEngine


class LoadingEngine(UpstreamEngine):
    """A model server somewhere, told apart by its load id: `fake:1`, `fake:2`, …"""

    breaks_off = True

    def __init__(self, url: str, dialects: tuple[str, ...] = ("chat",)) -> None:
        super().__init__(url, "m", "sk", dialects=dialects)
        self._loads = 0

    async def ready(self, wait_s: float) -> None:
        await super().ready(wait_s)
        self._loads += 1
        self.load_id = f"fake:{self._loads}"
