"""A model server that somebody else runs: an API behind a key, or a local server such as Ollama or llama.cpp."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Collection
from typing import Any
from urllib.parse import SplitResult, urlsplit

import aiohttp
import yarl

from reef.credentials import hold, hold_address
from reef.engines.dialects import ask
from reef.engines.engine import CHAT, MESSAGES, EngineHealth, OnChange
from reef.engines.proxies import route_to
from reef.errors import ConfigError, CredentialMissing, UpstreamFailed

ROUTES = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/messages/count_tokens",
    "/models",
    "/embeddings",
)
_VERSION_SEGMENT = re.compile(r"v\d+[a-z0-9]*\Z")
_HEALTH_TIMEOUT_S = 5.0
_ANTHROPIC = "api.anthropic.com"
ASK_AGAIN_S = 10.0
"""How long a server that did not say which dialects it speaks is not asked again."""


def base_address(url: str, setting: str = "inference.upstream-url") -> SplitResult:
    """Bring the ways in which people write a base address to one form.

    `http://h:9`, `http://h:9/`, `http://h:9/v1`, `http://h:9/v1/chat/completions` are all `http://h:9/v1`; a prefix
    is kept, and so is a version segment that is not `v1`. Query and user name stay. Raises ConfigError that names
    `setting`.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise ConfigError(f"{setting} is not an address", f"--{setting} http://127.0.0.1:11434") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError(
            f"{setting} must begin with http:// or https:// and name a host", f"--{setting} http://127.0.0.1:11434"
        )
    path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
    for route in ROUTES:
        if path.endswith(route):
            path = path.removesuffix(route)
            break
    segments = [segment for segment in path.split("/") if segment]
    while len(segments) > 1 and segments[-1] == segments[-2] == "v1":
        segments.pop()
    if not any(_VERSION_SEGMENT.match(segment) for segment in segments):
        segments.append("v1")
    return parts._replace(path="/" + "/".join(segments), fragment="")


