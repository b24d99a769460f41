"""From a shell inside a session reef rates as the agent and decides nothing, with or without the session's variable."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reef.client import Client
from reef.harness.adapter import load_adapter
from tests.fakes.agent_place import place_program
from tests.http.running import Home, chat

AGENT = """
import json, os, subprocess, sys
from urllib.request import Request, urlopen
found = {}
body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["REEF_SESSION"]}
urlopen(Request(os.environ["REEF_URL"] + "/v1/chat/completions", json.dumps(body).encode(), headers)).read()
for command in json.loads(sys.argv[1]):
    for kept in (True, False) if command[1] in ("promote", "forget", "install") else (True,):
        left_out = () if kept else ("REEF_SESSION", "REEF_CONFIRM", "REEF_SESSION_ID")
        environ = {name: value for name, value in os.environ.items() if name not in left_out}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "reef.cli.app", *command], env=environ, capture_output=True, text=True,
            stdin=subprocess.DEVNULL,
        )
        found[" ".join(command) + ("" if kept else " (bare)")] = [done.returncode, done.stdout, done.stderr[-300:]]
print(json.dumps(found))
"""
DECIDING = [
    ["versions", "promote", "v1", "--yes"],
    ["versions", "rollback", "v1", "--yes"],
    ["versions", "install", "v1", "--yes"],
    ["versions", "pin", "v1"],
    ["versions", "unpin"],
    ["records", "forget", "0123456789abcdef0123456789abcdef", "--yes"],
    ["records", "prune", "--keep-bytes", "1MB", "--yes"],
    ["asks", "cancel", "1"],
    ["steps", "cancel", "1"],
    ["scenarios", "archive", "default"],
    ["agents", "add", "pi"],
    ["setup", "--set", "A=b"],
    ["setup", "--mark=", "--json"],
    ["proposals", "list"],
    ["page", "v1"],
    ["down", "--now"],
]


@pytest.fixture(scope="module")
def said(home: Home) -> dict[str, list[object]]:
    """What each command said from inside one session: status, stdout, the end of stderr."""
    pi = load_adapter("pi", home.paths)
    place_program(pi, home.paths, AGENT)
    with Client.connect(home.paths, start=False) as client:
        list(client.install_harness("default", "pi", 1))
    chat(home.nobody, "one that is not the session's")
    commands = [["good", "it worked"], *DECIDING]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "reef.harness.wrapper", "pi", json.dumps(commands)],
        env=home.env, cwd=home.folder, capture_output=True, text=True, timeout=240, check=False,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


def test_a_rating_is_the_agents(home: Home, said: dict[str, list[object]]) -> None:
    assert said["good it worked"][0] == 0, said["good it worked"]
    rated = home.person.get("/reef/reports").json()["reports"]
    assert {report["source"] for report in rated} == {"agent"}


@pytest.mark.parametrize("command", DECIDING, ids=[" ".join(words[:2]) for words in DECIDING])
def test_what_only_the_person_decides_ends_with_5(said: dict[str, list[object]], command: list[str]) -> None:
    line = " ".join(command)
    assert (said[line][0], said[line][1]) == (5, ""), said[line]


def test_without_the_sessions_variable_the_wrapper_among_the_parents_says_the_same(
    said: dict[str, list[object]],
) -> None:
    bare = {line: (answer[0], answer[1]) for line, answer in said.items() if line.endswith("(bare)")}
    assert [line.split()[1] for line in bare] == ["promote", "install", "forget"]
    assert set(bare.values()) == {(5, "")}


def test_nothing_was_decided(home: Home, said: dict[str, list[object]]) -> None:
    assert len(said) == len(DECIDING) + 4
    rows = home.nobody.get("/reef/harness/releases").json()
    assert ([row["version"] for row in rows["releases"]], rows["pins"]) == ([1], [])
    assert home.process is not None and home.process.poll() is None
