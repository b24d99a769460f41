"""A version that a session asks for: the wrapper shows it to the person, outside of the agent, and does as they say."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

from reef.client import Client
from reef.harness.adapter import load_adapter
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.fakes.agent_place import place_fake_agent
from tests.http.running import Home

AGENT = """
import json, os, signal, sys, time
from reef.harness.confirming import ask_person
keys = [name for name, value in os.environ.items() if {key!r} in value]
resized = []
signal.signal(signal.SIGWINCH, lambda *_: resized.append(1))
print("pid", os.getpid(), flush=True)
screen = "alternate" if "alternate" in sys.argv else "main"
for _ in range(1 + ("twice" in sys.argv)):
    for line in ask_person(os.environ["REEF_CONFIRM"], json.loads(sys.argv[1]), screen):
        print("got", json.dumps(line), keys, flush=True)
print("after", flush=True)
if screen == "alternate":
    time.sleep(0.5)
    print("resized", len(resized), os.get_terminal_size().lines, flush=True)
if "and-type" in sys.argv:
    print("typed", repr(sys.stdin.readline()), flush=True)
"""
EXTENSION = "harness/extensions/notify.ts"


@pytest.fixture(scope="module")
def waiting(home: Home) -> Home:
    """A home with v1 installed for an agent in pi's place, and v2, with an extension, waiting for the person."""
    pi = load_adapter("pi", home.paths)
    place_fake_agent(pi, home.paths).write_text(AGENT.format(key=home.key))
    with Client.connect(home.paths, start=False) as client:
        list(client.install_harness("default", "pi", 1))
    home.stop()
    asyncio.run(_publish(home))
    return home.start()


async def _publish(home: Home) -> None:
    writer, repository = Writer(home.paths.database), Repository(home.paths.versions_git)
    publisher = Publisher(writer, repository, rows)
    head = await publisher.head("default")
    code = "\n".join(f"// line {number} of code" for number in range(60)).encode()
    files = repository.files(head.release_id) | {EXTENSION: code}
    await publisher.publish(Proposal("default", files, head.release_id, "Add notify", pending=True))
    writer.close()


