"""Draws the README's picture from the real app on the home of this environment: `python -m tests.e2e.picture`.

The daemon of that home must run and hold the quickstart's records. Nothing on the picture is made up.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from reef.tui.app import ReefApp

TARGET = Path(__file__).resolve().parents[2] / "reef" / "help" / "tui.svg"
SIZE = (112, 20)
# The export names a font on somebody's server; a reader's own monospaced font does as well.
FOREIGN_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


async def draw() -> str:
    """The versions of the quickstart, the newest one open, as SVG."""
    app = ReefApp(scenario="quickstart", place="versions")
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(20):
            await pilot.pause(0.1)
        return FOREIGN_FONT.sub("", app.export_screenshot(title="reef tui"))


if __name__ == "__main__":
    TARGET.write_text(asyncio.run(draw()) + "\n", encoding="utf-8")
    print(TARGET)
