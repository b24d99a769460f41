"""From the command line with an agent: one session with a version, and finding the version that broke things."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any, cast

import pytest

from reef.harness.adapter import load_adapter
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.catalog import Rows
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.cli import shell
from tests.cli.shell import Ran
from tests.fakes.agent_place import place_fake_agent
from tests.http.running import Home

NAME = "eight"
BAD = 6
"""The version whose rule makes the agent crash; it stays in the later ones."""
AGENT = """
import json, os, pathlib, sys
rules = pathlib.Path(os.environ["PI_CODING_AGENT_DIR"], "AGENTS.md").read_text()
print(json.dumps({"rules": rules, "argv": sys.argv[1:], "version": os.environ["REEF_VERSION"]}))
sys.exit(3 if "[[crash]]" in rules else 0)
"""


@pytest.fixture(scope="module")
def eight(home: Home) -> Home:
    """A scenario with v1 to v8, each with a rule more, v9 pending with code, and an agent for it."""
    home.nobody.post("/reef/scenarios", json={"name": NAME})
    home.stop()

    async def publish() -> None:
        writer, repository = Writer(home.paths.database), Repository(home.paths.versions_git)
        publisher = Publisher(writer, repository, cast(Rows, rows))
        files = repository.files((await publisher.head(NAME)).release_id)
        for number in range(2, 10):
            head = await publisher.head(NAME)
            said = "[[crash]] Stop at once." if number == BAD else f"Rule of version {number}."
            path = f"harness/rules/r{number}.md" if number < 9 else "harness/extensions/notify.ts"
            files = files | {path: f"{said}\n".encode()}
            await publisher.publish(Proposal(NAME, files, head.release_id, f"rule {number}", pending=number == 9))
        writer.close()

    asyncio.run(publish())
    place_fake_agent(load_adapter("pi", home.paths), home.paths).write_text(AGENT)
    home.start()
    return home


def reef(home: Home, *arguments: str) -> Ran:
    """Run a command of this home in pipes, on the scenario."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    words = [*arguments[:place], "-s", NAME, *arguments[place:]]
    return shell.reef(*words, env=home.env, cwd=home.folder, alone=True)


def test_a_trial_is_one_session_and_leaves_pin_install_and_wrapper_as_they_are(eight: Home) -> None:
    assert reef(eight, "versions", "pin", "v2").status == 0
    assert reef(eight, "versions", "install").status == 0
    folder = eight.paths.harness / NAME / "pi"
    watched = [folder / "install.json", folder / "tree" / "AGENTS.md", eight.paths.bin / "reef-pi"]
    watched.append(eight.paths.last_install)
    before = [file.read_bytes() for file in watched]
    before_homes = sorted(folder.iterdir())
    done = reef(eight, "versions", "try", "v4", "--", "-p", "hello there")
    assert done.status == 0, done.err
    assert done.err.endswith("v4 was for this session only; v2 stays installed\n")
    ran = json.loads(done.out)
    assert (ran["argv"], ran["version"]) == (["-p", "hello there"], "v4")
    assert "Rule of version 4." in ran["rules"]
    assert [file.read_bytes() for file in watched] == before
    assert sorted(folder.iterdir()) == before_homes
    assert [entry.name for entry in (eight.paths.data / "trials").iterdir()] == [".lock"]
    pins = eight.person.get(f"/reef/scenarios/{NAME}/pins").json()["pins"]
    assert [pin["version"] for pin in pins] == [2]
    crashed = reef(eight, "versions", "try", f"v{BAD}", "--", "-p", "hello")
    assert crashed.status == 3, crashed.err
    assert reef(eight, "versions", "unpin").status == 0


