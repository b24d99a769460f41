"""Who is calling, and may they: the rules of an API that is open for serving and keyed for deciding.

A credential comes as `Authorization: Bearer …` or as `x-api-key`, and is one of three things: the person key of this
home, a configured token, or the token of one agent session or step. Without a configured token the open routes need
none, and what clients send there by habit (`Bearer none`) is no credential at all.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from reef.errors import Forbidden, ReefError, Unauthorized

_SESSION_TOKEN = re.compile(r"reef-[A-Za-z0-9_-]{43}\Z")
_FROM_YOUR_SHELL = "reef status"


class Access(Enum):
    """What a route asks of its caller."""

    OPEN = "open"
    """Anyone on this machine but a session that it is not for; with a configured token whoever has it."""
    KEYED = "keyed"
    """The person key, or a configured token."""
    DECIDING = "deciding"
    """The person key, always: it changes what is served, or what runs on the person's machine."""


class Bound(Protocol):
    """The session that a session token stands for."""

    @property
    def id(self) -> str: ...

    @property
    def scenario(self) -> str: ...

    @property
    def kind(self) -> Literal["agent", "step"]: ...

    @property
    def key(self) -> str: ...

    @property
    def adapter(self) -> str | None: ...

    @property
    def version(self) -> int | None: ...


@dataclass(frozen=True)
class Caller:
    """Who sent a request."""

    kind: Literal["person", "token", "session", "nobody"]
    session: Bound | None = None
    inside: bool = False
    """Says itself that it runs in an agent's session, though it brings no session token."""

    @property
    def source(self) -> Literal["person", "program", "agent", "step"]:
        """What a report, an ask or a record of this caller is stored as."""
        if self.session is not None:
            return self.session.kind
        if self.inside:
            return "agent"
        return "person" if self.kind == "person" else "program"


NOBODY, _NOBODY_INSIDE = Caller("nobody"), Caller("nobody", None, True)


def digest(secret: str) -> bytes:
    """How secrets are kept and compared."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def credential(headers: Mapping[str, str]) -> str | None:
    """The credential of a request; `x-api-key` counts where there is no `Authorization`."""
    given = headers.get("authorization")
    if given is None:
        return headers.get("x-api-key") or None
    scheme, _, value = given.strip().partition(" ")
    return value.strip() or None if scheme.lower() == "bearer" else None


class Door:
    """Knows the secrets of this home and tells callers apart. Nothing of a secret is ever in an error."""

    def __init__(self, person_key: str, tokens: Iterable[str], session_of: Callable[[bytes], Bound | None]) -> None:
        self._person = digest(person_key)
        self._tokens = [digest(token) for token in tokens]
        # Of one configured token, else of the person key; either way only its digest is ever used.
        self._of_pages = self._tokens[0] if self._tokens else self._person
        self._session_of = session_of

    @property
    def needs_token(self) -> bool:
        """Whether a token is configured, so that every route but `/healthz` needs one."""
        return bool(self._tokens)

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Who sent these headers. Raises Unauthorized for a wrong token or an ended session."""
        inside = headers.get("x-reef-agent") == "1"
        secret = credential(headers)
        if secret is not None:
            found = digest(secret)
            if hmac.compare_digest(found, self._person):
                return Caller("nobody" if inside else "person", None, inside)
            if any(hmac.compare_digest(found, token) for token in self._tokens):
                return Caller("token", None, inside)
            session = self._session_of(found)
            if session is not None:
                return Caller("session", session)
            if _SESSION_TOKEN.match(secret):
                raise Unauthorized("this session has ended", "start the agent again")
            if self.needs_token:
                raise Unauthorized("this token is not accepted", "export REEF_TOKEN=…")
        elif self.needs_token:
            raise Unauthorized("this daemon needs a token", "export REEF_TOKEN=…")
        return _NOBODY_INSIDE if inside else NOBODY

    def page_key(self, scenario: str) -> str:
        """What opens the pages of one scenario and nothing else; it says nothing about what it was made from."""
        return hmac.new(self._of_pages, scenario.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def is_page_key(self, scenario: str, key: str) -> bool:
        """Whether `key` opens the pages of `scenario`."""
        return hmac.compare_digest(self.page_key(scenario).encode(), key.encode("utf-8", "surrogatepass"))

    def check(self, caller: Caller, access: Access, session_may: bool) -> None:
        """Raises Forbidden when `caller` may not use a route of this kind."""
        if caller.session is not None:
            # Also where whoever brings nothing is let in: a session is good for its own routes and nothing else.
            if session_may and access is not Access.DECIDING:
                return
            raise _not_for_sessions()
        if access is Access.OPEN:
            return
        if caller.kind == "person" or (caller.kind == "token" and access is Access.KEYED and not caller.inside):
            return
        if caller.inside:
            raise _not_for_sessions()
        what = "decides something" if access is Access.DECIDING else "shows what was recorded"
        raise Forbidden(f"this route {what} and needs the person key", f"use the reef command: {_FROM_YOUR_SHELL}")


def _not_for_sessions() -> ReefError:
    return Forbidden(
        "an agent's session may not do this, only the person", "run it in your own shell, outside the agent"
    )