class Wrapped:
    """The wrapper on a terminal of 24 lines."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(home.folder)
            words = [sys.executable, "-P", "-m", "reef.harness.wrapper", "pi", *arguments]
            os.execve(sys.executable, words, home.env | {"TERM": "xterm", "LANG": "C.UTF-8"})
        self.seen = b""

    def until(self, text: bytes) -> bytes:
        """Read until the terminal has shown `text` after what was waited for before. Returns what stood before it."""
        deadline = time.monotonic() + 40
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if not self.reads():
                break
        assert text in self.seen, self.seen
        before, _, self.seen = self.seen.partition(text)
        return before

    def shows(self) -> bytes:
        """What stands behind what was waited for, at least a word of it."""
        while len(self.seen) < 7 and self.reads():
            pass
        return self.seen

    def type(self, keys: bytes) -> None:
        os.write(self.file, keys)

    def end(self) -> tuple[int, str]:
        while self.reads():
            pass
        _, raw = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(raw), self.seen.decode()

    def reads(self) -> bool:
        if not select.select([self.file], [], [], 0.2)[0]:
            return True
        try:
            block = os.read(self.file, 65536)
        except OSError:
            return False
        self.seen += block
        return bool(block)


def answers(said: str) -> list[dict[str, object]]:
    return [json.JSONDecoder().raw_decode(part)[0] for part in said.split("got ")[1:]]


@pytest.mark.parametrize("key", [b"n", b"\x03", b"\x1b"], ids=["n", "ctrl-c", "escape"])
def test_a_no_changes_nothing_and_no_key_reaches_the_agent_as_a_signal(waiting: Home, key: bytes) -> None:
    wrapped = Wrapped(waiting, "null")
    wrapped.until(b"Install v2 for pi? [")
    wrapped.type(key)
    status, rest = wrapped.end()
    assert (status, '{"declined": {"version": 2}}' in rest, "after" in rest) == (0, True, True), rest
    assert json.loads((waiting.paths.harness / "default" / "pi" / "install.json").read_text())["version"] == 1
    # The agent never had the person's key.
    assert waiting.key not in rest
    assert "} []" in rest


def test_a_session_that_asks_again_after_a_no_asks_nobody(waiting: Home) -> None:
    wrapped = Wrapped(waiting, "2", "twice")
    wrapped.until(b"Install v2 for pi? [")
    wrapped.type(b"n")
    status, rest = wrapped.end()
    assert (status, "the person has said no to v2 in this session" in rest) == (0, True), rest


def test_an_agent_on_the_other_screen_is_made_to_draw_itself_anew(waiting: Home) -> None:
    wrapped = Wrapped(waiting, "2", "alternate")
    wrapped.until(b"asks reef to install v2")
    wrapped.type(b"n")
    wrapped.until(b"resized 2 ")
    status, rest = wrapped.end()
    assert (status, "1049" in rest) == (0, False), rest


def test_an_agent_that_is_killed_under_the_question_leaves_the_terminal_as_it_was(waiting: Home) -> None:
    wrapped = Wrapped(waiting, "2")
    before = termios.tcgetattr(wrapped.file)
    wrapped.until(b"pid ")
    agent = int(wrapped.until(b"asks reef to install v2").split()[0])
    wrapped.until(b"Install v2 for pi? [")
    assert termios.tcgetattr(wrapped.file) != before
    os.kill(agent, signal.SIGKILL)
    while wrapped.reads():
        pass
    assert termios.tcgetattr(wrapped.file) == before
    status, rest = wrapped.end()
    assert status == 128 + signal.SIGKILL
    assert rest.rfind("\x1b[?1049l") > rest.rfind("\x1b[?1049h")


def test_without_a_terminal_it_is_refused_with_the_command_for_outside(waiting: Home) -> None:
    words = [sys.executable, "-P", "-m", "reef.harness.wrapper", "pi", "2"]
    done = subprocess.run(
        words, env=waiting.env, capture_output=True, text=True, timeout=60, check=True, start_new_session=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    *_, last = answers(done.stdout)
    error = last["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["hint"]) == ("refused", "reef versions install v2 --adapter pi -s default")
    assert "no terminal" in error["message"]


def test_another_version_than_the_pinned_one_is_refused_before_the_person_is_asked(waiting: Home) -> None:
    waiting.person.post("/reef/scenarios/default/pin", json={"version": 1})
    wrapped = Wrapped(waiting, "2")
    status, rest = wrapped.end()
    waiting.person.post("/reef/scenarios/default/unpin", json={})
    assert (status, "is pinned to v1 for pi" in rest, "Install v2" in rest) == (0, True, False), rest


def test_a_version_that_is_not_there_is_named_with_the_newest(waiting: Home) -> None:
    wrapped = Wrapped(waiting, "9")
    status, rest = wrapped.end()
    assert (status, "has no version v9 (newest: v2)" in rest) == (0, True), rest


def test_the_person_reads_all_of_the_code_before_a_yes_counts_and_the_release_shown_is_installed(waiting: Home) -> None:
    wrapped = Wrapped(waiting, "2", "and-type")
    wrapped.until(b"asks reef to install v2 of scenario default. v1 is installed.")
    wrapped.until(b"Install v2 for pi? [space = more (1 of ")
    wrapped.type(b"y")
    wrapped.until(b"[space = more (1 of ")
    # Pasted or typed ahead is no answer either.
    wrapped.type(b"yyy")
    wrapped.until(b"[space = more (1 of ")
    for _ in range(20):
        wrapped.type(b" ")
        wrapped.until(b"Install v2 for pi? [")
        if wrapped.shows().startswith(b"y = yes"):
            break
    wrapped.type(b"y")
    wrapped.until(b'"installed"')
    wrapped.until(b"after")
    wrapped.type(b"y\x7fback\n")
    status, rest = wrapped.end()
    # The keys are the agent's again, and its line is edited by the terminal as before.
    assert (status, "typed 'back\\n'" in rest) == (0, True), rest
    facts = json.loads((waiting.paths.harness / "default" / "pi" / "install.json").read_text())
    current = [row for row in waiting.nobody.get("/reef/harness/releases").json()["releases"] if row["current"]]
    assert (facts["release_id"], facts["version"]) == (current[0]["release_id"], current[0]["version"])
    assert list((waiting.paths.harness / "default" / "pi" / "tree" / "extensions").glob("notify.ts"))
    assert not list((waiting.paths.state / "confirm").iterdir())
