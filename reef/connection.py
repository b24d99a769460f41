"""One connection to the daemon of a home: found, proven, and spoken to in the daemon's own errors.

The daemon of a home is found through its discovery file and must prove that it holds this home's person key before the
key is sent to it: a stranger on a reused port sees a random challenge and nothing else. Inside an agent's session the
person key is never used; there the session's own token is.

httpx is imported on first use, so that `reef --help` does not pay for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from reef import __version__
from reef.discovery import (
    SESSION_VARIABLE,
    START_WAIT_S,
    in_session,
    no_certificates,
    read_person_key,
    running,
    start_daemon,
)
from reef.errors import Conflict, DaemonUnreachable, from_json
from reef.paths import Paths

if TYPE_CHECKING:
    import httpx

Json = dict[str, Any]
LONG_S = 3600.0
_TOLD = ("/reef/agents/", "/reef/harness/install", "/reef/forget", "/reef/records/prune")
"""Routes that tell their progress line by line, however long they take."""


class Connection:
    """A connection to one daemon."""

    def __init__(self, discovery: Json, paths: Paths) -> None:
        import httpx

        self.discovery = discovery
        self.paths = paths
        self.url: str = discovery["url"]
        headers = {"user-agent": f"reef/{__version__}"}
        self._inside = in_session()
        if self._inside:
            # A header can only take rights away: whoever is inside an agent's session reports as the agent.
            headers["x-reef-agent"] = "1"
            self._secret = os.environ.get(SESSION_VARIABLE)
        else:
            self._secret = read_person_key(paths)
        # trust_env would send loopback calls through a proxy of the person's environment.
        timeout = httpx.Timeout(60, connect=5)
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout, trust_env=False, verify=no_certificates()
        )

    @classmethod
    def connect(
        cls,
        paths: Paths | None = None,
        start: bool | None = None,
        told: Callable[[list[str]], None] | None = None,
    ) -> Self:
        """The client of this home's daemon; `start` starts it when it is not running (None: `daemon.autostart`).

        It is started as the last `reef up` or `reef serve` did; `told` gets the parts of a line about that. Raises
        DaemonUnreachable with the hint `reef up`, CredentialMissing when that start had a secret that is not set now.
        """
        places = paths or Paths.from_environ()
        found = running(places)
        if found is None:
            if start is None:
                from reef.config import load

                start = load(paths=places).settings.daemon.autostart
            if not start:
                raise DaemonUnreachable("the daemon is not running", "reef up")
            found = start_daemon(places, {"again": True}, START_WAIT_S, told)
        return cls(found, places)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def _json(self, method: str, path: str, **options: Any) -> Json:
        found: Json = self._send(method, path, **options).json()
        return found

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        with self._stream(method, path, **options) as reply:
            reply.read()
            return reply

    def _lines(self, path: str, body: Json) -> Iterator[Json]:
        with self._stream("POST", path, body=body) as reply:
            for line in reply.iter_lines():
                item = json.loads(line) if line.strip() else {}
                if "error" in item:
                    raise from_json(reply.status_code, item)
                if item:
                    yield item

    @contextmanager
    def _stream(
        self,
        method: str,
        path: str,
        scenario: str | None = None,
        params: Mapping[str, Any] | None = None,
        body: Json | None = None,
        content: bytes | None = None,
        timeout: float | None = None,
        any_version: bool = False,
        anyone: bool = False,
    ) -> Iterator[httpx.Response]:
        """One exchange. `anyone`: what each program of this machine may ask, so that a session's token, which opens
        that session's routes and no other, is left out."""
        import httpx

        theirs = self.discovery.get("version")
        if theirs != __version__ and not any_version:
            message = f"the daemon is reef {theirs}, this command is reef {__version__}"
            raise Conflict(message, "reef down && reef up")
        headers = {} if scenario is None else {"x-reef-scenario": scenario.encode("utf-8", "replace").decode("latin-1")}
        if self._secret and not (anyone and self._inside):
            headers["authorization"] = f"Bearer {self._secret}"
        if content is not None:
            headers["content-type"] = "application/json"
        streaming = path == "/reef/events" or path.startswith(_TOLD)
        wait = httpx.Timeout(None if streaming else timeout or 60, connect=5)
        try:
            sent: Any = {"params": params, "json": body, "content": content, "headers": headers, "timeout": wait}
            with self._http.stream(method, path, **sent) as reply:
                if reply.is_error:
                    raise from_json(reply.status_code, _parsed(reply.read()))
                yield reply
        except httpx.TimeoutException:
            raise DaemonUnreachable(f"the daemon did not answer {method} {path} in time", "reef status") from None
        except httpx.TransportError as error:
            raise DaemonUnreachable(f"the daemon at {self.url} is gone ({type(error).__name__})", "reef up") from None


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None
