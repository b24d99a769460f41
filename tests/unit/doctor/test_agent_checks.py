"""What the doctor says of the agents: how full their rules are, and what they read that is not the version's."""

from __future__ import annotations

from pathlib import Path

import pytest

from reef.doctor import agents, network
from reef.doctor.check import Check
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree
from reef.paths import Paths
from tests.fakes.agent_place import place_fake_agent

CODEX = load_adapter("codex")


def install(paths: Paths, files: dict[str, bytes]) -> None:
    install_tree(paths, "coding", CODEX, 1, files, "r1", "c1")


def test_without_a_harness_there_is_nothing_to_find(paths: Paths) -> None:
    assert list(agents.check(paths)) == []


def test_the_budget_of_the_rules_is_shown_and_a_full_one_is_to_be_looked_at(paths: Paths) -> None:
    install(paths, {"AGENTS.md": b"x" * 1234})
    check = agents.rules(paths, [CODEX])
    assert (check.state, check.sentence) == ("ok", "rules: Codex, coding: 1,234 of 65,536 bytes")
    install(paths, {"AGENTS.md": b"x" * 60000})
    check = agents.rules(paths, [CODEX])
    assert check.state == "warn" and "60,000 of 65,536 bytes; what goes over is refused" in check.sentence
    install(paths, {"skills/a/SKILL.md": b"x"})
    assert agents.rules(paths, [CODEX]).sentence == "rules: Codex, coding: 0 of 65,536 bytes"


def test_a_place_that_an_agent_reads_in_any_case_is_shown_and_a_skill_of_both_is_named(
    paths: Paths, sealed_room: Path
) -> None:
    install(paths, {"skills/shipping/SKILL.md": b"x"})
    assert [(check.name, check.state) for check in agents.check(paths)][1:] == [("rules", "ok"), ("leaks", "ok")]
    place = sealed_room / ".agents" / "skills"
    (place / "mine").mkdir(parents=True)
    both = [CODEX, load_adapter("pi")]
    check = agents.leaks(paths, both)
    assert (check.state, check.sentence) == ("ok", f"Codex and pi also read {place} (1 skill)")
    (place / "shipping").mkdir()
    check = agents.leaks(paths, both)
    assert (check.state, check.hint) == ("warn", f"ls {place}")
    assert check.sentence.endswith(f"{place}, where shipping is called as in a version")


def test_what_an_installed_agent_asks_by_itself_is_among_the_addresses(paths: Paths) -> None:
    def itself() -> list[str]:
        return [row.address for row in network.addresses(paths, {}) if row.why.startswith("Codex itself")]

    assert itself() == []
    install(paths, {"AGENTS.md": b"x"})
    assert itself() == ["https://raw.githubusercontent.com"]


def test_an_agent_that_is_not_the_tested_one_is_named_with_the_one_that_is(paths: Paths) -> None:
    pi = load_adapter("pi", paths)
    assert pi.install is not None
    missing = agents.programs(paths, [pi])
    assert (missing.state, missing.hint) == ("warn", "reef agents add pi")
    assert missing.sentence == f"agents: pi is not installed, this reef was tested with {pi.install.version}"
    older = paths.agents / "pi" / "0.9.0"
    older.mkdir(parents=True)
    (older / "installed.json").write_text("{}")
    assert "pi 0.9.0 is installed, this reef was tested with" in agents.programs(paths, [pi]).sentence
    place_fake_agent(pi, paths)
    assert agents.programs(paths, [pi]) == Check("agents", "ok", f"agents: pi {pi.install.version}")


def test_an_agent_of_the_persons_own_is_asked_for_its_version(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load_adapter("pi", paths).run.model_copy(update={"tested": "tiny 1.0", "get": "brew install tiny"})
    own = load_adapter("pi", paths).model_copy(update={"install": None, "binary": "tiny", "title": "Tiny", "run": run})
    assert agents.programs(paths, [own]) == Check(
        "agents", "warn", "agents: Tiny is not on the PATH", "brew install tiny"
    )
    program = tmp_path / "tiny"
    monkeypatch.setenv("PATH", str(tmp_path))
    for said, state in (("tiny 1.0", "ok"), ("tiny 2.0", "warn"), ("", "warn")):
        program.write_text(f"#!/bin/sh\necho {said}\n")
        program.chmod(0o755)
        check = agents.programs(paths, [own])
        assert check.state == state
        assert said in check.sentence
