"""What the doctor says of the agents: how full their rules are, and what they read that is not the version's."""

from __future__ import annotations

from pathlib import Path

from reef.doctor import agents, network
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree
from reef.paths import Paths

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
    assert [check.state for check in agents.check(paths)] == ["ok", "ok"]
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
