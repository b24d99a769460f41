"""The same keys through every entrance of one daemon; then every file of its home is searched for them."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
from collections.abc import Callable

import pytest

from reef.records.packing import unpack
from tests.http.running import Home, Upstream, wait_for

KEY = "sk-" + "a1B2" * 6
SECRETS = {
    "shaped like a key": KEY,
    "the upstream's key": "hunter2-secret",
    "a password in the upstream's address": "hunter3-secret",
    "a query in the upstream's address": "hunter4/secret",
    "the daemon's token": "hunter5-secret",
}
WORDS = " ".join(SECRETS.values())
# It is told the secrets in its settings, which the person wrote and a scenario may not keep.
RECIPE = """
import os
from reef.evaluation.result import Evaluation, Group
from reef.learning.recipe import Batch, Candidate, Recipe, RecipeConfig, Sample


class Tried(Recipe):
    class Config(RecipeConfig):
        batch: int = 1
        words: str

    def eligible(self, item):
        return Sample((item.id,), item)

    def batch(self, samples):
        return Batch((samples[0],)) if samples else None

    def grow(self, batch, context):
        words = self.config.words
        os.system(f"echo '{words}'")
        context.activity("propose", words)
        said = context.models.served.chat([{"role": "user", "content": f"[[say {words}]]"}]).text
        text = said if context.step == 1 else f"rule {context.step}"
        rule = {"op": "create", "id": f"r{context.step}", "kind": "rules", "config": {"text": text}}
        return Candidate(words, [rule], notes={words: [words]}, state=words)

    def evaluate(self, candidate, context):
        words = self.config.words
        (context.folder / "note").write_text(words)
        if context.step == 3:
            raise ValueError(words)
        return Evaluation("reach", [Group(words, "pass", words)])
