"""How a step reaches models: only through the daemon, with a token that dies with the step.

Plain synchronous HTTP; every call is kept in the step's folder with what looks like a credential taken out, and every
call counts against the step's budget.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reef.credentials import redact
from reef.errors import Refused, UpstreamFailed
from reef.ids import utc_now
from reef.text import one_line

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True)
class Reply:
    """One answer of a model."""

    text: str
    finish_reason: str | None
    """`stop`, `length`, … as the model server says it."""
    receipt: str | None
    """Record of the call."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """`prompt_tokens`, `completion_tokens` where the server counts them."""


@dataclass
class Budget:
    """What a step may still spend."""

    calls: int
    """Model calls left."""
    spent_calls: int = 0
    spent_tokens: int = 0

    def take(self) -> None:
        """Count one call. Raises Refused when none is left."""
        if self.calls <= 0:
            raise Refused(f"the step has used its {self.spent_calls} model calls", "reef steps list")
        self.calls -= 1
        self.spent_calls += 1


class Model:
    """One model behind the daemon."""

    def __init__(
        self, url: str, token: str, model: str | None, budget: Budget, journal: Path | None, timeout_s: float = 600
    ) -> None:
        """`url` is the daemon's address; `journal` a file that gets one JSON line a call."""
        self.name = model
        self.budget = budget
        self._journal = journal
        # Imported here: it is most of what a step's start costs, and a step without a model call needs none of it.
        import httpx

        # The daemon is on loopback: no proxy of the environment may stand in between.
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(timeout_s, connect=10),
            trust_env=False,
        )

    def chat(self, messages: Sequence[Mapping[str, Any]], max_tokens: int | None = None, **parameters: Any) -> Reply:
        """One chat completion, not streamed. `parameters` go into the request body as they are.

        Raises UpstreamFailed with the server's reason, Refused when the budget is used up.
        """
        import httpx

        self.budget.take()
        body: dict[str, Any] = {"messages": list(messages), "stream": False, **parameters}
        if self.name is not None:
            body["model"] = self.name
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        started = time.monotonic()
        try:
            response = self._client.post("/v1/chat/completions", json=body)
        except httpx.TimeoutException:
            self._note(body, None, "no answer in time", started)
            raise UpstreamFailed("the model did not answer in time", "reef status") from None
        except httpx.HTTPError as error:
            self._note(body, None, str(error), started)
            raise UpstreamFailed(f"the model call failed: {one_line(str(error), 120)}", "reef status") from None
        self._note(body, response, None, started)
        return self._reply(response)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _reply(self, response: httpx.Response) -> Reply:
        try:
            value = response.json()
        except ValueError:
            value = None
        if response.status_code != 200:
            raise UpstreamFailed(
                f"the model answered with status {response.status_code}: {_reason(value)}", "reef status"
            )
        try:
            choice = value["choices"][0]
            content = choice["message"].get("content")
        except (TypeError, KeyError, IndexError, AttributeError):
            raise UpstreamFailed("the model's answer is no chat completion", "reef status") from None
        usage = value.get("usage")
        counted = usage if isinstance(usage, Mapping) else {}
        self.budget.spent_tokens += _count(counted.get("total_tokens"))
        # Half a surrogate pair is legal in JSON and nowhere else.
        text = content.encode("utf-8", "replace").decode() if isinstance(content, str) else ""
        reason = choice.get("finish_reason")
        receipt = response.headers.get("x-reef-agent-record-id")
        return Reply(text, reason if isinstance(reason, str) else None, receipt, counted)

    def _note(
        self, body: Mapping[str, Any], response: httpx.Response | None, error: str | None, started: float
    ) -> None:
        if self._journal is None:
            return
        line = {
            "at": utc_now(),
            "seconds": round(time.monotonic() - started, 3),
            "request": body,
            "status": response.status_code if response is not None else None,
            "receipt": response.headers.get("x-reef-agent-record-id") if response is not None else None,
            "response": response.text if response is not None else None,
            "error": error,
        }
        text, _ = redact(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace"))
        with self._journal.open("ab") as file:
            file.write(text + b"\n")


class Models:
    """The models that a recipe may ask: `served` is the scenario's own."""

    def __init__(self, served: Model, named: Mapping[str, Model] | None = None) -> None:
        self.served = served
        self._named = dict(named or {})

    def __getitem__(self, name: str) -> Model:
        """A model that the settings name. Raises Refused with the names."""
        if name not in self._named:
            known = ", ".join(sorted(self._named)) or "none"
            raise Refused(f"there is no model named {name!r} in the settings (named: {known})", "reef config show")
        return self._named[name]


def _count(value: Any) -> int:
    """Tokens as a server counts them; what is no count costs nothing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else 0


def _reason(value: Any) -> str:
    error = value.get("error") if isinstance(value, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else error
    return one_line(str(message), 200) if message else "no reason given"
