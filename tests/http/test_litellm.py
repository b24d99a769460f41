"""A whole daemon before a vendor that speaks none of the three dialects, through the real litellm, on loopback."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from reef.records.reader import Reader
from tests.http import sdk_calls as sdk
from tests.http.running import ROOT, Home, Upstream, start_upstream, wait_for
from tests.http.sdk_calls import Clients
from tests.http.test_footprint import LIMIT_MB, rss_mb

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(600)]

KEY = "google-key-that-nobody-else-may-see"
OTHER = "openai-key-that-litellm-may-not-see"
TOOL = '[[tool read {"path": "a/b.py"}]]'
COUNTED = " [[prompt 100]] [[completion 7]]"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the extra installs, in the pinned versions; none of them is a withdrawn release."""
    pins = ROOT / "reef" / "constraints.txt"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = project["project"]["optional-dependencies"]["providers"]
    folder = tmp_path_factory.getbasetemp().parent / "reef-providers"
    folder.mkdir(exist_ok=True)
    stamp = pins.read_text(encoding="utf-8") + " ".join(wanted)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "stamp").exists() or (folder / "stamp").read_text() != stamp:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(folder / "packages")]
            done = subprocess.run([*pip, "--constraint", str(pins), *wanted], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-2000:]
            assert "yanked" not in done.stderr, done.stderr
            (folder / "stamp").write_text(stamp)
    return folder / "packages"


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    """The vendor."""
    found = start_upstream(tmp_path_factory.mktemp("vendor"), module="tests.fakes.gemini_server")
    yield found
    found.process.terminate()
    found.process.wait()


@pytest.fixture(scope="module")
def trap() -> Iterator[socket.socket]:
    """The only way out that the child is told of; nobody may take it."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


@pytest.fixture(scope="module")
def home(
    packages: Path, vendor: Upstream, trap: socket.socket, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    """A daemon whose model is the vendor's."""
    out = f"http://127.0.0.1:{trap.getsockname()[1]}"
    environ = {
        "PYTHONPATH": os.pathsep.join([str(packages), str(ROOT)]),
        "GEMINI_API_KEY": KEY,
        "OPENAI_API_KEY": OTHER,
        "HTTP_PROXY": out,
        "HTTPS_PROXY": out,
        "NO_PROXY": "127.0.0.1",
    }
    flags = [
        ["inference.backend", "litellm"],
        ["inference.upstream-model", "gemini/gemini-x"],
        ["inference.upstream-url", vendor.url + "/v1beta"],
        ["reef.port", "0"],
    ]
    found = Home(tmp_path_factory.mktemp("house"), "", flags=flags, environ=environ)
    found.process = found.launch(base=False)
    found.wait_up(found.process)
    yield found
    found.close()


@pytest.fixture
def at(home: Home) -> Iterator[Clients]:
    """The SDKs at this daemon."""
    found = Clients(home.url)
    yield found
    found.close()


def child_of(home: Home) -> int:
    """The process that holds litellm."""
    assert home.process is not None
    pid = home.process.pid
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return next(child for child in children if b"litellm_worker" in Path(f"/proc/{child}/cmdline").read_bytes())


def test_a_start_does_not_wait_for_litellm_and_a_call_does(home: Home) -> None:
    assert home.nobody.get("/healthz").status_code == 200
    reply = home.nobody.post(
        "/v1/chat/completions", json={"messages": sdk.said("hello" + COUNTED)}, timeout=httpx.Timeout(120)
    )
    assert reply.status_code == 200, reply.text
    assert reply.json()["choices"][0]["message"]["content"].startswith("You said: hello")
    row = Reader(home.paths.database).record(reply.headers["x-reef-agent-record-id"])
    assert (row["state"], row["engine"], row["model"]) == ("complete", "litellm", "gemini/gemini-x")
    assert (row["prompt_tokens"], row["completion_tokens"]) == (100, 7)
    assert [item["id"] for item in home.nobody.get("/v1/models").json()["data"]] == ["gemini/gemini-x"]
    assert home.nobody.get("/reef/status").json()["engine"]["dialects"] == ["chat"]


def test_one_scenario_may_have_a_vendor_of_its_own(home: Home, vendor: Upstream) -> None:
    engine = {"model": "gemini/gemini-y", "url": vendor.url + "/v1beta"}
    made = home.person.post("/reef/scenarios", json={"name": "its-own", "engine": engine})
    assert made.status_code == 201, made.text
    reply = home.nobody.post(
        "/v1/chat/completions",
        json={"messages": sdk.said("hello")},
        headers={"x-reef-scenario": "its-own"},
        timeout=httpx.Timeout(120),
    )
    assert reply.status_code == 200, reply.text
    row = Reader(home.paths.database).record(reply.headers["x-reef-agent-record-id"])
    assert (row["scenario"], row["engine"], row["model"]) == ("its-own", "litellm", "gemini/gemini-y")


