"""A home in TOML whose agent keeps skills of its own, and in which a person says what they trust."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from reef.harness.adapter import load_adapter
from reef.harness.binding import Served
from reef.harness.home import prepare_home
from reef.harness.install import Install, install_tree
from reef.harness.resume import resume_line
from reef.paths import Paths

CODEX = load_adapter("codex")


def install(paths: Paths, files: dict[str, bytes], version: int = 1) -> Install:
    return install_tree(paths, "coding", CODEX, version, files, f"r{version}", f"c{version}").install


def prepare(made: Install) -> Path:
    return Path(str(prepare_home(made, CODEX, Served("http://127.0.0.1:8900", "m1", 8192), made.folder)["home"]))


def config(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "config.toml").read_text())


def test_what_a_person_trusted_and_how_the_screen_looks_stay_and_hooks_and_servers_do_not(paths: Paths) -> None:
    made = install(paths, {"AGENTS.md": b"one"})
    home = prepare(made)
    own = config(home)["hooks"]["state"]
    changed = config(home)
    changed["projects"] = {"/a/project": {"trust_level": "trusted"}}
    changed["tui"] = {"theme": "dark"}
    changed["hooks"]["state"]["/a/project/.codex/hooks.json:stop:0:0"] = {"trusted_hash": "sha256:00"}
    changed["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": "evil"}]}]
    changed["mcp_servers"] = {"evil": {"command": "evil"}}
    changed["sandbox_mode"] = "danger-full-access"
    (home / "config.toml").write_text(tomli_w.dumps(changed))
    for _ in range(2):
        now = config(prepare(made))
        assert now["projects"] == {"/a/project": {"trust_level": "trusted"}} and now["tui"] == {"theme": "dark"}
        assert now["hooks"] == {"state": own | {"/a/project/.codex/hooks.json:stop:0:0": {"trusted_hash": "sha256:00"}}}
        assert not {"mcp_servers", "sandbox_mode"} & set(now)


def test_the_hash_of_a_hook_that_reef_wrote_before_does_not_outlive_the_hook(paths: Paths) -> None:
    made = install(paths, {"AGENTS.md": b"one"})
    home = prepare(made)
    fresh = config(home)
    old = json.loads((home / ".reef-base.json").read_text())
    for place in (fresh, old["config.toml"]):
        for state in place["hooks"]["state"].values():
            state["trusted_hash"] = "sha256:of-an-older-reef"
    (home / "config.toml").write_text(tomli_w.dumps(fresh))
    (home / ".reef-base.json").write_text(json.dumps(old))
    assert "older" not in (prepare(made) / "config.toml").read_text()


def test_the_agents_own_skills_stay_beside_those_of_the_version(paths: Paths) -> None:
    home = prepare(install(paths, {"skills/a/SKILL.md": b"one", "skills/b/SKILL.md": b"two"}))
    (home / "skills" / ".system").mkdir()
    assert (home / "skills" / "a" / "SKILL.md").read_bytes() == b"one"
    assert prepare(install(paths, {"skills/b/SKILL.md": b"three", "AGENTS.md": b"x"}, 2)) == home
    assert sorted(place.name for place in (home / "skills").iterdir()) == [".system", "b"]
    assert (home / "skills" / "b" / "SKILL.md").read_bytes() == b"three"


def test_a_home_below_a_link_is_named_as_the_agent_knows_it(paths: Paths, tmp_path: Path) -> None:
    real = tmp_path / "real"
    paths.harness.parent.mkdir(parents=True, exist_ok=True)
    real.mkdir()
    paths.harness.symlink_to(real)
    home = prepare(install(paths, {"AGENTS.md": b"one"}))
    assert home.is_relative_to(real)
    assert {key.partition("/hooks.json:")[0] for key in config(home)["hooks"]["state"]} == {str(home)}


def test_the_line_after_a_session_names_it_as_codex_wrote_it_down(paths: Paths) -> None:
    home = prepare(install(paths, {"AGENTS.md": b"one"}))
    folder = home / "sessions" / "2026" / "01" / "02"
    folder.mkdir(parents=True)
    meta = {"id": "0123-abc", "cwd": str(Path.cwd()), "base_instructions": {"text": "x" * 100_000}}
    (folder / "rollout-x.jsonl").write_text(json.dumps({"type": "session_meta", "payload": meta}) + "\n{}\n")
    assert resume_line(CODEX, home, [], 0) == "with reef: reef-codex resume 0123-abc"
    assert resume_line(CODEX, home, ["exec", "hi"], 0) is None
