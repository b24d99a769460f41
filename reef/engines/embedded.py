"""The model that needs nothing else: SmolLM2-135M-Instruct on llama.cpp, in a child process of the daemon.

Ending the child is what frees the memory.
"""

from __future__ import annotations

import json
import os
from typing import Any

from reef.engines import weights
from reef.engines.child import ChildEngine
from reef.engines.engine import CHAT, MESSAGES, RESPONSES, EngineHealth, OnChange
from reef.paths import Paths

CONTEXT = 8192
ANSWER_TOKENS = 1024
"""Where a request sets no limit. A model of this size may go on until its window is full, for minutes."""
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "OMP_WAIT_POLICY")


def thread_count(environ: dict[str, str] | None = None) -> int:
    """Threads for the model: all cores but one, one in CI, because spinning threads on a busy core are very slow."""
    env = dict(os.environ) if environ is None else environ
    if env.get("CI", "").lower() == "true":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


class EmbeddedEngine(ChildEngine):
    """The embedded model: fetches its weights once, then runs."""

    name = "embedded"
    model: str | None = weights.SMOLLM2.name
    dialects = frozenset({CHAT, RESPONSES, MESSAGES})
    context_window: int | None = CONTEXT
    _worker = "reef.engines.embedded_worker"
    _what = "the embedded model"
    _mends = "./install.sh"

    def __init__(self, paths: Paths, on_change: OnChange | None = None) -> None:
        super().__init__(on_change)
        self._paths = paths

    @property
    def own(self) -> bool:
        return True

    def too_long(self, body: bytes) -> str | None:
        try:
            error = json.loads(body)["error"]
            if error["type"] != "exceed_context_size_error":
                return None
            return (
                f"request needs about {int(error['n_prompt_tokens']):,} tokens, the model has {int(error['n_ctx']):,}"
            )
        except (ValueError, KeyError, TypeError):
            return None

    async def _prepare(self) -> None:
        def progress(done: int, total: int) -> None:
            size = f"{done // 1_000_000} of {total // 1_000_000} MB"
            self._set(EngineHealth("starting", f"fetching the embedded model, {size}"))

        await weights.fetch(self._paths, progress)

    def _job(self) -> dict[str, Any]:
        return {
            "model": str(weights.model_file(self._paths)),
            "alias": self.model,
            "context": CONTEXT,
            "slots": 1,
            "answer": ANSWER_TOKENS,
            "threads": thread_count(),
        }

    def _environment(self) -> dict[str, str]:
        return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
