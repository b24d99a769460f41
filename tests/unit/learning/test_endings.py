"""How steps end before their time: limits, cancelling, a stopped and a killed daemon, and what a step started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reef.errors import Conflict, NotFound
from reef.learning.supervisor import Supervisor
from reef.records import rows
from tests.unit.learning.conftest import PASSES, RULE, Room

Write = Callable[..., str]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(pid: int, within_s: float) -> bool:
    end = time.monotonic() + within_s
    while is_running(pid) and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return not is_running(pid)


async def test_a_step_that_hangs_is_ended_at_its_limit_with_all_that_it_started(room: Room, recipe: Write) -> None:
    object.__setattr__(room.home.settings.harness, "step_timeout", 3.0)
    recipe("""
def grow(self, batch, context):
    import signal, subprocess, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    context.activity("propose", f"child {child.pid}")
    time.sleep(600)
""")
    ask = await room.settled(await room.ask("do it"))
    assert (ask["state"], ask["reason"]) == ("failed", "the step did not end within 3 s")
    child = int(room.step()["activity"][0]["text"].split()[1])
    assert await gone(child, 1) and await gone(room.pid(1) or 0, 1)


async def test_nothing_that_a_step_started_outlives_it(room: Room, recipe: Write) -> None:
    body = """
def grow(self, batch, context):
    import os, subprocess, threading, time
    threading.Thread(target=time.sleep, args=(600,)).start()
    near = subprocess.Popen(["sleep", "600"])
    far = subprocess.run(["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True)
    context.activity("propose", f"{near.pid} {far.stdout.strip()}")
    END
"""
    for number, end in enumerate(('return Skip("done")', "os._exit(7)", "os.kill(os.getpid(), 9)"), 1):
        recipe(body.replace("END", end))
        ask = await room.settled(await room.ask("do it"))
        assert ask["state"] == ("skipped" if number == 1 else "failed")
        for pid in map(int, room.step(number)["activity"][0]["text"].split()):
            assert await gone(pid, 1), f"{pid} outlived: {end}"


async def test_what_hides_in_a_session_of_its_own_with_an_empty_environment_ends_with_its_step(
    room: Room, recipe: Write
) -> None:
    body = """
def grow(self, batch, context):
    import os, subprocess, sys
    far = "import os, sys\\nif os.fork(): os._exit(0)\\nos.setsid()\\nif os.fork(): os._exit(0)\\n"
    far += "print(os.getpid(), flush=True)\\nos.execve('/bin/sleep', ['sleep', '600'], {})"
    hidden = subprocess.Popen([sys.executable, "-I", "-S", "-c", far], env={}, stdout=subprocess.PIPE, text=True)
    near = subprocess.Popen(["/bin/sleep", "600"], env={}, start_new_session=True)
    context.activity("propose", f"{near.pid} {hidden.stdout.readline().strip()}")
    END
"""
    for number, end in enumerate(('return Skip("done")', "os._exit(7)", "os.kill(0, 9)"), 1):
        recipe(body.replace("END", end))
        ask = await room.settled(await room.ask("do it"))
        told = ("done", "status 7", "SIGKILL")[number - 1]
        assert told in ask["reason"]
        for pid in map(int, room.step(number)["activity"][0]["text"].split()):
            assert await gone(pid, 1), f"{pid} outlived: {end}"


async def test_when_memory_runs_out_the_step_dies_before_the_daemon(room: Room, recipe: Write) -> None:
    recipe("""
def grow(self, batch, context):
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    hoard = [bytearray(64 << 20)]
    while len(hoard) < 1000:
        hoard.append(bytearray(64 << 20))
""")
    ask = await room.settled(await room.ask("do it"))
    assert (ask["state"], ask["reason"].split(":")[0]) == ("failed", "MemoryError")
    recipe("def grow(self, batch, context): return Skip(open('/proc/self/oom_score_adj').read().strip())")
    assert (await room.settled(await room.ask("do it")))["reason"] == "1000"


async def test_cancel_ends_the_process_group_and_settles_the_ask_as_cancelled(room: Room, recipe: Write) -> None:
    recipe("def grow(self, batch, context):\n    import time\n    time.sleep(600)")
    ask = await room.ask("do it")
    waits = await room.ask("the next")
    await room.running()
    started = time.monotonic()
    assert await room.supervisor.cancel_ask(ask) == "cancelled"
    assert time.monotonic() - started < 5
    found = room.reader.ask(ask)
    assert (found["state"], found["reason"]) == ("cancelled", "cancelled by the person")
    assert room.step()["state"] == "cancelled"
    assert not is_running(room.pid(1) or 0)
    await room.running(2)
    with pytest.raises(NotFound):
        await room.supervisor.cancel_step("s", 1)
    await room.supervisor.cancel_step("s", 2)
    assert room.reader.ask(waits)["state"] == "cancelled"
    with pytest.raises(Conflict):
        recipe(RULE + PASSES)
        done = await room.settled(await room.ask("works"))
        await room.supervisor.cancel_ask(done["id"])


async def test_a_queued_ask_is_cancelled_without_a_step(room: Room, recipe: Write) -> None:
    recipe("def grow(self, batch, context):\n    import time\n    time.sleep(600)")
    await room.ask("the first")
    second = await room.ask("the second")
    await room.running()
    assert await room.supervisor.cancel_ask(second) == "cancelled"
    assert room.reader.ask(second)["step"] is None
    with pytest.raises(NotFound):
        await room.supervisor.cancel_ask("0" * 32)
    with pytest.raises(NotFound):
        await room.supervisor.cancel_ask("no id")


async def test_cancelling_right_after_the_start_never_leaves_a_process(room: Room, recipe: Write) -> None:
    recipe("def grow(self, batch, context):\n    import time\n    time.sleep(600)")
    for number in range(1, 5):
        ask = await room.ask("do it")
        while room.supervisor.running_step("s") is None:
            await asyncio.sleep(0)
        for _ in range(number * 3):
            await asyncio.sleep(0.001)
        await room.supervisor.cancel_step("s", number)
        assert (await room.settled(ask))["state"] == "cancelled"
        pid = room.pid(number)
        assert pid is None or not is_running(pid)


async def test_when_the_daemon_stops_the_running_step_fails_and_the_queue_waits(room: Room, recipe: Write) -> None:
    recipe("def grow(self, batch, context):\n    import time\n    time.sleep(600)")
    running, queued = await room.ask("the first"), await room.ask("the second")
    await room.running()
    await room.supervisor.stop()
    found = room.reader.ask(running)
    assert (found["state"], found["reason"]) == ("failed", "the daemon stopped")
    assert room.reader.ask(queued)["state"] == "queued"
    recipe(RULE + PASSES)
    later = Supervisor(room.home)
    await later.start()
    assert (await room.settled(queued))["state"] == "published"
    await later.stop()


async def test_no_step_begins_before_what_an_earlier_daemon_left_is_settled(room: Room, recipe: Write) -> None:
    recipe(RULE + PASSES)
    await room.supervisor.stop()
    room.supervisor = Supervisor(room.home)
    try:
        ask = await room.ask("filed right after the start")
        for _ in range(10):
            # A step that was not held would have its row after two turns of the writer.
            await room.home.writer.write(lambda _: None)
        assert room.reader.ask(ask)["state"] == "queued"
        assert await room.supervisor.start() == []
        assert (await room.settled(ask))["state"] == "published"
    finally:
        await room.supervisor.stop()


async def test_a_step_that_a_killed_daemon_left_is_failed_at_the_next_start_and_its_ask_gets_another(
    room: Room, recipe: Write
) -> None:
    recipe(RULE + PASSES)

    def leave(conn):  # type: ignore[no-untyped-def]
        ask, _, _ = rows.add_ask(conn, "s", "left behind")
        step = rows.add_step(conn, "s", recipe="tried", asks=[ask])
        rows.set_ask(conn, ask, state="running", step=step)
        orphan, _, _ = rows.add_ask(conn, "s", "without a step")
        rows.set_ask(conn, orphan, state="running", step=None)
        return ask, orphan

    ask, orphan = await room.home.writer.write(leave)
    assert await room.supervisor.start() == [("s", 1)]
    assert (room.step()["state"], room.step()["reason"]) == ("failed", "the daemon stopped")
    assert (await room.settled(ask))["state"] == "published"
    assert room.reader.ask(ask)["step"] == 2
    assert (await room.settled(orphan))["step"] == 3
    assert await room.supervisor.start() == []


async def test_a_step_ends_within_two_seconds_of_a_daemon_that_is_killed(room: Room, recipe: Write) -> None:
    recipe("""
def grow(self, batch, context):
    import subprocess, time
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (context.folder / "pids").write_text(f"{__import__('os').getpid()} {child.pid}")
    while True:
        pass
""")
    (room.paths.steps / "s" / "9").mkdir(parents=True)
    script = f"""
import asyncio, json, os, sys
from pathlib import Path
from reef.learning.running import StepProcess
folder = Path({str(room.paths.steps / "s" / "9")!r})
async def job(pid):
    return json.dumps(dict(scenario="s", step=9, recipe="tried", config={{}}, adapter="pi",
        asks=[dict(id="0" * 32, number=1, text="x")], tree=[], proposer="model", policy="reach",
        url="http://127.0.0.1:9", token="t", database={str(room.paths.database)!r}, folder=str(folder))).encode()
asyncio.run(StepProcess(folder, os.environ).run(job, None, 60))
"""
    parent = subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(Path.cwd())})
    pids = room.paths.steps / "s" / "9" / "pids"
    end = time.monotonic() + 30
    while not pids.exists() or not pids.read_text():
        assert time.monotonic() < end and parent.poll() is None
        await asyncio.sleep(0.05)
    step, child = map(int, pids.read_text().split())
    assert is_running(step) and is_running(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert await gone(step, 2) and await gone(child, 2)
