"""Errors of reef's own for calls of which there is no record."""

from __future__ import annotations

from aiohttp import web

from reef.gateway.dialect import Dialect, Problem


def refusal(dialect: Dialect, problem: Problem) -> web.Response:
    """`problem` in the dialect's shape."""
    body = dialect.error_body(problem)
    return web.Response(status=problem.status, body=body, content_type="application/json", headers=problem.headers)
