"""A model server that answers with one scripted reply and keeps every request, and one run of an agent against it.

`python -m reef.evaluation.recorder` reads a job as JSON on stdin and writes the outcome as JSON on stdout. It is a
process of its own so that server and agent can be put into one room together, where only loopback answers.

Job:     `{"argv": [...], "env": {...}, "cwd": path, "seconds": limit, "reply": text, "files": {path: text}}`; the
         text `{recorder}` in a file stands for the server's address.
Outcome: `{"exit_code": int | null, "timed_out": bool, "stdout", "stderr", "seconds", "requests": [{"path", "body"}]}`

Only the standard library is imported: the start of this process is most of what a run costs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODEL = "reef-recorder"
_MAX_TEXT = 20_000
_MAX_BODY = 64 * 1024 * 1024


class Recorder(ThreadingHTTPServer):
    """The server on a loopback port that the system chose."""

    daemon_threads = True

    def __init__(self, reply: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.seen: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def keep(self, path: str, body: bytes) -> None:
        """Add one request, in the order of arrival."""
        try:
            value: Any = json.loads(body)
        except ValueError:
            value = body.decode(errors="replace")
        with self._lock:
            self.seen.append({"path": path, "body": value})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def do_HEAD(self) -> None:
        self._send(b"", "application/json")

    def do_GET(self) -> None:
        self._send(b'{"object":"list","data":[{"id":"%s","object":"model"}]}' % MODEL.encode(), "application/json")

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(min(size, _MAX_BODY))
        self.server.keep(self.path, body)
        try:
            streaming = json.loads(body).get("stream") is True
        except (ValueError, AttributeError):
            streaming = False
        route = self.path.partition("?")[0].rstrip("/")
        if route.endswith("/count_tokens"):
            self._send(b'{"input_tokens":1}', "application/json")
            return
        whole, stream = next((said for end, said in _SAID.items() if route.endswith(end)), (_completion, _stream))
        if streaming:
            self._send(stream(self.server.reply), "text/event-stream")
        else:
            self._send(json.dumps(whole(self.server.reply)).encode(), "application/json")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged: what was asked is in the outcome."""

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _completion(reply: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {
        "id": "recorded",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": choices,
        "usage": usage,
    }


def _stream(reply: str) -> bytes:
    def chunk(delta: dict[str, str], finish: str | None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        value = {"id": "recorded", "object": "chat.completion.chunk", "created": 0, "model": MODEL, "choices": choices}
        return b"data: " + json.dumps(value).encode() + b"\n\n"

    return chunk({"role": "assistant", "content": reply}, None) + chunk({}, "stop") + b"data: [DONE]\n\n"


def _message(reply: str) -> dict[str, Any]:
    return {
        "id": "recorded",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": reply}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _message_stream(reply: str) -> bytes:
    whole = _message(reply)
    block, text = {"type": "text", "text": ""}, {"type": "text_delta", "text": reply}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    return _events(
        {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )


def _response(reply: str) -> dict[str, Any]:
    text = {"type": "output_text", "text": reply, "annotations": []}
    item = {"id": "recorded-0", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "recorded",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": MODEL,
        "output": [item],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details},
    }


def _response_stream(reply: str) -> bytes:
    whole = _response(reply)
    item = whole["output"][0]
    (text,) = item["content"]
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    part = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    steps: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": item | {"status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **part, "part": text | {"text": ""}},
        {"type": "response.output_text.delta", **part, "delta": reply},
        {"type": "response.output_text.done", **part, "text": reply},
        {"type": "response.content_part.done", **part, "part": text},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return _events(*({**step, "sequence_number": number} for number, step in enumerate(steps)))


def _events(*values: dict[str, Any]) -> bytes:
    return b"".join(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode() for value in values)


_SAID: dict[str, tuple[Callable[[str], dict[str, Any]], Callable[[str], bytes]]] = {
    "/messages": (_message, _message_stream),
    "/responses": (_response, _response_stream),
}
"""End of a route to its answer, whole and as a stream; any other is answered as chat completions."""


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run one job and return its outcome. Raises OSError when the agent's program does not exist."""
    server = Recorder(job["reply"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for path, text in job["files"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text.replace("{recorder}", server.url), encoding="utf-8")
    # Some agents take the address from a variable.
    job["env"] = {name: value.replace("{recorder}", server.url) for name, value in job["env"].items()}
    started = time.monotonic()
    out, err, code, timed_out = _agent(job)
    server.shutdown()
    return {
        "exit_code": code,
        "timed_out": timed_out,
        "stdout": out[-_MAX_TEXT:],
        "stderr": err[-_MAX_TEXT:],
        "seconds": round(time.monotonic() - started, 3),
        "requests": server.seen,
    }


def _agent(job: dict[str, Any]) -> tuple[str, str, int | None, bool]:
    child = subprocess.Popen(
        job["argv"],
        cwd=job["cwd"],
        env=job["env"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        out, err = child.communicate(timeout=job["seconds"])
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        return out, err, None, True
    return out, err, child.returncode, False


def main() -> int:
    """Read the job, run it, write the outcome."""
    json.dump(run(json.load(sys.stdin)), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
