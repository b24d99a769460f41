"""A stand-in for the daemon on a real loopback socket: it answers the routes that screens read, from plain Python data.

It holds what a test puts into it, hostile text included, proves itself with the home's person key as the daemon does,
and counts what it was asked. It is not the daemon: it checks nothing and stores nothing.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from reef import __version__
from reef.discovery import prove
from reef.ids import new_id, utc_now
from reef.paths import Paths, write_atomic

Json = dict[str, Any]


class DaemonFake:
    """Serves `records`, `asks`, `steps`, `versions`; `with DaemonFake(paths) as fake`."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.records: list[Json] = []
        """Oldest first, `sequence` growing."""
        self.bodies: dict[str, tuple[bytes, bytes]] = {}
        self.reports: list[Json] = []
        self.asks: list[Json] = []
        self.activity: list[Json] = []
        self.steps: list[Json] = []
        self.versions: list[Json] = []
        self.files: dict[int, dict[str, str]] = {}
        self.differences: dict[tuple[str, str], list[Json]] = {}
        self.progress: list[Json] = []
        """Lines that an install streams before it says that it installed."""
        self.refusals: dict[str, tuple[int, Json]] = {}
        """Path to the status and error that it answers with."""
        self.asked: list[tuple[str, str, Json]] = []
        """Method, path and body of every call but reads of `/healthz`, `/reef/status` and `/reef/events`."""
        self.engine: Json = {"name": "ollama", "model": "qwen3:8b", "state": "ready"}
        self._listeners: list[queue.Queue[Json | None]] = []
        self._sequence = 0
        self._server: ThreadingHTTPServer | None = None
        self.key = "k" * 43
        self.started_at = utc_now()
        self.hang = False
        """Whether it takes calls and does not answer them."""

    def __enter__(self) -> DaemonFake:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        fake = self

        class Handler(_Handler):
            daemon = fake

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        write_atomic(self.paths.person_key, self.key.encode())
        found = {"pid": 0, "url": self.url, "version": __version__, "started_at": utc_now()}
        write_atomic(self.paths.discovery, json.dumps(found).encode())

    def stop(self) -> None:
        if self._server is None:
            return
        for listener in self._listeners:
            listener.put(None)
        self._server.shutdown()
        self._server.server_close()
        self._server = None
        self.paths.discovery.unlink(missing_ok=True)

    @property
    def running(self) -> bool:
        """Whether it answers."""
        return self._server is not None

    # what happens

    def emit(self, kind: str, scenario: str = "default", state: str | None = None, **ids: Any) -> None:
        """Tell every listener that something happened."""
        self._sequence += 1
        event = {
            "sequence": self._sequence,
            "at": utc_now(),
            "kind": kind,
            "scenario": scenario,
            "ids": ids,
            "state": state,
        }
        for listener in self._listeners:
            listener.put(event)

    def add_record(self, preview: str = "hello", quiet: bool = False, **fields: Any) -> Json:
        """A recorded call, with an event unless `quiet`."""
        row = record_row(len(self.records) + 1, preview) | fields
        self.records.append(row)
        if not quiet:
            self.emit("record_opened", record=row["agent_record_id"])
        return row

    # answers

    def status(self) -> Json:
        names = {row["scenario"] for row in [*self.records[-500:], *self.versions]} | {"default"}
        scenarios = []
        for name in sorted(names):
            own = [version for version in self.versions if version["scenario"] == name]
            scenarios.append(
                {
                    "name": name,
                    "recipe": "reefine",
                    "adapter": "pi",
                    "head": next((v["version"] for v in own if v["current"]), None),
                    "pending": [v["version"] for v in own if v["pending"]],
                    "records": sum(row["scenario"] == name for row in self.records[-500:]),
                    "reports": len(self.reports),
                    "asks_open": sum(ask["state"] in ("queued", "running") for ask in self.asks),
                    "running_step": None,
                }
            )
        pending = [(row["name"], version) for row in scenarios for version in row["pending"]]
        return {
            "version": __version__,
            "url": self.url,
            "pid": 4121,
            "started_at": self.started_at,
            "uptime_s": 7260,
            "engine": self.engine,
            "scenarios": scenarios,
            "records": {"count": len(self.records), "bytes": 61_000_000, "last_at": utc_now(), "lost": 0},
            "agents": [{"name": "pi", "version": "1.6.0", "installed": True}],
            "needs_you": [{"kind": "pending_version", "scenario": s, "version": v} for s, v in pending],
        }

    def window(self, query: dict[str, str]) -> Json:
        rows = self.records
        if query.get("scenario"):
            rows = [row for row in rows if row["scenario"] == query["scenario"]]
        if query.get("q"):
            rows = [row for row in rows if query["q"].lower() in row["preview"].lower()]
        total, limit = len(rows), int(query.get("limit", 100))
        if "after" in query:
            # The rows next to the edge, not the newest of all.
            found = [row for row in rows if row["sequence"] > int(query["after"])][:limit]
        else:
            before = int(query.get("before", 2**60))
            if rows is self.records:
                found = rows[max(0, min(before - 1, len(rows)) - limit) : max(0, min(before - 1, len(rows)))]
            else:
                found = [row for row in rows if row["sequence"] < before][-limit:]
        return {"records": found[::-1], "total": total}

    def whole_record(self, receipt: str) -> Json:
        row = next(row for row in self.records if row["agent_record_id"] == receipt)
        request, response = self.bodies.get(receipt) or default_bodies(row)
        reports = [report for report in self.reports if receipt in report.get("references", ())]
        return row | {
            "request_text": request.decode("utf-8", "replace"),
            "response_text": response.decode("utf-8", "replace"),
            "reports": reports,
        }

    def listen(self) -> Iterator[Json]:
        mine: queue.Queue[Json | None] = queue.Queue()
        self._listeners.append(mine)
        while (event := mine.get()) is not None:
            yield event
        self._listeners.remove(mine)

    @property
    def listening(self) -> bool:
        """Whether somebody follows the events."""
        return bool(self._listeners)


