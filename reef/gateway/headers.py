"""Which headers go on: everything but what belongs to one connection, to reef, or is a credential."""

from __future__ import annotations

import re
from functools import lru_cache

from multidict import CIMultiDict, CIMultiDictProxy

RECEIPT = "x-reef-agent-record-id"
REQUEST_ID = "request-id"
RELEASE = "x-reef-release-id"
UNRECORDED = "x-reef-unrecorded"
ESTIMATE = "x-reef-estimate"
TRANSLATED = "x-reef-translated"
_OWN = "x-reef-"
_TAG = "x-reef-tag-"

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_FORWARDED = _HOP_BY_HOP | {
    "host",
    "content-length",
    # The body was decoded when it was read.
    "content-encoding",
    "accept-encoding",
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "expect",
}
_VENDORS = ("anthropic-", "openai-")
"""Headers that belong to one vendor's protocol begin so."""
_OF_THE_BYTES = ("content-md5", "digest", "content-digest", "repr-digest")
"""Headers that say something of the exact bytes of a body."""
_NOT_RETURNED = _HOP_BY_HOP | {"content-length"}
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header can carry; a server that sends it all the same is understood by some clients."""


def forwarded(headers: CIMultiDictProxy[str], own: dict[str, str]) -> CIMultiDict[str]:
    """The headers of the upstream call: the client's without what ends here, then the engine's `own`.

    The reply is asked for without compression: its bytes go on as they are, and a copy of them is the record.
    """
    dropped = _named_in(headers.get("connection"))
    found: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        if _is_forwarded(name) and not (dropped and name.lower() in dropped):
            found.add(name, value)
    found["accept-encoding"] = "identity"
    found.update(own)
    return found


def translated(headers: CIMultiDictProxy[str], own: dict[str, str]) -> CIMultiDict[str]:
    """The same for a call in another dialect than the client's, whose own words mean nothing there."""
    found = rewritten(forwarded(headers, {}))
    for name in [name for name in found if name.lower().startswith(_VENDORS)]:
        found.popall(name, None)
    found["content-type"] = "application/json"
    found.update(own)
    return found


def rewritten(found: CIMultiDict[str]) -> CIMultiDict[str]:
    """The headers `found` of a body that is sent on in other bytes than those in which it came."""
    for name in _OF_THE_BYTES:
        found.popall(name, None)
    return found


def returned(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The upstream's headers for the client, without those that cannot be written.

    Whether other origins may read a reply is for the daemon to say.
    """
    dropped = _named_in(headers.get("connection"))
    found: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        if not _is_returned(name) or (dropped and name.lower() in dropped):
            continue
        if value.isprintable() or not _CONTROL.search(value):
            found.add(name, value)
    return found


def tags(headers: CIMultiDictProxy[str]) -> dict[str, str] | None:
    """The `x-reef-tag-<name>` headers by name; None when there are none."""
    names = [name for name in headers if name[:7].lower() == _OWN]
    found = {name.lower()[len(_TAG) :]: headers[name] for name in names if name.lower().startswith(_TAG)}
    return found or None


# The same few names come with every call.
@lru_cache(maxsize=512)
def _is_forwarded(name: str) -> bool:
    lower = name.lower()
    return lower not in _NOT_FORWARDED and not lower.startswith(_OWN)


@lru_cache(maxsize=512)
def _is_returned(name: str) -> bool:
    lower = name.lower()
    return lower not in _NOT_RETURNED and not lower.startswith((_OWN, "access-control-"))


def _named_in(connection: str | None) -> frozenset[str]:
    if not connection or connection.lower() in ("keep-alive", "close"):
        return frozenset()
    return frozenset(name.strip().lower() for name in connection.split(","))