class UpstreamEngine:
    """An address that answers model calls in one dialect or more; nothing is started and nothing stopped."""

    name = "upstream"
    load_id: str | None = None
    breaks_off = False
    own = False
    context_window: int | None = None

    def __init__(
        self,
        url: str,
        model: str | None = None,
        key: str | None = None,
        on_change: OnChange | None = None,
        key_variable: str | None = None,
        dialects: Collection[str] | None = None,
        older_spellings: bool = False,
        takes_effort: bool = False,
    ) -> None:
        """`key` is sent to this address and nowhere else; `key_variable` is where the person said that it stands.

        `dialects` are the wire formats it speaks; None: it is asked. `older_spellings`: it refuses chat's newer words.
        `takes_effort`: a translated call may name an effort of reasoning.
        Raises ConfigError when `url` is not an address.
        """
        parts = base_address(url)
        hold(key)
        hold_address(url)
        # A key and a user name in the address would be two Authorization headers; the key was set on purpose.
        self._parts = parts._replace(netloc=parts.netloc.rpartition("@")[2]) if key else parts
        self._prefix = self._parts._replace(query="").geturl()
        self._key = key.strip() if key else key
        if self._key and not (self._key.isascii() and self._key.isprintable()):
            raise ConfigError("the key of the upstream holds characters that no header can carry", "reef config show")
        self._model = model
        self._on_change = on_change
        route = route_to(url)
        self._proxy, self._note = route.proxy, route.note
        hold_address(route.proxy)
        self._missing = key_variable if key_variable and not key else None
        self.older_spellings = older_spellings
        self.takes_effort = takes_effort
        self._dialects = frozenset(dialects) if dialects is not None else None
        self._asking: asyncio.Task[frozenset[str] | None] | None = None
        self._asked_in_vain = -ASK_AGAIN_S
        self._last = EngineHealth("ready", self._note)
        if self._missing:
            self._last = EngineHealth("failed", f"{self._missing} is not set", f"export {self._missing}=…")

    @property
    def model(self) -> str | None:
        return self._model

    @property
    def proxy(self) -> str | None:
        return self._proxy

    @property
    def base_url(self) -> str:
        parts = self._parts
        host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
        return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"

    def too_long(self, body: bytes) -> str | None:
        return None

    def url(self, route: str, query: str = "") -> str:
        joined = "&".join(part for part in (self._parts.query, query) if part)
        return f"{self._prefix}{route}?{joined}" if joined else self._prefix + route

    def headers(self, dialect: str = CHAT) -> dict[str, str]:
        if not self._key:
            return {}
        if dialect != MESSAGES:
            return {"authorization": f"Bearer {self._key}"}
        # Other servers that speak messages look for either; the vendor refuses a bearer that is no login.
        if self._parts.hostname == _ANTHROPIC:
            return {"x-api-key": self._key}
        return {"x-api-key": self._key, "authorization": f"Bearer {self._key}"}

    async def start(self) -> None:
        return None

    async def ready(self, wait_s: float) -> None:
        if self._missing:
            raise CredentialMissing(f"{self._missing} is not set", f"export {self._missing}=…")

    @property
    def dialects(self) -> frozenset[str]:
        return self._dialects or frozenset({CHAT})

    async def find_dialects(self) -> frozenset[str] | None:
        if self._dialects is None and not self._missing:
            if self._asking is None and time.monotonic() - self._asked_in_vain > ASK_AGAIN_S:
                self._asking = asyncio.create_task(ask(self), name="which dialects")
                self._asking.add_done_callback(self._answered)
            if self._asking is not None:
                # One question for all calls that wait for it, whichever of them leaves meanwhile.
                await asyncio.wait({self._asking})
        return self._dialects

    def _answered(self, asking: asyncio.Task[frozenset[str] | None]) -> None:
        self._asking = None
        self._dialects = None if asking.cancelled() else asking.result()
        if self._dialects is None:
            self._asked_in_vain = time.monotonic()

    async def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()

    def observed(self, problem: str | None) -> None:
        self._set(EngineHealth("ready", self._note) if problem is None else EngineHealth("down", problem))

    async def health(self) -> EngineHealth:
        if self._missing:
            return self._last
        try:
            await self.probe()
        except CredentialMissing as error:
            self._set(EngineHealth("failed", error.message, error.hint))
        except UpstreamFailed as error:
            self._set(EngineHealth("down", error.message, error.hint))
        else:
            self._set(EngineHealth("ready", self._note))
        return self._last

    async def probe(self) -> list[str]:
        timeout = aiohttp.ClientTimeout(total=_HEALTH_TIMEOUT_S)
        try:
            async with aiohttp.ClientSession(timeout=timeout) as session:
                target = yarl.URL(self.url("/models"), encoded=True)
                async with session.get(target, headers=self.headers(), proxy=self._proxy) as reply:
                    status = reply.status
                    body = await reply.json(content_type=None) if status == 200 else None
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise UpstreamFailed(
                f"the model server at {self.base_url} does not answer: {why(error)}", "reef config show"
            ) from None
        if status in (401, 403):
            raise CredentialMissing(
                f"the model server at {self.base_url} refuses the key", "export REEF_UPSTREAM_API_KEY=…"
            )
        data = body.get("data") if isinstance(body, dict) else None
        return [str(item["id"]) for item in data or [] if isinstance(item, dict) and "id" in item]

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "model": self._model,
            "state": self._last.state,
            "detail": self._last.detail,
            "url": self.base_url,
            "dialects": sorted(self.dialects),
            "context_window": self.context_window,
        }

    def _set(self, health: EngineHealth) -> None:
        if health != self._last:
            self._last = health
            if self._on_change is not None:
                self._on_change(health)


def why(error: BaseException) -> str:
    """What went wrong with a connection, in words that hold no address, header or key."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return "its TLS certificate is not accepted"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "the proxy cannot be reached"
    if isinstance(error, aiohttp.ClientConnectorError):
        # asyncio puts the address, as Python writes it, into the error's own text.
        number = error.os_error.errno
        return os.strerror(number).lower() if number else "it cannot be reached"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection without an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "it closed the connection in the middle of its answer"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "no connection in time"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, ValueError):
        return "its answer is not JSON"
    return "the connection failed"