def record_row(sequence: int, preview: str) -> Json:
    """A row of `/reef/records`."""
    return {
        "sequence": sequence,
        "agent_record_id": f"{sequence:032x}",
        "scenario": "default",
        "session": "a1",
        "dialect": "chat",
        "model": "qwen3:8b",
        "streaming": True,
        "state": "complete",
        "source": "agent",
        "adapter": "pi",
        "version": 2,
        "engine": "ollama",
        "load_id": "1:1",
        "status": 200,
        "error": None,
        "started_at": utc_now(),
        "first_byte_ms": 400,
        "duration_ms": 2800,
        "prompt_tokens": 900,
        "completion_tokens": 77,
        "cached_tokens": 0,
        "finish_reason": "stop",
        "request_bytes": 2000,
        "response_bytes": 900,
        "preview": preview,
        "answer_preview": "fine",
        "score": None,
        "agent_score": None,
        "side_call": False,
        "redactions": 0,
    }


def default_bodies(row: Json) -> tuple[bytes, bytes]:
    """Request and reply of a call that a test gave no bodies for."""
    asked = {"model": "m", "messages": [{"role": "user", "content": row["preview"]}]}
    said = {"choices": [{"message": {"role": "assistant", "content": row["answer_preview"]}, "finish_reason": "stop"}]}
    return json.dumps(asked).encode(), json.dumps(said).encode()


