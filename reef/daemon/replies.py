"""How the daemon answers: JSON bodies, errors in the shape that the route's clients read, NDJSON and event streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from reef.errors import InvalidInput, ReefError
from reef.gateway.dialect import problem_of
from reef.gateway.dialects import dialect_of_path
from reef.gateway.refusing import refusal

_OFF_THE_LOOP = 256 * 1024


def json_reply(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """`body` as JSON. What the daemon shows changes all the time, so nothing may keep a copy."""
    found = web.Response(body=_json(body), status=status, content_type="application/json", headers=headers)
    found.headers["cache-control"] = "no-store"
    return found


def _json(body: object) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:
        # Reports hold whatever JSON can: numbers of any length, half a surrogate pair.
        return json.dumps(body, separators=(",", ":")).encode()


def error_reply(path: str, error: ReefError) -> web.Response:
    """`error` in the shape of the API that `path` belongs to."""
    dialect = dialect_of_path(path)
    if dialect is None:
        return json_reply(error.to_json(), error.http_status)
    found = refusal(dialect, problem_of(error))
    found.headers["cache-control"] = "no-store"
    return found


async def json_body(request: web.Request, required: bool = True) -> dict[str, Any]:
    """The request's JSON object; an empty body is `{}` unless `required`. Raises InvalidInput."""
    raw = await request.read()
    if not raw and not required:
        return {}
    try:
        found = await asyncio.to_thread(orjson.loads, raw) if len(raw) > _OFF_THE_LOOP else orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the body is not JSON ({error.msg} at byte {error.pos})") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"the body is a JSON {_kind(found)}, not an object")
    return found


async def exact_json_body(request: web.Request) -> dict[str, Any]:
    """The request's JSON object with all that JSON can hold: numbers of any length, half a surrogate pair.

    Raises InvalidInput.
    """
    raw = await request.read()
    try:
        found = await asyncio.to_thread(_exact, raw) if len(raw) > _OFF_THE_LOOP else _exact(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the body is not JSON that can be stored ({error})") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"the body is a JSON {_kind(found)}, not an object")
    return found


def _exact(raw: bytes) -> Any:
    return json.loads(raw, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _kind(value: object) -> str:
    names = {list: "list", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), "value")


def text_field(body: Mapping[str, Any], name: str, required: bool = False, longest: int = 4000) -> str | None:
    """A string of `body`. Raises InvalidInput that names the field."""
    value = body.get(name)
    if value is None:
        if required:
            raise InvalidInput(f"the body needs {name!r}")
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"{name!r} is a JSON {_kind(value)}, not a string")
    if len(value) > longest:
        raise InvalidInput(f"{name!r} is longer than {longest} characters")
    return value


def whole_number(
    text: str | None, name: str, default: int | None = None, least: int = 0, most: int = 2**62
) -> int | None:
    """A number of a query string or path. Raises InvalidInput that names it."""
    if text is None or text == "":
        return default
    digits = text.lstrip("0") or "0"
    # Python refuses to read a number of thousands of digits, so the length is looked at first.
    readable = text.isascii() and text.isdigit() and len(digits) <= len(str(most))
    if not readable or not least <= int(digits) <= most:
        raise InvalidInput(f"{name} is not a whole number between {least} and {most}")
    return int(digits)
