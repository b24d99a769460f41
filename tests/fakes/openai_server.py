"""A scripted model server: `python -m tests.fakes.openai_server --port 0`.

It speaks OpenAI chat completions, OpenAI responses and Anthropic messages, or those that `--dialects chat,messages`
names; the other routes are then not there.

It decides from the bytes of a request alone. A call whose system message begins as a proposer's gets valid entries made
from the ask; every other call gets a short reply. Words in double brackets in the last user message ask for more,
and may be joined (`[[slow 2s]] [[paced 50 20ms]]`):

    [[say TEXT]]              the reply text
    [[big 300kb]]             a reply text of that size
    [[tool NAME {json}]]      call that tool (once: a message with the tool's result gets a closing text)
    [[shell COMMAND]]         the same with the shell tool that the request offers, whatever its name and arguments are
    [[reasoning TEXT]]        reasoning before the text
    [[paced 50 20ms]]         that many text chunks, this far apart
    [[slow 5s]]               wait before the status line
    [[slow first 5s]]         send the headers, then wait before the first event
    [[status 529 retry-after 7]]   an error reply, with that header when named, and the words of `say`
    [[die after 3]]           cut the connection after that many chunks (not streaming: in the middle of the body)
    [[no done]]               end the stream cleanly without `[DONE]`
    [[no finish]]             end it without a finish reason either
    [[abort 2]]               break the reply off, as a loading engine does, while the server has had at most that
                              many calls; with `[[say TEXT]]` in the middle of it
    [[length]]                finish reason `length`
    [[prompt 2051]] [[cached 9]] [[completion 3]]   what the usage says
    [[error first]]           a 200 stream whose first event is an error
    [[error after 3]]         an error event after that many chunks
    [[usage last|before|every|none]]   where the usage stands; without it: last, when the call asked for it
    [[framing cr|crlf|tight|comments|lines|torn|open]]   other legal ways to write the same events
    [[stream anyway]]         an event stream although none was asked for
    [[extra]]                 fields that nobody knows
    [[close]]                 close the connection after the reply without saying so
    [[replay chat 7]]         the captured stream of a dialect, cut where that seed says
    [[propose REPLY]]         from a proposer: answer exactly REPLY

Prints `listening http://127.0.0.1:PORT`. With `--log FILE` it appends one JSON line when a request has arrived
(`event: request`) and one when it ended (`event: end`, `how: complete | client gone | cut`); a question which dialects
it speaks is `event: probe`. `--key KEY` refuses calls without that key, as bearer or as `x-api-key`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.fakes import chat_script
from tests.fakes.messages_script import MessagesScript
from tests.fakes.replay import captured, pieces_of
from tests.fakes.responses_script import ResponsesScript

MODEL = "fake-model"
PROBE = b"{"
DIALECTS: dict[str, tuple[str, type[chat_script.Script]]] = {
    "chat": ("/chat/completions", chat_script.Script),
    "responses": ("/responses", ResponsesScript),
    "messages": ("/messages", MessagesScript),
}
Answer = Callable[[web.Request, bytes, int], Awaitable[tuple[web.StreamResponse, str]]]


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

    def route(self, script: type[chat_script.Script]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """A route that answers one call as the request's own words want it."""

        async def answer(request: web.Request, raw: bytes, number: int) -> tuple[web.StreamResponse, str]:
            return await self._answer(request, raw, number, script)

        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._logged(request, answer)

        return handle

    async def count_tokens(self, request: web.Request) -> web.StreamResponse:
        """How many tokens a messages request has."""

        async def answer(request: web.Request, raw: bytes, number: int) -> tuple[web.StreamResponse, str]:
            script = MessagesScript(json.loads(raw), number)
            await asyncio.sleep(script.slow)
            if script.status:
                return _error(request, script.status, "scripted error", "server_error"), "complete"
            return web.json_response(script.count()), "complete"

        return await self._logged(request, answer)

    async def echo(self, request: web.Request) -> web.StreamResponse:
        """An embedding, a picture, a voice: bytes that depend on the request."""

        async def answer(request: web.Request, raw: bytes, number: int) -> tuple[web.StreamResponse, str]:
            body = {} if request.content_type == "multipart/form-data" else json.loads(raw)
            if body.get("model") == "missing":
                return _error(request, 404, "the model `missing` does not exist", "not_found"), "complete"
            await asyncio.sleep(body.get("slow", 0))
            return web.Response(body=b"\x00\xff" + raw, content_type="audio/mpeg"), "complete"

        return await self._logged(request, answer)

    async def _logged(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        raw = await request.read()
        if raw == PROBE:
            self.note(event="probe", path=request.path_qs)
            return _error(request, 400, "We could not parse the JSON body of your request", "invalid_request_error")
        self.calls += 1
        number = self.calls
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
            reply, how = await answer(request, raw, number)
            return reply
        except ConnectionError:
            how = "client gone"
            raise
        finally:
            self.note(event="end", number=number, how=how)

    async def _answer(
        self, request: web.Request, raw: bytes, number: int, kind: type[chat_script.Script]
    ) -> tuple[web.StreamResponse, str]:
        given = (request.headers.get("authorization", "").removeprefix("Bearer "), request.headers.get("x-api-key"))
        if self.key is not None and self.key not in given:
            return _error(request, 401, "Incorrect API key provided", "invalid_request_error"), "complete"
        try:
            script = kind(json.loads(raw), number)
        except (ValueError, KeyError, TypeError, AttributeError) as reason:
            message = f"We could not parse the JSON body of your request: {reason}"
            return _error(request, 400, message, "invalid_request_error"), "complete"
        if script.slow:
            await asyncio.sleep(script.slow)
        if script.status:
            message = script.words.get("say", "scripted error")
            kind_of_error = "overloaded_error" if script.status == 529 else "server_error"
            return _error(request, script.status, message, kind_of_error, script.retry_after), "complete"
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
        if "replay" in script.words:
            await _replay(reply, *script.words["replay"].split())
            return reply, "complete"
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


async def _replay(reply: web.StreamResponse, dialect: str, seed: str) -> None:
    for piece in pieces_of(captured(dialect), int(seed)):
        await reply.write(piece)
        # The reader has its turn, so that it finds this piece alone.
        await asyncio.sleep(0)
    await reply.write_eof()


def _cut(request: web.Request, reply: web.StreamResponse) -> web.StreamResponse:
    """Close the connection under the reply."""
    reply.force_close()
    if request.transport is not None:
        request.transport.close()
    return reply


def _error(request: web.Request, status: int, message: str, kind: str, retry_after: str | None = None) -> web.Response:
    headers = {"retry-after": retry_after} if retry_after else None
    body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    if "/messages" in request.path:
        body = {"type": "error", "error": {"type": kind, "message": message}}
    return web.json_response(body, status=status, headers=headers)


def application(
    log: Path | None = None,
    key: str | None = None,
    dialects: Collection[str] = tuple(DIALECTS),
    more: Collection[str] = (),
) -> web.Application:
    """The server as an aiohttp application, with and without `/v1` before its routes.

    `more` are other routes that it has: `/embeddings`, `/audio/speech`, `/messages/count_tokens`.
    """
    server = Server(log, key)
    app = web.Application(client_max_size=128 * 1024 * 1024)
    for prefix in ("", "/v1", "/gw/v1"):
        app.router.add_get(f"{prefix}/models", server.models)
        for dialect in dialects:
            route, script = DIALECTS[dialect]
            app.router.add_post(prefix + route, server.route(script))
        for route in more:
            counts = route.endswith("/count_tokens")
            app.router.add_post(prefix + route, server.count_tokens if counts else server.echo)
    return app


async def serve(port: int, log: Path | None, key: str | None, dialects: Collection[str], more: Collection[str]) -> None:
    """Bind, say where, and run until ended."""
    # Without cancellation the server would not notice that a client has left.
    runner = web.AppRunner(
        application(log, key, dialects, more), handler_cancellation=True, access_log=None, shutdown_timeout=0.1
    )
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
    parser.add_argument("--dialects", default=",".join(DIALECTS))
    parser.add_argument("--more", default="/messages/count_tokens", help="other routes, with commas")
    arguments = parser.parse_args()
    dialects = [name for name in arguments.dialects.split(",") if name]
    more = [route for route in arguments.more.split(",") if route]
    try:
        asyncio.run(serve(arguments.port, arguments.log, arguments.key, dialects, more))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