class _Handler(BaseHTTPRequestHandler):
    daemon: DaemonFake
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `asked` instead."""

    def do_GET(self) -> None:
        self._answer("GET", {})

    def do_DELETE(self) -> None:
        self._answer("DELETE", {})

    def do_PATCH(self) -> None:
        self.do_body("PATCH")

    def do_POST(self) -> None:
        self.do_body("POST")

    def do_body(self, method: str) -> None:
        length = int(self.headers.get("content-length") or 0)
        self._answer(method, json.loads(self.rfile.read(length) or b"{}"))

    def _answer(self, method: str, body: Json) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if not self.daemon.running:
            # A kept connection of a daemon that has ended.
            self.close_connection = True
            return
        while self.daemon.hang and self.daemon.running:
            time.sleep(0.05)
        if path == "/healthz":
            nonce = self.headers.get("x-reef-challenge", "")
            self._send(b'{"ok":true}', {"x-reef-proof": prove(self.daemon.key, nonce)})
            return
        if path == "/reef/events":
            self._events()
            return
        if path != "/reef/status":
            self.daemon.asked.append((method, path, body))
        if path in self.daemon.refusals:
            status, error = self.daemon.refusals[path]
            self._send(json.dumps({"error": error}).encode(), status=status)
            return
        if path == "/reef/harness/install":
            self._install(body)
            return
        found = _route(self.daemon, method, path, query, body)
        if found is None:
            error = {"code": "not_found", "message": f"nothing at {path}", "hint": None}
            self._send(json.dumps({"error": error}).encode(), status=404)
        else:
            self._send(found if isinstance(found, bytes) else json.dumps(found).encode())

    def _send(self, body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, lines: Iterator[bytes], kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for line in lines:
                self.wfile.write(line)
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            return

    def _events(self) -> None:
        self._stream(
            (b"data: " + json.dumps(event).encode() + b"\n\n" for event in self.daemon.listen()), "text/event-stream"
        )

    def _install(self, body: Json) -> None:
        done = {
            "scenario": body["scenario"],
            "adapter": body["adapter"],
            "version": body.get("version"),
            "changed": True,
        }
        lines = [*self.daemon.progress, {"installed": done}]
        self._stream((json.dumps(line).encode() + b"\n" for line in lines), "application/x-ndjson")


def _route(fake: DaemonFake, method: str, path: str, query: dict[str, str], body: Json) -> Any:
    plain: dict[tuple[str, str], Callable[[], Any]] = {
        ("GET", "/reef/status"): fake.status,
        ("GET", "/reef/records"): lambda: fake.window(query),
        ("GET", "/reef/asks"): lambda: {"asks": _of(fake.asks, query)},
        ("GET", "/reef/steps"): lambda: {"steps": _of(fake.steps, query)},
        ("GET", "/reef/harness/releases"): lambda: {"scenario": "default", "releases": fake.versions},
        ("POST", "/reef/report"): lambda: _report(fake, body),
        ("POST", "/reef/train"): lambda: _train(fake, body),
    }
    if (method, path) in plain:
        return plain[method, path]()
    parts = path.strip("/").split("/")
    match (method, *parts):
        case ("GET", "reef", "records", receipt):
            return fake.whole_record(receipt)
        case ("GET", "reef", "records", receipt, part):
            return fake.whole_record(receipt)[f"{part}_text"].encode()
        case ("GET", "reef", "harness", "requests", ask, "progress"):
            found = next(row for row in fake.asks if row["id"] == ask)
            told = {name: found[name] for name in ("number", "scenario", "state", "step", "version", "reason")}
            settled = found["state"] not in ("queued", "running")
            return {"request_id": ask, "settled": settled, "meaning": "", "activity": fake.activity, **told}
        case ("POST", "reef", "asks", ask, "cancel"):
            found = next(row for row in fake.asks if row["id"] == ask)
            found["state"] = "cancelled"
            return found
        case ("GET", "reef", "steps", _, number):
            return next(step for step in fake.steps if step["number"] == int(number))
        case ("GET", "reef", "scenarios", _, "versions", number):
            version = next(v for v in fake.versions if v["version"] == int(number))
            return version | {"files": fake.files.get(int(number), {}), "step_row": None}
        case ("GET", "reef", "scenarios", _, "diff"):
            return {"files": fake.differences.get((query["from"], query["to"]), [])}
        case ("POST", "reef", "scenarios", _, "promote" | "rollback"):
            return {"scenario": "default", "version": body["version"], "release_id": "f" * 40, "content_id": "e" * 40}
        case ("POST", "reef", "scenarios", _, "pin" | "unpin" as verb):
            for version in fake.versions:
                version["pinned"] = verb == "pin" and version["version"] == body["version"]
            return {"scenario": "default", "pins": []}
        case ("GET", "reef", "reports"):
            rows = [row for row in fake.reports if query.get("receipt") in (None, *row["references"])]
            return {"reports": rows[::-1]}
        case ("PATCH", "reef", "reports", report):
            return _revise(fake, report, body)
        case ("DELETE", "reef", "reports", report, "revisions", number):
            return _undo(fake, report, int(number))
        case ("DELETE", "reef", "reports", report):
            fake.reports = [row for row in fake.reports if row["id"] != report]
            return {"id": report, "withdrawn": True}
    return None


def _of(rows: list[Json], query: dict[str, str]) -> list[Json]:
    return [row for row in rows if query.get("scenario") in (None, row["scenario"])]


def _report(fake: DaemonFake, body: Json) -> Json:
    report = report_row(body["agent_record_id"]) | body
    fake.reports.append(report)
    for row in fake.records:
        if row["agent_record_id"] in body.get("references", ()) and "score" in body:
            row["score"] = body["score"]
    return {"agent_record_id": report["id"], "scenario": "default", "request_type": "report"}


def _revise(fake: DaemonFake, id: str, changes: Json) -> Json:
    report = next(row for row in fake.reports if row["id"] == id)
    said = {"score": report["score"], "feedback": report["feedback"], "at": utc_now(), "undone_at": None}
    report["revisions"] = report["revisions"] or [said | {"number": 0}]
    number = len(report["revisions"])
    report["revisions"].append(said | changes | {"number": number})
    _say(fake, report, changes)
    return {"agent_record_id": id, "scenario": "default", "request_type": "report", "revision": number}


def _undo(fake: DaemonFake, id: str, number: int) -> Json:
    report = next(row for row in fake.reports if row["id"] == id)
    report["revisions"][number]["undone_at"] = utc_now()
    _say(fake, report, {name: report["revisions"][number - 1][name] for name in ("score", "feedback")})
    return {"agent_record_id": id, "undone": number, "references": report["references"]}


def _say(fake: DaemonFake, report: Json, said: Json) -> None:
    report.update(said)
    for row in fake.records:
        if row["agent_record_id"] in report["references"]:
            row["score"] = report["score"]


def report_row(id: str) -> Json:
    """A row of `/reef/reports`."""
    return {
        "id": id,
        "source": "person",
        "scope": "receipt",
        "score": None,
        "feedback": None,
        "references": [],
        "created_at": utc_now(),
        "consumed_by": None,
        "withdrawn_at": None,
        "revised_at": None,
        "revisions": [],
    }


def _train(fake: DaemonFake, body: Json) -> Json:
    ask = ask_row(len(fake.asks) + 1, body["text"])
    fake.asks.append(ask)
    fake.emit("ask_queued", ask=ask["id"])
    return {"agent_record_id": ask["id"], "scenario": "default", "request_type": "train", "number": ask["number"]}


def ask_row(number: int, text: str, **fields: Any) -> Json:
    """A row of `/reef/asks`."""
    return {
        "id": new_id(),
        "number": number,
        "scenario": "default",
        "text": text,
        "state": "queued",
        "step": None,
        "version": None,
        "created_at": utc_now(),
        "settled_at": None,
        "reason": None,
        "session": None,
    } | fields


def version_row(number: int, summary: str, **fields: Any) -> Json:
    """A row of `/reef/harness/releases`."""
    return {
        "scenario": "default",
        "version": number,
        "release_id": f"{number:040x}",
        "content_id": f"{number + 1000:040x}",
        "parent_release_id": f"{number - 1:040x}" if number > 1 else None,
        "step": number - 1 or None,
        "operation": "training" if number > 1 else "base",
        "state": "published",
        "current": False,
        "pending": False,
        "summary": summary,
        "created_at": utc_now(),
        "evaluation": {},
        "requires": [],
        "components": ["harness"],
        "asks": [],
    } | fields


def step_row(number: int, state: str, **fields: Any) -> Json:
    """A row of `/reef/steps`."""
    return {
        "scenario": "default",
        "number": number,
        "recipe": "reefine",
        "proposer": "model",
        "policy": "reach",
        "state": state,
        "started_at": utc_now(),
        "ended_at": utc_now(),
        "asks": [],
        "summary": "",
        "reason": "",
        "evaluation": {},
        "mutations": [],
        "candidate": None,
        "version": None,
        "metrics": {},
        "notes": [],
        "episodes": [],
        "activity": [],
    } | fields
