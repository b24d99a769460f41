"""The official SDKs on a real loopback server that gives one prepared answer to every call."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from reef.engines.engine import CHAT
from reef.gateway.translate import frame


@dataclass(frozen=True)
class Answer:
    """The body of a reply and its content type."""

    body: bytes
    kind: str


def raw_stream(dialect: str, events: list[dict[str, Any]]) -> bytes:
    """The bytes of a stream as a server of a dialect sends it."""
    raw = b"".join(frame(dialect, event) for event in events)
    return raw + (b"data: [DONE]\n\n" if dialect == CHAT and "error" not in events[-1] else b"")


def _served(answer: Answer) -> str:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", answer.kind)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def openai_client(answer: Answer) -> Any:
    """OpenAI's client, every call of which gets `answer`."""
    import openai

    return openai.OpenAI(base_url=_served(answer) + "/v1", api_key="k", max_retries=0)


def anthropic_client(answer: Answer) -> Any:
    """Anthropic's client, every call of which gets `answer`."""
    import anthropic

    return anthropic.Anthropic(base_url=_served(answer), api_key="k", max_retries=0)
