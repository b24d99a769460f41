"""Every error reef raises on purpose.

    ReefError
    ├── UsageError          2   400   the command or call was put wrongly
    ├── ConfigError         2   400   a setting is unknown, of the wrong type, or contradicts another
    ├── InvalidInput        1   400   the content of a request cannot be accepted
    ├── NotFound            1   404   the named thing does not exist
    ├── Conflict            1   409   an id is taken by other content, or a race was lost
    ├── TooLarge            1   413   over a size limit
    ├── UnsupportedContent  1   415   the body is not JSON by its content type
    ├── Unauthorized        4   401   a token is needed, or is wrong
    ├── CredentialMissing   4   401   a provider key is not set
    ├── Forbidden           5   403   the caller may not do this
    ├── Refused             5   409   a check or a gate said no
    ├── Failed              1   500   an operation did not succeed
    ├── UpstreamFailed      1   502   the model server did not answer properly
    ├── Unavailable         1   503   not ready, try again
    ├── DaemonUnreachable   3   503   no daemon answers for this home
    └── Interrupted       130   499   the person stopped it

The first number is the exit status of a command that ends with the error, the second the HTTP status of a route.
An error is one sentence that names the thing, and a `hint`: a command to paste. Nothing here prints.
"""

from __future__ import annotations

from typing import Any, ClassVar


class ReefError(Exception):
    """Base of all: `message` is one sentence without a full stop, `hint` a command to paste or None."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def to_json(self) -> dict[str, Any]:
        """The body of a `/reef/*` error reply: `{"error": {"code", "message", "hint"}}`."""
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint}}


class UsageError(ReefError):
    code = "usage"
    exit_code = 2
    http_status = 400


class ConfigError(ReefError):
    code = "config"
    exit_code = 2
    http_status = 400


class InvalidInput(ReefError):
    code = "invalid"
    http_status = 400


class NotFound(ReefError):
    code = "not_found"
    http_status = 404


class Conflict(ReefError):
    code = "conflict"
    http_status = 409


class TooLarge(ReefError):
    code = "too_large"
    http_status = 413


class UnsupportedContent(ReefError):
    code = "unsupported_content"
    http_status = 415


class Unauthorized(ReefError):
    code = "unauthorized"
    exit_code = 4
    http_status = 401


class CredentialMissing(ReefError):
    code = "credential_missing"
    exit_code = 4
    http_status = 401


class Forbidden(ReefError):
    code = "forbidden"
    exit_code = 5
    http_status = 403


class Refused(ReefError):
    code = "refused"
    exit_code = 5
    http_status = 409


class Failed(ReefError):
    code = "failed"


class UpstreamFailed(ReefError):
    code = "upstream_failed"
    http_status = 502


class Unavailable(ReefError):
    code = "unavailable"
    http_status = 503


class DaemonUnreachable(ReefError):
    code = "daemon_unreachable"
    exit_code = 3
    http_status = 503


class Interrupted(ReefError):
    code = "interrupted"
    exit_code = 130
    http_status = 499


def _family(kind: type[ReefError]) -> list[type[ReefError]]:
    found = [kind]
    for child in kind.__subclasses__():
        found += _family(child)
    return found


def from_json(status: int, body: object) -> ReefError:
    """Rebuild the error that a `/reef/*` route answered with.

    `status` is the HTTP status, `body` the parsed reply. An answer that is not in reef's shape becomes a
    plain `Failed` that names the status.
    """
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return Failed(f"the daemon answered with status {status}")
    hint = error.get("hint")
    # A class without a code of its own is a special case of its parent, and may be made in another way.
    by_code = {kind.code: kind for kind in _family(ReefError) if "code" in vars(kind)}
    kind = by_code.get(str(error.get("code")), Failed)
    return kind(error["message"], hint if isinstance(hint, str) else None)
