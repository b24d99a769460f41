"""The engine protocol: everything that the gateway, the daemon and the status page may ask of what answers calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

State = Literal["starting", "ready", "failed", "down"]

CHAT = "chat"
"""OpenAI chat completions, `/v1/chat/completions`."""
RESPONSES = "responses"
"""OpenAI responses, `/v1/responses`."""
MESSAGES = "messages"
"""Anthropic messages, `/v1/messages`."""


@dataclass(frozen=True)
class EngineHealth:
    """How an engine stands now."""

    state: State
    """`starting` (wait), `ready`, `failed` (it says why and what to do), `down` (it does not answer)."""
    detail: str = ""
    """One sentence for the person; empty when there is nothing to say."""
    hint: str | None = None
    """A command to paste, when there is one."""


OnChange = Callable[[EngineHealth], None]
"""Called on the event loop whenever an engine's state changes."""


class Engine(Protocol):
    """One thing that answers model calls over HTTP."""

    @property
    def name(self) -> str:
        """`embedded`, or `upstream`."""

    @property
    def model(self) -> str | None:
        """Model id that a call gets which names none; None when the engine has no default."""

    @property
    def base_url(self) -> str:
        """Address that routes are appended to, for people: without credentials, ends in a version segment."""

    @property
    def dialects(self) -> frozenset[str]:
        """The wire formats it speaks as far as is known: `chat`, `responses`, `messages`."""

    @property
    def load_id(self) -> str | None:
        """The load of weights that answers now, `<incarnation>:<sequence>`; None where that cannot be known."""

    @property
    def older_spellings(self) -> bool:
        """Whether it refuses the newer words of chat: role `developer`, `max_completion_tokens`."""

    @property
    def takes_effort(self) -> bool:
        """Whether it takes an effort of reasoning with a model that may not reason; many servers refuse it."""

    @property
    def breaks_off(self) -> bool:
        """Whether it breaks replies off when new weights are loaded, so that they are to be asked for again."""

    @property
    def own(self) -> bool:
        """Whether it runs a model of reef's own, whose refusals are reef's to word."""

    def too_long(self, body: bytes) -> str | None:
        """The sentence for a refusal that says the prompt is longer than the window; None for any other refusal."""

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply together; None when unknown."""

    @property
    def proxy(self) -> str | None:
        """HTTP proxy that calls to it go through."""

    def url(self, route: str, query: str = "") -> str:
        """The full, already encoded address of `route` (`/chat/completions`) with the client's `query` string."""

    def headers(self, dialect: str = CHAT) -> dict[str, str]:
        """Headers that every call in `dialect` carries: its own credentials, lower-case names."""

    async def start(self) -> None:
        """Begin to make it ready and return at once. Calling it again does nothing while it runs."""

    async def ready(self, wait_s: float) -> None:
        """Return when it can take a call. Raises Unavailable with the state when that takes longer than `wait_s`."""

    async def find_dialects(self) -> frozenset[str] | None:
        """The wire formats it speaks, asked once and remembered; None while it cannot be asked."""

    async def health(self) -> EngineHealth:
        """Ask it now; never raises."""

    def observed(self, problem: str | None) -> None:
        """Tell it what a call met: None for an answer, else why it could not be reached."""

    async def probe(self) -> list[str]:
        """The model ids that it offers. Raises UpstreamFailed when it does not answer."""

    async def stop(self) -> None:
        """End what it started and free its memory."""

    def describe(self) -> dict[str, Any]:
        """`{"name", "model", "state", "detail", "url", "dialects", "context_window"}` for people; no secrets."""
