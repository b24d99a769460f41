"""Pages for a browser: whole, escaped, without anything that runs, and opened by a key that opens nothing else."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable

import pytest

from reef.records import rows
from reef.records.writer import Writer
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.http.running import Home

NAME = "paged"
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J \u202e & \"'"
NOTES = {"design": {"triggers": f"when {HOSTILE}"}, "review": "complete"}


@pytest.fixture(scope="module")
def paged(home: Home) -> Home:
    """A scenario with a version that an ask made, every text of it hostile, and a step folder with files."""
    home.nobody.post("/reef/scenarios", json={"name": NAME, "recipe": "reefine"})
    home.stop()

    def begin(conn: sqlite3.Connection) -> int:
        ask, _, _ = rows.add_ask(conn, NAME, f"be brief {HOSTILE}")
        group = {"name": "reach", "status": "pass", "detail": HOSTILE, "seconds": 2.0}
        step = rows.add_step(conn, NAME, recipe="reefine", asks=[ask], notes=NOTES, evaluation={"groups": [group]})
        rows.set_ask(conn, ask, state="running", step=step)
        rows.add_activity(conn, NAME, step, "propose", HOSTILE)
        return step

    async def publish() -> None:
        writer, repository = Writer(home.paths.database), Repository(home.paths.versions_git)
        publisher = Publisher(writer, repository, rows)
        base = await publisher.head(NAME)
        files = repository.files(base.release_id) | {"harness/rules/brief.md": b"<b>Be brief.</b>\n"}
        step = await writer.write(begin)
        await publisher.publish(Proposal(NAME, files, base.release_id, f"brief {HOSTILE}", step, requires=[
            {"kind": "service", "name": "db", "prompt": HOSTILE},
        ]))  # fmt: skip
        writer.close()

    asyncio.run(publish())
    folder = home.paths.steps / NAME / "1"
    (folder / "episodes").mkdir(parents=True)
    (folder / "mutations.json").write_text("[]\n")
    (folder / "episodes" / "one.jsonl").write_text("{}\n")
    (folder / "output.log").write_text("not data\n")
    (folder / "link.json").symlink_to(home.paths.person_key)
    return home.start()


def path_of(home: Home, version: int = 2) -> str:
    listed = home.person.get(f"/reef/scenarios/{NAME}/releases").json()["releases"]
    return str(next(row["page_path"] for row in listed if row["version"] == version))


def test_the_page_of_a_version_is_whole_and_nothing_in_it_runs_or_leads_away(paged: Home) -> None:
    reply = paged.nobody.get(path_of(paged))
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "script" not in policy
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "no-store" in reply.headers["cache-control"]
    text = reply.text
    assert re.findall(r"<h2>(.*?)</h2>", text) == [
        "Why", "Design", "What changed", "Review", "Result", "Setup", "Chain",
    ]  # fmt: skip
    assert [word for word in ("<img", "\x1b", "\u202e", "<b>", "://", " href") if word in text] == []
    assert text.count("<script") == text.count("</script>") == 1
    data = re.search(r'<script type="application/json" id="row">(.*?)</script>', text, re.S)
    assert data is not None
    row = json.loads(data.group(1))
    assert (row["version"], row["summary"]) == (2, f"brief {HOSTILE}")
    assert "+&lt;b&gt;Be brief.&lt;/b&gt;" in text.replace("+ ", "+")


def test_the_page_of_an_ask_loads_itself_anew_until_it_is_settled(paged: Home) -> None:
    ask = paged.person.get(f"/reef/asks?scenario={NAME}").json()["asks"][0]
    path = paged.person.get(f"/reef/asks/{ask['id']}").json()["page_path"]
    text = paged.nobody.get(path).text
    assert re.findall(r"<h2>(.*?)</h2>", text)[:3] == ["Ask", "State", "Activity"]
    assert ("http-equiv" in text, "<img" in text) == (False, False)
    filed = paged.nobody.post(
        "/reef/train", json={"text": "[[propose no]] x"}, headers={"x-reef-scenario": NAME}
    ).json()
    if paged.nobody.get(filed["page_path"].replace("/page?", "/progress?")).json()["state"] == "queued":
        assert '<meta http-equiv="refresh" content="5">' in paged.nobody.get(filed["page_path"]).text


def test_a_page_key_opens_the_pages_of_its_scenario_and_nothing_else(paged: Home) -> None:
    path = path_of(paged)
    key = re.search(r"key=([0-9a-f]{64})\Z", path)
    assert key is not None
    bare, query = path.split("?")[0], f"?scenario={NAME}&key={key.group(1)}"
    nobody = paged.nobody
    assert nobody.get(f"{bare}?scenario={NAME}").status_code == 403
    assert nobody.get(f"{bare}?scenario=default&key={key.group(1)}").status_code == 401
    assert nobody.get(f"{bare}?scenario={NAME}&key=" + "0" * 64).status_code == 401
    assert nobody.get(f"{bare}?scenario={NAME}&token={paged.key}").status_code == 403
    assert paged.http(**{"x-reef-scenario": "default"}).get(path).status_code == 401
    for other in (
        "/reef/asks",
        "/reef/steps",
        f"/reef/scenarios/{NAME}/versions/2",
        "/reef/harness/releases/2/records",
    ):
        assert nobody.get(other + query).status_code == 403, other
    # Nobody but the person is handed a key.
    assert "key=" not in str(nobody.get(f"/reef/scenarios/{NAME}/releases").json())
    for step in ("0", "99", "x", "1234567890", "-1", "²"):
        assert nobody.get(f"/reef/harness/releases/{step}/page{query}").status_code == 404, step


def test_the_files_of_a_step_are_listed_and_read_and_nothing_outside_is(paged: Home) -> None:
    path, named = "/reef/harness/releases/2/records", {"x-reef-scenario": NAME}
    person = paged.http(paged.key, **named)
    listed = person.get(path).json()
    assert listed == {
        "status": "retained",
        "files": [{"path": "mutations.json", "bytes": 3}, {"path": "episodes/one.jsonl", "bytes": 3}],
    }
    assert person.get(path, params={"path": "episodes/one.jsonl"}).json()["text"] == "{}\n"
    for wrong in (
        "../1/mutations.json", "/etc/x.json", "link.json", "output.log", "episodes/../mutations.json", "a\\b.json",
        "", ".json/", "episodes//one.jsonl", "x\0.json",
    ):  # fmt: skip
        assert person.get(path, params={"path": wrong}).status_code == 400, wrong
    assert person.get(path, params={"path": "none.json"}).status_code == 404
    assert person.get("/reef/harness/releases/1/records").json() == {"status": "not_recorded", "files": []}
    assert person.get("/reef/harness/releases/9/records").status_code == 404
    assert paged.http(**named).get(path).status_code == 403


def test_with_a_token_the_pages_need_it_or_a_key_made_from_it(new_home: Callable[..., Home]) -> None:
    home = new_home(environ={"REEF_TOKEN": "tok-0123456789abcdefghijkl"}).start()
    with_token = home.http("tok-0123456789abcdefghijkl")
    path = with_token.get("/reef/scenarios/default/releases").json()["releases"][0]["page_path"]
    assert home.nobody.get(path.split("?")[0]).status_code == 401
    assert home.nobody.get(path.partition("&key=")[0]).status_code == 401
    assert home.nobody.get(path).status_code == 200
    assert with_token.get(path.partition("&key=")[0]).status_code == 200
