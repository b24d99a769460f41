"""A scripted server of a vendor that speaks none of the three dialects: `python -m tests.fakes.gemini_server`.

It speaks Google's `generateContent`; the words are those of the chat script (`say`, `tool`, `status`, `paced`, `die
after`, `slow`, `prompt`, `completion`). Prints `listening http://127.0.0.1:PORT`; `--log FILE` gets one JSON line when
a request has arrived (`event: request`) and one when it ended (`event: end`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.fakes.chat_script import Script

STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


class GeminiScript(Script):
    """One request to `:generateContent`, read."""

    def __init__(self, body: dict[str, Any], number: int) -> None:
        super().__init__({"messages": _messages(body), "tools": body.get("tools")}, number)

    def parts(self) -> list[dict[str, Any]]:
        """The parts of the whole reply."""
        call = self.tool_call
        if call is None:
            return [{"text": piece} for piece in self.text_pieces()]
        given = json.loads(call["function"]["arguments"])
        return [{"functionCall": {"name": call["function"]["name"], "args": given}}]

    def reply(self, parts: list[dict[str, Any]], ends: bool) -> dict[str, Any]:
        """One object of a reply, streamed or not."""
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
        counted = self.usage
        usage = {
            "promptTokenCount": counted["prompt_tokens"],
            "candidatesTokenCount": counted["completion_tokens"],
            "totalTokenCount": counted["total_tokens"],
        }
        if ends:
            candidate["finishReason"] = "STOP"
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "fake",
            "responseId": f"g{self.number}",
        }

    def stream(self) -> Iterator[dict[str, Any]]:
        """The events of a stream."""
        parts = self.parts()
        yield from (self.reply([part], place == len(parts) - 1) for place, part in enumerate(parts))


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for content in body["contents"]:
        texts = [part["text"] for part in content["parts"] if "text" in part]
        # Google's servers take the names in either spelling.
        given = [part.get("functionResponse") or part.get("function_response") for part in content["parts"]]
        results = [result["response"] for result in given if result]
        if texts:
            found.append({"role": content.get("role", "user"), "content": "\n".join(texts)})
        found += [{"role": "tool", "content": str(next(iter(result.values()), ""))} for result in results]
    return found


class Server:
    """The routes and the log."""

    def __init__(self, log: Path | None) -> None:
        self._log = log
        self._calls = 0

    def _note(self, **fact: Any) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(fact) + "\n")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1beta/models/<model>:generateContent`, or `:streamGenerateContent`."""
        body = await request.json()
        self._calls += 1
        headers = {name.lower(): value for name, value in request.headers.items()}
        self._note(event="request", path=request.path_qs, headers=headers, body=body)
        how = "client gone"
        try:
            reply = await self._answer(request, GeminiScript(body, self._calls))
            how = "complete"
            return reply
        finally:
            self._note(event="end", how=how)

    async def _answer(self, request: web.Request, script: GeminiScript) -> web.StreamResponse:
        await asyncio.sleep(script.slow)
        if script.status:
            error = {
                "code": script.status,
                "message": "scripted error",
                "status": STATUS.get(script.status, "INTERNAL"),
            }
            waits = {"retry-after": script.retry_after} if script.retry_after else None
            return web.json_response({"error": error}, status=script.status, headers=waits)
        if not request.path.endswith(":streamGenerateContent"):
            return web.json_response(script.reply(script.parts(), True))
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        for place, event in enumerate(script.stream()):
            if script.die_after is not None and place >= script.die_after:
                assert request.transport is not None
                request.transport.close()
                return reply
            await reply.write(b"data: " + json.dumps(event).encode() + b"\r\n\r\n")
            await asyncio.sleep(script.gap)
        await reply.write_eof()
        return reply


async def serve(port: int, log: Path | None) -> None:
    """Bind, say where, and run until ended."""
    app = web.Application()
    app.router.add_post("/v1beta/models/{call}", Server(log).answer)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print(f"listening http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="A scripted server of Google's format.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.port, arguments.log))


if __name__ == "__main__":
    main()
