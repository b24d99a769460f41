"""A scripted model server that speaks OpenAI chat completions: `python -m tests.fakes.openai_server --port 0`.

It decides from the bytes of a request alone. A call whose system message begins as a proposer's gets valid entries made
from the ask; every other call gets a short reply. Words in double brackets in the last user message ask for more,
and may be joined (`[[slow 2s]] [[paced 50 20ms]]`):

    [[say TEXT]]              the reply text
    [[big 300kb]]             a reply text of that size
    [[tool NAME {json}]]      call that tool (once: a message with the tool's result gets a closing text)
    [[reasoning TEXT]]        reasoning before the text
    [[paced 50 20ms]]         that many text chunks, this far apart
    [[slow 5s]]               wait before the status line
    [[slow first 5s]]         send the headers, then wait before the first event
    [[status 529 retry-after 7]]   an error reply, with that header when named, and the words of `say`
    [[die after 3]]           cut the connection after that many chunks (not streaming: in the middle of the body)
    [[no done]]               end the stream cleanly without `[DONE]`
    [[no finish]]             end it without a finish reason either
    [[length]]                finish reason `length`
    [[error first]]           a 200 stream whose first event is an error
    [[error after 3]]         an error event after that many chunks
    [[usage last|before|every|none]]   where the usage stands; without it: last, when the call asked for it
    [[framing crlf|tight|comments|lines|torn|open]]   other legal ways to write the same events
    [[stream anyway]]         an event stream although none was asked for
    [[extra]]                 fields that nobody knows
    [[close]]                 close the connection after the reply without saying so
    [[propose REPLY]]         from a proposer: answer exactly REPLY

Prints `listening http://127.0.0.1:PORT`. With `--log FILE` it appends one JSON line when a request has arrived
(`event: request`) and one when it ended (`event: end`, `how: complete | client gone | cut`). `--key KEY` refuses calls
without that bearer key.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.fakes import chat_script

MODEL = "fake-model"


class Server:
    """The routes, the log and the numbering of calls."""

    def __init__(self, log: Path | None, key: str | None) -> None:
        self.log = log
        self.key = key
        self.calls = 0

    def note(self, **fact: Any) -> None:
        """Append one line to the log."""
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"at": time.time(), **fact}) + "\n")

    async def models(self, request: web.Request) -> web.Response:
        """The model list in OpenAI's shape."""
        self.note(event="models", path=request.path_qs)
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "fake"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """One chat completion, as the request's own words want it."""
        self.calls += 1
        number = self.calls
        raw = await request.read()
        self.note(
            event="request",
            number=number,
            path=request.path_qs,
            headers={name.lower(): value for name, value in request.headers.items()},
            names=[name.decode("latin-1") for name, _ in request.raw_headers],
            body=raw.decode("utf-8", "replace"),
        )
        how = "client gone"
        try:
            reply, how = await self._answer(request, raw, number)
            return reply
        except ConnectionError:
            how = "client gone"
            raise
        finally:
            self.note(event="end", number=number, how=how)

    async def _answer(self, request: web.Request, raw: bytes, number: int) -> tuple[web.StreamResponse, str]:
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            return _error(401, "Incorrect API key provided", "invalid_request_error"), "complete"
        try:
            body = json.loads(raw)
            script = chat_script.Script(body, number)
        except (ValueError, KeyError, TypeError, AttributeError) as reason:
            return _error(
                400, f"We could not parse the JSON body of your request: {reason}", "invalid_request_error"
            ), "complete"
        if script.slow:
            await asyncio.sleep(script.slow)
        if script.status:
            message = script.words.get("say", "scripted error")
            return _error(script.status, message, "server_error", script.retry_after), "complete"
        if script.streaming:
            return await self._stream(request, script)
        return await self._whole(request, script)

    async def _whole(self, request: web.Request, script: chat_script.Script) -> tuple[web.StreamResponse, str]:
        await asyncio.sleep(script.slow_first)
        payload = chat_script.encoded(script.completion())
        reply = web.StreamResponse(headers={"content-type": "application/json", "x-fake-call": str(script.number)})
        reply.content_length = len(payload)
        await reply.prepare(request)
        if script.die_after is not None:
            await reply.write(payload[: len(payload) // 2])
            return _cut(request, reply), "cut"
        await reply.write(payload)
        await reply.write_eof()
        if script.close:
            _cut(request, reply)
        return reply, "complete"

    async def _stream(self, request: web.Request, script: chat_script.Script) -> tuple[web.StreamResponse, str]:
        reply = web.StreamResponse(
            headers={"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        )
        reply.enable_chunked_encoding()
        await reply.prepare(request)
        await asyncio.sleep(script.slow_first)
        for place, event in enumerate(script.events()):
            if script.die_after is not None and place >= script.die_after:
                return _cut(request, reply), "cut"
            for piece in script.framed(event):
                await reply.write(piece)
                if script.framing == "torn":
                    await asyncio.sleep(0.002)
            if script.gap and event is not None:
                await asyncio.sleep(script.gap)
        await reply.write_eof()
        if script.close:
            _cut(request, reply)
        return reply, "complete"


def _cut(request: web.Request, reply: web.StreamResponse) -> web.StreamResponse:
    """Close the connection under the reply."""
    reply.force_close()
    if request.transport is not None:
        request.transport.close()
    return reply


def _error(status: int, message: str, kind: str, retry_after: str | None = None) -> web.Response:
    headers = {"retry-after": retry_after} if retry_after else None
    body = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return web.json_response(body, status=status, headers=headers)


def application(log: Path | None = None, key: str | None = None) -> web.Application:
    """The server as an aiohttp application, with and without `/v1` before its routes."""
    server = Server(log, key)
    app = web.Application(client_max_size=128 * 1024 * 1024)
    for prefix in ("", "/v1", "/gw/v1"):
        app.router.add_get(f"{prefix}/models", server.models)
        app.router.add_post(f"{prefix}/chat/completions", server.chat)
    return app


async def serve(port: int, log: Path | None, key: str | None) -> None:
    """Bind, say where, and run until ended."""
    # Without cancellation the server would not notice that a client has left.
    runner = web.AppRunner(application(log, key), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    address = runner.addresses[0]
    print(f"listening http://127.0.0.1:{address[1]}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="A scripted OpenAI chat server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--key")
    arguments = parser.parse_args()
    try:
        asyncio.run(serve(arguments.port, arguments.log, arguments.key))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
