"""Stopping: running calls get their time, then they are cut and say so; a second request does not wait."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import httpx

from reef.records.reader import Reader
from tests.http.running import Home, chat, wait_for


class Call:
    """One streamed call in a thread."""

    def __init__(self, home: Home, text: str) -> None:
        self.body = b""
        self.receipt = ""
        self._home = home
        self._text = text
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        wait_for(lambda: self.body)

    def _run(self) -> None:
        message = {"messages": [{"role": "user", "content": self._text}], "stream": True}
        with httpx.stream(
            "POST", f"{self._home.url}/v1/chat/completions", json=message, timeout=60, verify=False
        ) as reply:
            self.receipt = reply.headers["x-reef-agent-record-id"]
            for piece in reply.iter_raw():
                self.body += piece

    def end(self) -> bytes:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.body


def state(home: Home, receipt: str) -> str:
    return str(Reader(home.paths.database).record(receipt)["state"])


def test_a_running_call_ends_by_itself_and_new_ones_are_refused_meanwhile(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    call = Call(home, "[[paced 20 100ms]]")
    client, person = home.nobody, home.person
    assert person.post("/reef/stop", json={}).json()["running_calls"] == 1
    refused = chat(client, "hi")
    assert (refused.status_code, "stopping" in refused.text) == (503, True)
    assert person.get("/reef/status").json()["stopping"] is True
    assert call.end().rstrip().endswith(b"data: [DONE]")
    assert home.process is not None and home.process.wait(20) == 0
    assert state(home, call.receipt) == "complete"
    assert not home.paths.discovery.exists()


def test_what_still_runs_after_its_time_is_cut_with_the_dialects_error_and_kept_as_partial(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start(["daemon.stop-timeout", "1"])
    call = Call(home, "[[paced 400 50ms]]")
    started = time.monotonic()
    assert home.stop() == 0
    assert 0.9 < time.monotonic() - started < 8
    body = call.end()
    assert b'"error"' in body and b"[DONE]" not in body
    assert state(home, call.receipt) == "partial"


def test_a_second_signal_cuts_at_once(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    call = Call(home, "[[paced 400 50ms]]")
    assert home.process is not None
    home.process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert home.process.poll() is None
    started = time.monotonic()
    home.process.send_signal(signal.SIGINT)
    assert home.process.wait(10) == 0
    assert time.monotonic() - started < 6
    assert b'"error"' in call.end()
    assert state(home, call.receipt) == "partial"


def test_asking_a_second_time_or_with_now_cuts_at_once(new_home: Callable[..., Home]) -> None:
    for requests in ([{}, {}], [{"now": True}]):
        home = new_home().start()
        call = Call(home, "[[paced 400 50ms]]")
        person = home.person
        replies = [person.post("/reef/stop", json=request).json() for request in requests]
        assert replies[-1]["now"] is True
        assert home.process is not None and home.process.wait(10) == 0
        call.end()
        assert state(home, call.receipt) == "partial"


def test_nobody_but_the_person_stops_the_daemon(home: Home, session_token: str) -> None:
    for client in (home.nobody, home.http(session_token)):
        assert client.post("/reef/stop", json={}).status_code == 403
    assert home.person.post("/reef/stop", json={"now": "yes"}).status_code == 400
    assert home.nobody.get("/reef/status").json()["stopping"] is False


def test_a_listener_of_events_does_not_hold_up_the_stop(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    with home.person.stream("GET", "/reef/events") as reply:
        assert reply.status_code == 200
        started = time.monotonic()
        assert home.stop() == 0
        assert time.monotonic() - started < 5


def test_a_killed_daemon_leaves_an_interrupted_record_and_a_home_that_starts(new_home: Callable[..., Home]) -> None:
    home = new_home().start()
    message = {"messages": [{"role": "user", "content": "[[paced 400 20ms]]"}], "stream": True}
    with httpx.stream("POST", f"{home.url}/v1/chat/completions", json=message, timeout=60, verify=False) as reply:
        receipt = reply.headers["x-reef-agent-record-id"]
        pieces = reply.iter_raw()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            next(pieces)
        assert home.process is not None
        home.process.kill()
        home.process.wait()
    home.start()
    row = home.person.get(f"/reef/records/{receipt}").json()
    assert row["state"] == "interrupted"
    assert len(row["response_text"]) > 100
    assert chat(home.nobody, "hi").status_code == 200
