"""Work off the screen's thread: fetches, waits, installs. The outcome comes back as a message in the app's own thread.

The threads are daemon threads: quitting never waits for a daemon that does not answer. Work of the same name replaces
what is still waiting under that name, so a key held down fetches the first and the last row, not all between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textual.message import Message

Work = Callable[[], Any]


@dataclass(frozen=True)
class _Task:
    name: str
    work: Work
    then: Callable[[Any], None]
    failed: Callable[[Exception], None] | None


class Finished(Message):
    """A task ended; exactly one of `value` and `error` counts."""

    def __init__(self, task: _Task, value: Any, error: Exception | None) -> None:
        super().__init__()
        self.task = task
        self.value = value
        self.error = error


class Background:
    """A few threads and the tasks that wait for them."""

    def __init__(self, post: Callable[[Message], object], threads: int = 3) -> None:
        self._post = post
        self._waiting: dict[str, _Task] = {}
        self._running: set[str] = set()
        self._change = threading.Condition()
        self._stopped = False
        for number in range(threads):
            threading.Thread(target=self._serve, name=f"reef-tui-{number}", daemon=True).start()

    def submit(
        self,
        name: str,
        work: Work,
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        own_thread: bool = False,
    ) -> None:
        """Run `work`, then call `then` (or `failed`) in the app's thread.

        One task of a name runs at a time. `own_thread` is for work of minutes, which must not hold up fetches.
        """
        task = _Task(name, work, then, failed)
        if own_thread:
            threading.Thread(target=self._do, args=(task,), name=f"reef-tui-{name}", daemon=True).start()
            return
        with self._change:
            self._waiting[name] = task
            self._change.notify()

    @property
    def idle(self) -> bool:
        """Whether nothing waits or runs."""
        with self._change:
            return not self._waiting and not self._running

    def stop(self) -> None:
        """Start nothing more; what runs is left to end by itself."""
        with self._change:
            self._stopped = True
            self._waiting.clear()
            self._change.notify_all()

    def _serve(self) -> None:
        while (task := self._next()) is not None:
            self._do(task)
            with self._change:
                self._running.discard(task.name)
                self._change.notify_all()

    def _next(self) -> _Task | None:
        with self._change:
            while not self._stopped:
                name = next((name for name in self._waiting if name not in self._running), None)
                if name is not None:
                    self._running.add(name)
                    return self._waiting.pop(name)
                self._change.wait()
        return None

    def _do(self, task: _Task) -> None:
        # The boundary between a thread and the screen: whatever went wrong is shown there, not lost with the thread.
        try:
            outcome = Finished(task, task.work(), None)
        except Exception as error:
            outcome = Finished(task, None, error)
        if not self._stopped:
            self._post(outcome)
