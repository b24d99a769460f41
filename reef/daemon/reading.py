"""Reading the database without holding up the event loop: one thread with a read-only connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from reef.records.reader import Reader

T = TypeVar("T")


class Reading:
    """`await reading(lambda reader: reader.records(limit=50))`."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, "reading")
        self._reader: Reader = self._thread.submit(Reader, database).result()

    async def __call__(self, question: Callable[[Reader], T]) -> T:
        """The answer to `question`, asked in the reading thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, question, self._reader)

    async def apart(self, question: Callable[[Reader], T]) -> T:
        """The answer to a question that may take seconds: nobody else's waits behind it."""

        def ask() -> T:
            reader = Reader(self._database)
            try:
                return question(reader)
            finally:
                reader.close()

        return await asyncio.to_thread(ask)

    def close(self) -> None:
        """Close the connection and end the thread."""
        self._thread.submit(self._reader.close).result()
        self._thread.shutdown()
