"""The child process that speaks chat to reef and, through litellm, whatever a vendor speaks.

`python -m reef.engines.litellm_worker REPORT_FD` reads one line of JSON from standard input
(`{"model", "url", "timeout", "key"}`), writes one line to the inherited descriptor (`{"listening": …}` or
`{"error": …}`) and serves until standard input closes. Keys of the vendor are in the environment.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from reef.engines.embedded_worker import read_job
from reef.engines.lifeline import end_with_parent

Json = dict[str, Any]
LARGEST_REQUEST = 512 * 1024 * 1024
PASSED = frozenset(
    {
        "messages",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "top_k",
        "n",
        "stop",
        "max_tokens",
        "max_completion_tokens",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "seed",
        "user",
        "response_format",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "modalities",
        "audio",
        "prediction",
        "reasoning_effort",
        "thinking",
        "verbosity",
        "web_search_options",
    }
)
"""What a request may say of the answer. litellm takes far more, among it where to send the key."""
IGNORED = frozenset(
    {
        "store",
        "metadata",
        "client_metadata",
        "session_id",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
    }
)
"""What names the person, the session or a cache to another vendor and changes nothing in the answer."""
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}


class Worker:
    """The routes."""

    def __init__(self, litellm: Any, job: Json) -> None:
        self._litellm = litellm
        self._model: str = job["model"]
        self._vendor = self._model.partition("/")[0] + "/"
        self._more: Json = {"timeout": job["timeout"], "max_retries": 0, "num_retries": 0}
        if job.get("url"):
            self._more["api_base"] = job["url"]
        self._token = f"Bearer {job['key']}"

    def application(self) -> web.Application:
        """The server."""
        app = web.Application(client_max_size=LARGEST_REQUEST, middlewares=[self._guard])
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.chat)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return _refused(401, "this server is reef's own")
        reply: web.StreamResponse = await handler(request)
        return reply

    async def models(self, request: web.Request) -> web.Response:
        """`GET /v1/models`: the one model that is known by name."""
        found = {"id": self._model, "object": "model", "created": 0, "owned_by": self._vendor.rstrip("/")}
        return web.json_response({"object": "list", "data": [found]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/chat/completions`."""
        try:
            body = json.loads(await request.read())
            arguments = self.arguments(body)
        except ValueError as error:
            return _refused(400, str(error))
        try:
            reply = await self._litellm.acompletion(**arguments)
            if not arguments.get("stream"):
                return web.Response(body=_plain(reply), content_type="application/json")
            # The first chunk tells whether the vendor answers at all; an error before it keeps its status.
            chunks = aiter(reply)
            first = await anext(chunks, None)
        except Exception as error:
            return error_reply(error)
        return await self._stream(request, first, chunks)

    def arguments(self, body: Any) -> Json:
        """What litellm is called with. Raises ValueError naming a field that cannot be carried."""
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            raise ValueError("the request's body is not a JSON object with messages")
        found: Json = {}
        for name, value in body.items():
            if name in PASSED:
                found[name] = value
            elif name not in IGNORED and name != "model" and value is not None:
                raise ValueError(f"{name!r} cannot be carried to {self._vendor.rstrip('/')}")
        named = body.get("model")
        wanted = named if isinstance(named, str) and named.startswith(self._vendor) else self._model
        return {**found, "model": wanted, **self._more}

    async def _stream(self, request: web.Request, first: Any, rest: AsyncIterator[Any]) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await reply.prepare(request)
        try:
            if first is not None:
                await reply.write(b"data: " + _plain(first) + b"\n\n")
                async for chunk in rest:
                    await reply.write(b"data: " + _plain(chunk) + b"\n\n")
            await reply.write(b"data: [DONE]\n\n")
        except ConnectionError:
            raise
        except Exception as error:
            status, message = explained(error)
            await reply.write(b"data: " + json.dumps(_error(status, message)).encode() + b"\n\n")
        await reply.write_eof()
        return reply


def explained(error: Exception) -> tuple[int, str]:
    """Status and message of what litellm raised."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) and 400 <= status < 600 else 500
    message = str(getattr(error, "message", "") or error) or type(error).__name__
    # What follows are settings of litellm's that nobody can make here.
    return status, message.partition(" To drop these, set")[0]


def error_reply(error: Exception) -> web.Response:
    """What litellm raised, as a chat server says it: the vendor's status, and how long to wait where it said so."""
    status, message = explained(error)
    sent = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", None
    )
    return _refused(status, message, sent.get("retry-after") if sent else None)


def _refused(status: int, message: str, retry_after: str | None = None) -> web.Response:
    headers = {"retry-after": retry_after} if retry_after else None
    return web.json_response(_error(status, message), status=status, headers=headers)


def _error(status: int, message: str) -> Json:
    kind = KINDS.get(status, "server_error")
    return {"error": {"message": message[:4000], "type": kind, "param": None, "code": None}}


def _plain(value: Any) -> bytes:
    text: str = value.model_dump_json(exclude_none=True, exclude_unset=True)
    return text.encode()


def load() -> Any:
    """litellm, told to keep to itself. Raises ImportError."""
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True
    litellm.drop_params = False
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    return litellm


async def serve(worker: Worker, report: int) -> None:
    """Listen on a loopback port, say where, and run until ended."""
    # A client that leaves takes its call to the vendor with it.
    runner = web.AppRunner(worker.application(), handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    _report(report, {"listening": f"http://127.0.0.1:{runner.addresses[0][1]}"})
    await asyncio.Event().wait()


def _report(descriptor: int, fact: Json) -> None:
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(fact) + "\n")


def main() -> None:
    """Serve until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report = int(sys.argv[1])
    job = read_job()
    end_with_parent()
    try:
        worker = Worker(load(), job)
    except Exception as error:
        _report(report, {"error": f"{type(error).__name__}: {error}"})
        sys.exit(1)
    asyncio.run(serve(worker, report))


if __name__ == "__main__":
    main()