"""


@pytest.fixture
def home(new_home: Callable[..., Home], upstream: Upstream) -> Home:
    """A daemon with every kind of secret, and a recipe that tells them all."""
    made = new_home(
        environ={"REEF_UPSTREAM_API_KEY": SECRETS["the upstream's key"], "REEF_TOKEN": "hunter5-secret"},
        flags=[["recipe.implementation", "tried"], ["recipe.config.words", WORDS], ["recipe.config.batch", "2"]],
    )
    made.upstream = upstream.url.replace("//", "//me:hunter3-secret@") + "/v1?code=hunter4%2Fsecret"
    folder = made.paths.config / "recipes" / "tried"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text('name = "tried"\nhelp = "for a test"\ninputs = ["asks"]\n')
    (folder / "recipe.py").write_text(RECIPE)
    return made.start()


def test_no_key_reaches_the_disk_whichever_way_it_comes(home: Home) -> None:
    person = home.person
    _call(home)
    made = person.post("/reef/scenarios", json={"name": "grow"})
    assert (made.status_code, made.json()["config"]["recipe_config"]) == (201, {"batch": 2})
    for body in ({"name": KEY}, {"name": "hunter2-secret"}, {"name": "x", "engine": {"url": f"http://h/{KEY}"}}):
        reply = person.post("/reef/scenarios", json=body)
        assert (reply.status_code, KEY in reply.text) == (400, False)
    session = {"scenario": "grow", "adapter": KEY, "pid": os.getpid(), "cwd": f"/{WORDS}"}
    assert person.post("/reef/sessions", json=session).status_code == 201
    assert len(person.get("/reef/sessions", params={"cwd": f"/{WORDS}"}).json()["sessions"]) == 1
    assert person.get(f"/{WORDS}").status_code == 404
    states = [_step(home) for _ in range(3)]
    assert states == ["rejected", "published", "failed"]
    _assert_clean(home)
    home.stop()
    _assert_clean(home)


def _call(home: Home) -> None:
    """Calls whose every part holds the secrets, answered, streamed and refused, and a report on the last."""
    person = home.person
    headers = {"x-reef-session": WORDS, "x-reef-tag-of": WORDS}
    for more, status in (("", 200), ("[[status 401]]", 401)):
        for stream in (False, True):
            message = {"role": "user", "content": f"{WORDS} [[say {WORDS}]] {more}"}
            body = {"model": WORDS, "messages": [message], "stream": stream, "prompt_cache_key": WORDS}
            reply = person.post("/v1/chat/completions", json=body, headers=headers)
            # What goes by is not touched: only the copy is.
            assert reply.status_code == status and (stream or "hunter2-secret" in reply.text)
    refused = person.post("/v1/chat/completions", json={"messages": []}, headers={"x-reef-scenario": KEY})
    assert refused.status_code == 400
    report = {
        "agent_record_id": "0" * 32, "score": 1, "feedback": WORDS, "metadata": {WORDS: [WORDS]},
        "references": [reply.headers["x-reef-agent-record-id"]],
    }  # fmt: skip
    assert [person.post("/reef/report", json=report).status_code for _ in range(2)] == [200, 200]
    assert person.get("/reef/records", params={"session": WORDS}).json()["records"]


def _step(home: Home) -> str:
    """An ask that is refused for each secret, and one that is not; how its step ended."""
    headers = {"x-reef-scenario": "grow"}
    for secret in SECRETS.values():
        assert home.person.post("/reef/train", json={"text": f"use {secret}"}, headers=headers).status_code == 400
    body = {"text": "grow", "client": {"platform": KEY, "commands": {WORDS[:60]: True}}}
    ask = home.person.post("/reef/train", json=body, headers=headers).json()["agent_record_id"]

    def settled() -> str | None:
        found = home.person.get(f"/reef/asks/{ask}").json()
        return None if found["state"] in ("queued", "running") else str(found["state"])

    return str(wait_for(settled, 30))


def _assert_clean(home: Home) -> None:
    reef = home.folder / "reef"
    found = {str(file): file.read_bytes() for file in reef.rglob("*") if file.is_file()}
    store = sqlite3.connect(f"file:{home.paths.database}?mode=ro", uri=True)
    for number, codec, size, body in store.execute("SELECT sequence, codec, size, body FROM parts"):
        found[f"part {number}"] = bytes(unpack(codec, size, body))
    store.close()
    found["git"] = subprocess.run(
        ["git", f"--git-dir={home.paths.versions_git}", "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert b"rule 2" in found["git"] and any(b"[redacted:secret]" in body for body in found.values())
    key = found.pop(str(home.paths.person_key)).strip().decode()
    sought = SECRETS | {
        "the person key": key,
        "a password as it is sent": base64.b64encode(b"me:hunter3-secret").decode(),
        "a query as it is sent": "hunter4%2Fsecret",
        "a query within JSON": json.dumps(SECRETS["a query in the upstream's address"])[1:-1],
    }
    leaks = [
        f"{what} in {name}" for name, body in found.items() for what, text in sought.items() if text.encode() in body
    ]
    assert leaks == []


CLIENT, HEADER, ADDRESS = "sk-CLIENT-123", "sk-UP-456", "UP789"


@pytest.mark.parametrize("there", [True, False], ids=["answering", "unreachable"])
def test_an_error_of_any_kind_holds_neither_the_clients_token_nor_the_upstreams_keys(
    new_home: Callable[..., Home], upstream: Upstream, there: bool
) -> None:
    home = new_home(environ={"REEF_UPSTREAM_API_KEY": HEADER, "REEF_TOKEN": CLIENT})
    home.upstream = f"{upstream.url if there else 'http://127.0.0.1:9'}/v1?key={ADDRESS}"
    home.start()
    shown = []
    for client in (home.http(CLIENT), home.http(**{"x-api-key": CLIENT}), home.http(f"{CLIENT}x")):
        for path in ("/v1/chat/completions", "/v1/messages"):
            for words in ("hello", "[[status 500]]", "[[paced 9 1ms]] [[die after 4]]"):
                body = {"max_tokens": 9, "messages": [{"role": "user", "content": words}], "stream": "die" in words}
                shown.append(client.post(path, json=body).text)
            shown.append(client.post(path, content=b"{", headers={"content-type": "application/json"}).text)
        shown.append(client.post("/v1/embeddings", json={"input": "x"}).text)
    shown += [home.person.get(path).text for path in ("/reef/status", "/reef/config", "/reef/records?limit=100")]
    states = {row["state"] for row in json.loads(shown[-1])["records"]}
    assert states == ({"complete", "failed"} if there else {"failed"})
    home.stop()
    files = {str(file): file.read_bytes() for file in (home.folder / "reef").rglob("*") if file.is_file()}
    texts = files | {f"reply {number}": text.encode() for number, text in enumerate(shown)}
    for secret in (CLIENT, HEADER, ADDRESS):
        for form in (secret.encode(), base64.b64encode(secret.encode()).rstrip(b"=")):
            assert [name for name, text in texts.items() if form in text] == []
