"""Programs that were not written for this reef: the README's snippet, and `reef-client` from the package index."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.e2e.home import Home, requests_of
from tests.e2e.room import ROOT

pytestmark = [pytest.mark.network, pytest.mark.timeout(200)]

TOKEN = "a-token-of-this-test"
CLIENT = """
import json, os, sys
from reef_client import ReefClient

client = ReefClient("http://127.0.0.1:8900", token=os.environ["REEF_TOKEN"])
body = {"model": "fake-model", "messages": [{"role": "user", "content": "hello"}]}
reply, receipt = client.inference_with_record("support", "/v1/chat/completions", body)
stored = client.report("support", {"score": 0.5, "feedback": "fine"}, references=[receipt])
print(json.dumps({"reply": reply, "receipt": receipt, "stored": stored}))
"""


@pytest.fixture
def served(home: Home) -> Home:
    """A home whose daemon needs a token on every route."""
    url, _ = home.fake_upstream()
    home.env["REEF_TOKEN"] = TOKEN
    home.ok(f"reef up --inference.upstream-url {url} --inference.upstream-model fake-model")
    return home


def snippet() -> str:
    """The program of the README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    return str(found)


def run(home: Home, code: str) -> str:
    """Run a Python program as the person would."""
    program = home.project / "program.py"
    program.write_text(code)
    return home.ok(f"{sys.executable} {program}")


def rated(home: Home) -> list[tuple[str, str, float]]:
    """(scenario, receipt, latest score of a program) of every record."""
    found = []
    for row in home.json("reef records list"):
        whole = home.json(f"reef records show {row['agent_record_id']}")
        found += [(row["scenario"], row["agent_record_id"], report["score"]) for report in whole["reports"]]
    return found


def test_the_snippet_of_the_readme_runs_with_a_token(served: Home) -> None:
    said = run(served, snippet()).split()
    assert said[:-1] == ["You", "said:", "Say", "hello."]
    assert rated(served) == [("support", said[-1], 1.0)]


def test_the_snippet_of_the_readme_runs_without_a_token(home: Home) -> None:
    url, log = home.fake_upstream()
    home.ok(f"reef up --inference.upstream-url {url} --inference.upstream-model fake-model")
    said = run(home, snippet()).split()
    assert said[:-1] == ["You", "said:", "Say", "hello."]
    assert rated(home) == [("support", said[-1], 1.0)]
    assert requests_of(log)[-1]["max_tokens"] <= 200


def test_reef_client_runs_unchanged(served: Home) -> None:
    said = json.loads(run(served, CLIENT))
    assert said["reply"]["choices"][0]["message"]["content"] == "You said: hello"
    assert rated(served) == [("support", said["receipt"], 0.5)]


def test_without_the_token_nothing_is_answered(served: Home) -> None:
    address = "http://127.0.0.1:8900/v1/models"
    status = "curl -s -o /dev/null -w '%{http_code}'"
    assert served.ok(f"{status} {address}") == "401"
    assert served.ok(f"{status} -H 'Authorization: Bearer {TOKEN}x' {address}") == "401"
    assert served.ok(f"{status} -H 'Authorization: Bearer {TOKEN}' {address}") == "200"
    assert served.ok(f"{status} http://127.0.0.1:8900/healthz") == "200"


def test_the_token_is_in_no_file_of_reef(served: Home) -> None:
    run(served, CLIENT)
    places = [served.folder / part for part in (".local/share/reef", ".local/state/reef", ".config", ".cache")]
    files = [path for place in places for path in place.rglob("*") if path.is_file() and "agents" not in path.parts]
    assert files
    assert [str(path) for path in files if TOKEN.encode() in Path(path).read_bytes()] == []
