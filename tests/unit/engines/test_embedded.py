"""The embedded model: a real child process with the real weights, from start to end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from reef.engines import weights
from reef.engines.embedded import EmbeddedEngine, thread_count
from reef.engines.engine import EngineHealth
from reef.errors import Unavailable
from reef.paths import Paths

PARENT = """
import asyncio, sys
from reef.engines.embedded import EmbeddedEngine
from reef.paths import Paths
async def main():
    engine = EmbeddedEngine(Paths.from_environ())
    await engine.start()
    await engine.ready(60)
    print(engine.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def home(paths: Paths, real_weights: Path) -> Paths:
    """A home that has the weights."""
    paths.models.mkdir(parents=True)
    os.link(real_weights, weights.model_file(paths))
    return paths


@pytest.fixture
async def engine(home: Paths) -> AsyncIterator[EmbeddedEngine]:
    found = EmbeddedEngine(home)
    await found.start()
    await found.ready(60)
    yield found
    await found.stop()


async def ask(engine: EmbeddedEngine, **more: object) -> dict[str, object]:
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, **more}
    async with aiohttp.ClientSession() as session:
        async with session.post(engine.url("/chat/completions"), headers=engine.headers(), json=body) as reply:
            assert reply.status == 200, await reply.text()
            found = await reply.json()
    assert isinstance(found, dict)
    return found


@pytest.mark.network
async def test_it_answers_within_its_window_of_8192_tokens(engine: EmbeddedEngine) -> None:
    reply = await ask(engine)
    assert reply["choices"][0]["message"]["content"]  # type: ignore[index]
    assert engine.describe()["context_window"] == 8192 and engine.describe()["state"] == "ready"
    assert engine.load_id is not None and engine.load_id.endswith(":1")
    async with aiohttp.ClientSession() as session:
        async with session.get(engine.url("/models"), headers=engine.headers()) as models:
            listed = (await models.json())["data"]
        assert [item["id"] for item in listed] == [engine.model]
        # Nobody else on the machine can use it: the address alone is not enough.
        async with session.post(engine.url("/chat/completions"), json={"messages": []}) as refused:
            assert refused.status == 401


@pytest.mark.network
@pytest.mark.slow
async def test_it_ends_an_answer_that_nobody_set_a_limit_for(engine: EmbeddedEngine) -> None:
    reply = await ask(engine, max_tokens=None, ignore_eos=True)
    assert reply["choices"][0]["finish_reason"] == "length"  # type: ignore[index]
    assert reply["usage"]["completion_tokens"] == 1024  # type: ignore[index]


@pytest.mark.network
async def test_it_comes_back_when_its_process_is_killed(engine: EmbeddedEngine) -> None:
    first, load_id = engine.pid, engine.load_id
    assert first is not None
    os.kill(first, signal.SIGKILL)
    while (await engine.health()).state == "ready":
        await asyncio.sleep(0.01)
    health = await engine.health()
    assert health.state == "starting" and "signal 9" in health.detail
    await engine.ready(60)
    assert engine.pid not in (first, None) and engine.load_id != load_id
    assert (await ask(engine))["choices"]


@pytest.mark.network
async def test_stopping_ends_the_process_and_frees_its_memory(engine: EmbeddedEngine) -> None:
    pid = engine.pid
    assert pid is not None and alive(pid)
    began = time.monotonic()
    await engine.stop()
    assert time.monotonic() - began < 2.5 and not alive(pid)
    assert (await engine.health()).state == "down"
    with pytest.raises(Unavailable):
        await engine.ready(0.1)


@pytest.mark.network
def test_the_process_ends_within_two_seconds_of_a_killed_parent(home: Paths) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.kill()
    parent.wait()
    began = time.monotonic()
    while alive(pid):
        assert time.monotonic() - began < 2, "the model's process is still there"
        time.sleep(0.02)


async def test_a_file_that_is_no_model_is_said_and_not_tried_again_and_again(paths: Paths) -> None:
    file = weights.model_file(paths)
    file.parent.mkdir(parents=True)
    with file.open("wb") as out:
        out.truncate(weights.SMOLLM2.size)
    told: list[EngineHealth] = []
    engine = EmbeddedEngine(paths, told.append)
    await engine.start()
    with pytest.raises(Unavailable, match="cannot be loaded"):
        await engine.ready(60)
    assert [health.state for health in told] == ["starting", "failed"]
    await engine.stop()


async def test_without_weights_and_network_it_says_what_to_do(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    engine = EmbeddedEngine(paths)
    await engine.start()
    with pytest.raises(Unavailable, match="could not be fetched") as told:
        await engine.ready(60)
    assert told.value.hint is not None and told.value.hint.startswith("pip download")
    await engine.stop()


def test_threads_leave_one_core_and_are_one_in_ci() -> None:
    assert thread_count({"CI": "true"}) == 1
    assert thread_count({}) == max(1, len(os.sched_getaffinity(0)) - 1)
