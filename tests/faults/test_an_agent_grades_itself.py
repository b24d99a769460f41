"""What an agent says of its own answers is stored as the agent's, shown apart, and counts as nobody's feedback."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from reef.learning import inputs
from reef.learning.job import Job
from reef.learning.manifest import Manifest
from reef.paths import Paths
from reef.records.reader import Reader
from reef.records.reports import store_report
from reef.records.writer import Writer
from reef.tui.views import records
from tests.cli.shell import reef
from tests.http.running import Home, chat


def test_a_grade_with_the_agents_own_token_is_the_agents_and_in_no_persons_total(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start()
    session = {"scenario": "default", "adapter": "pi", "version": 1, "cwd": str(home.folder), "pid": os.getpid()}
    agent = home.http(home.person.post("/reef/sessions", json=session).json()["token"])
    receipt = chat(agent, "hello").headers["x-reef-agent-record-id"]
    # Neither a claim in the body nor one in a header makes an agent a person.
    body = {"score": 1, "references": [receipt], "source": "person", "metadata": {"source": "person"}}
    reply = agent.post("/reef/report", json=body, headers={"x-reef-source": "person"})
    assert reply.status_code == 200
    record = home.person.get(f"/reef/records/{receipt}").json()
    assert (record["score"], record["agent_score"]) == (None, 1)
    assert [row["source"] for row in record["reports"]] == ["agent"]
    assert home.person.get("/reef/sessions").json()["sessions"][0]["score"] is None
    scenario = home.nobody.get("/reef/status").json()["scenarios"][0]
    assert (scenario["reports"], scenario["agent_reports"]) == (0, 1)
    assert "1 by agents" in reef("status", env=home.env).out
    assert reef("good", "--receipt", receipt, env=home.env).out.startswith("good stored on "), "not a revision of it"
    record = home.person.get(f"/reef/records/{receipt}").json()
    assert (record["score"], record["agent_score"]) == (1, 1)
    shown = [line.text for line in records.report_lines(record)]
    assert [("you," in line, "the agent," in line) for line in shown] == [(True, False), (False, True)]
    cells = records.present(records.row(record | {"score": None}))
    assert cells["you"].text == "", "the column of the person's ratings"
    listed = reef("reports", "list", env=home.env).out.splitlines()
    assert ["an agent" in line for line in listed[1:]] == [False, True]


@pytest.mark.parametrize("counted", [False, True], ids=["as it is", "when a setting says so"])
def test_a_recipe_learns_from_what_an_agent_says_of_itself_only_when_a_setting_says_so(
    paths: Paths, counted: bool
) -> None:
    paths.make()
    writer, reader = Writer(paths.database), Reader(paths.database)
    for source in ("person", "agent", "program"):
        writer.submit(lambda conn, source=source: store_report(conn, "s", {"score": 1}, source)).result(30)
    job = Job.model_construct(scenario="s", asks=[], count_agent_reports=counted)
    found = list(inputs.gather(job, Manifest(name="tried", help="", inputs=["reports"]), reader))
    reader.close()
    writer.close()
    wanted = ["person", "agent", "program"] if counted else ["person", "program"]
    assert [report.source for report in found if isinstance(report, inputs.ReportInput)] == wanted