def test_every_dialect_finishes_a_tool_session_on_the_vendor(home: Home, at: Clients) -> None:
    tools: Any = {"tools": sdk.CHAT_TOOLS, "stream_options": sdk.USAGE}
    asked = f"look {TOOL}{COUNTED}"
    expected = {"path": "a/b.py"}
    for found in (sdk.chat(at, asked, tools=sdk.CHAT_TOOLS), sdk.chat_helper(at, asked, **tools)[-1]):
        call, ends = found.choices[0].message.tool_calls[0].function, found.choices[0].finish_reason
        assert (call.name, json.loads(call.arguments), ends) == ("read", expected, "tool_calls")
        assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (100, 7)
    for found in (
        sdk.response(at, asked, tools=sdk.RESPONSES_TOOLS),
        sdk.response_helper(at, asked, tools=sdk.RESPONSES_TOOLS)[-1],
    ):
        call = found.output[-1]
        assert (call.type, json.loads(call.arguments), found.status) == ("function_call", expected, "completed")
        assert (found.usage.input_tokens, found.usage.output_tokens) == (100, 7)
    for found in (
        sdk.message(at, asked, tools=sdk.MESSAGES_TOOLS),
        sdk.message_helper(at, asked, tools=sdk.MESSAGES_TOOLS)[-1],
    ):
        assert (found.content[-1].input, found.stop_reason) == (expected, "tool_use")
        assert (found.usage.input_tokens, found.usage.output_tokens) == (100, 7)
    result = {"type": "tool_result", "tool_use_id": found.content[-1].id, "content": "seven lines"}
    turns = [*sdk.said(asked), {"role": "assistant", "content": found.content}, {"role": "user", "content": [result]}]
    with at.anthropic.messages.stream(model="m", max_tokens=99, messages=turns, tools=sdk.MESSAGES_TOOLS) as events:
        assert events.get_final_message().content[0].text == "The tool said: seven lines"


@pytest.mark.parametrize("stream", [False, True])
def test_the_vendors_status_and_its_wait_reach_the_client(at: Clients, stream: bool) -> None:
    for status, wait, kinds in (
        (429, "7", (openai.RateLimitError, anthropic.RateLimitError)),
        (401, None, (openai.AuthenticationError, anthropic.AuthenticationError)),
        (400, None, (openai.BadRequestError, anthropic.BadRequestError)),
        (503, "3", (openai.InternalServerError, anthropic.ServiceUnavailableError)),
    ):
        words = f"[[status {status}{f' retry-after {wait}' if wait else ''}]]"
        asks = (sdk.chat_stream, sdk.message_stream) if stream else (sdk.chat, sdk.message)
        for ask, kind in zip(asks, kinds, strict=True):
            found = sdk.outcome(at, ask, words)
            assert (found["class"], found["status_code"], found["retry-after"]) == (kind, status, wait)
            assert "scripted error" in found["said"]


def test_a_vendor_that_breaks_off_is_an_error_and_a_client_that_leaves_ends_the_call(
    home: Home, at: Clients, vendor: Upstream
) -> None:
    broken = sdk.outcome(at, sdk.message_stream, "[[die after 2]] [[say one two three four five six seven]]")
    assert issubclass(broken["class"], anthropic.APIError)
    body = {"messages": sdk.said("[[paced 400 50ms]]"), "stream": True}
    with home.nobody.stream("POST", "/v1/chat/completions", json=body) as reply:
        assert next(reply.iter_lines())
    left = time.monotonic()
    wait_for(lambda: json.loads(vendor.log.read_text().splitlines()[-1]) == {"event": "end", "how": "client gone"}, 5)
    assert time.monotonic() - left < 2


def test_what_litellm_would_take_of_a_call_beyond_the_answer_is_refused(home: Home, vendor: Upstream) -> None:
    before = len(vendor.requests())
    for field in ({"api_base": "http://127.0.0.1:9"}, {"api_key": "x"}, {"mock_response": "x"}, {"fallbacks": ["x"]}):
        reply = home.nobody.post("/v1/chat/completions", json={"messages": sdk.said("x"), **field})
        assert reply.status_code == 400 and next(iter(field)) in reply.json()["error"]["message"]
    assert len(vendor.requests()) == before


def test_the_key_is_in_the_childs_environment_and_nowhere_else(home: Home, vendor: Upstream) -> None:
    child = child_of(home)
    assert all(request["headers"]["x-goog-api-key"] == KEY for request in vendor.requests())
    given = Path(f"/proc/{child}/environ").read_bytes()
    assert KEY.encode() in given and OTHER.encode() not in given
    assert KEY.encode() not in Path(f"/proc/{child}/cmdline").read_bytes()
    found = [path for path in (home.folder / "reef").rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert not found
    foreign = httpx.get(f"http://127.0.0.1:{_port_of(child)}/v1/models", trust_env=False)
    assert foreign.status_code == 401


def test_the_daemon_stays_as_small_as_without_litellm(home: Home) -> None:
    assert home.process is not None
    print(f"daemon {rss_mb(home.process.pid):.0f} MB, child {rss_mb(child_of(home)):.0f} MB")
    assert rss_mb(home.process.pid) < LIMIT_MB
    # One of the libraries that litellm loads.
    holds = ["tiktoken" in Path(f"/proc/{pid}/maps").read_text() for pid in (child_of(home), home.process.pid)]
    assert holds == [True, False]


def test_nothing_called_anybody_but_the_vendor(home: Home, trap: socket.socket) -> None:
    trap.setblocking(False)
    with pytest.raises(BlockingIOError):
        trap.accept()


def test_a_killed_daemon_takes_the_child_with_it(home: Home) -> None:
    child = child_of(home)
    assert home.process is not None
    home.process.send_signal(signal.SIGKILL)
    home.process.wait()
    assert wait_for(lambda: not Path(f"/proc/{child}").exists() or _is_zombie(child), 5)


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _port_of(pid: int) -> int:
    """The port that a process listens on."""
    held = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (port,) = {int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held}
    return port