def test_the_wrapper_has_a_word_for_a_trial_that_passes_everything_on(eight: Home) -> None:
    command = [sys.executable, "-P", "-m", "reef.harness.wrapper", "pi", "try", "v3", "-p", "by the word"]
    env = eight.env | {"REEF_SCENARIO": NAME}
    done = subprocess.run(command, env=env, cwd=eight.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    ran = json.loads(done.stdout)
    assert (ran["argv"], "Rule of version 3." in ran["rules"]) == (["-p", "by the word"], True)
    assert "Rule of version 4." not in ran["rules"]


def test_a_version_with_code_is_shown_and_runs_only_after_a_yes_for_this_session(eight: Home) -> None:
    refused = reef(eight, "versions", "try", "v9", "--", "-p", "hello")
    assert (refused.status, refused.out) == (2, "")
    assert "+ Rule of version 9." in refused.err
    assert f"hint: reef versions try v9 -s {NAME} --yes" in refused.err
    done = reef(eight, "versions", "try", "v9", "--yes", "--", "--print")
    assert json.loads(done.out)["version"] == "v9"
    state = eight.person.get(f"/reef/scenarios/{NAME}/versions/9").json()["state"]
    assert state == "pending"
    mistaken = reef(eight, "versions", "try", "v9", "--print", "-y")
    assert (mistaken.status, mistaken.out) == (2, ""), "what is meant for the agent stands behind --"
    inside = shell.reef("versions", "try", "v3", "-s", NAME, env=eight.env | {"REEF_SESSION": "x"}, alone=True)
    assert inside.status == 5


def test_a_bisection_over_eight_versions_names_the_bad_rule_after_three_answers(eight: Home) -> None:
    def now(*words: str) -> dict[str, Any]:
        done = reef(eight, "versions", "bisect", *words, "--json")
        assert done.status == 0, done.err
        return dict(json.loads(done.out))

    none = reef(eight, "versions", "bisect", "good")
    assert (none.status, f"reef versions bisect start -s {NAME}" in none.err) == (1, True)
    found, answers = now("start", "--good", "v1", "--bad", "v8"), 0
    assert (found["left"], found["found"]) == (3, None)
    again = reef(eight, "versions", "bisect", "start")
    assert (again.status, "is running" in again.err) == (1, True)
    while found["next"] is not None:
        assert now("status") == found
        tried = reef(eight, "versions", "try", f"v{found['next']}", "--", "-p", "work")
        found, answers = now("bad" if tried.status == 3 else "good"), answers + 1
    assert answers <= 3
    assert (found["found"]["version"], found["found"]["before"]) == (BAD, BAD - 1)
    assert [file["path"] for file in found["found"]["changes"]] == [f"harness/rules/r{BAD}.md"]
    told = reef(eight, "versions", "bisect", "status")
    assert told.out.startswith(f"v{BAD} is the first bad one · scenario {NAME}\nwhat     rule {BAD}\n")
    assert "+ [[crash]] Stop at once." in told.out
    assert f"reef versions rollback v{BAD - 1} -s {NAME}" in told.err
    assert now("reset")["reset"] is True
    assert eight.person.get(f"/reef/scenarios/{NAME}/pins").json()["pins"] == []


def test_a_bisection_asks_turn_by_turn_on_a_terminal_and_is_kept_when_left(eight: Home) -> None:
    keys = [("v4: t try it", "g\r"), ("v6: t try it", "q\r")]
    status, shown = shell.on_terminal("versions", "bisect", "-s", NAME, keys=keys, env=eight.env, cwd=eight.folder)
    assert status == 0, shown
    assert "the first bad one is among v2 to v8 · at most 3 answers to go" in shown
    keys = [("v6: t try it", "b\r"), ("v5: t try it", "g\r")]
    status, shown = shell.on_terminal("versions", "bisect", "-s", NAME, keys=keys, env=eight.env, cwd=eight.folder)
    assert "v6 is the first bad one" in shown
    assert reef(eight, "versions", "bisect", "reset").out == f"the bisection of scenario {NAME} is forgotten\n"
    piped = reef(eight, "versions", "bisect")
    assert (piped.status, "reef versions bisect start" in piped.err) == (2, True)
    unknown = reef(eight, "versions", "bisect", "sideways")
    assert (unknown.status, "actions: start, good, bad, skip, status, reset" in unknown.err) == (2, True)
    assert reef(eight, "versions", "bisect", "reset").status == 0
