"""A home whose agent keeps trust and servers in one file of its own, and texts of reef's own commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reef.errors import Refused
from reef.harness.adapter import load_adapter, render
from reef.harness.admission import code_reasons
from reef.harness.binding import Served, binding, bound_environment, placeholders
from reef.harness.home import prepare_alongside, prepare_home
from reef.harness.install import Install, install_tree
from reef.harness.tree import Change, Entry, Tree
from reef.paths import Paths

CLAUDE = load_adapter("claude")
SERVED = Served("http://127.0.0.1:8900", "some/model", 16384, 2048)


def install(paths: Paths, *entries: Entry) -> Install:
    return install_tree(paths, "coding", CLAUDE, 1, render(Tree(entries), CLAUDE), "r1", "c1").install


def prepare(made: Install) -> Path:
    return Path(str(prepare_home(made, CLAUDE, SERVED, made.folder)["home"]))


def state(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / ".claude.json").read_text())
    return found


def test_what_a_person_trusted_stays_and_servers_that_were_added_past_the_version_do_not(paths: Paths) -> None:
    made = install(paths)
    home = prepare(made)
    assert state(home)["hasCompletedOnboarding"] is True and "projects" not in state(home)
    server = {"evil": {"command": "evil"}}
    project = {"hasTrustDialogAccepted": True, "mcpServers": server}
    (home / ".claude.json").write_text(json.dumps(state(home) | {"mcpServers": server, "projects": {"/w": project}}))
    assert state(prepare(made))["projects"] == {"/w": {"hasTrustDialogAccepted": True}}
    assert "mcpServers" not in state(home)


def test_hooks_and_permissions_that_were_written_into_the_home_do_not_outlive_the_session(paths: Paths) -> None:
    made = install(paths)
    home = prepare(made)
    fresh = json.loads((home / "settings.json").read_text())
    changed = json.loads(json.dumps(fresh)) | {"theme": "light", "apiKeyHelper": "evil", "env": {"A": "b"}}
    changed["permissions"]["allow"] = ["Bash"]
    changed["hooks"]["PreToolUse"] = [{"hooks": [{"type": "command", "command": "evil"}]}]
    (home / "settings.json").write_text(json.dumps(changed))
    assert json.loads((prepare(made) / "settings.json").read_text()) == fresh | {"theme": "light"}


@pytest.mark.parametrize("name", ["rules/more.md", "agents/mine.md", "CLAUDE.local.md", "settings.local.json"])
def test_instructions_beside_the_version_are_refused(paths: Paths, name: str) -> None:
    made = install(paths)
    home = prepare(made)
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).write_text("{}")
    with pytest.raises(Refused, match="was not put there by reef"):
        prepare(made)


def test_the_sizes_and_the_model_of_the_daemon_are_what_claude_code_is_told() -> None:
    here = Path("/h")
    values = placeholders(CLAUDE, SERVED, here, here, here) | {"token": "rs-secret"}
    environment = bound_environment(CLAUDE, values)
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8900"
    assert (environment["CLAUDE_CODE_MAX_CONTEXT_TOKENS"], environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]) == (
        "16384",
        "2048",
    )
    models = {value for name, value in environment.items() if name.endswith("_MODEL")}
    assert models == {"some/model"} and environment["ANTHROPIC_AUTH_TOKEN"] == "rs-secret"
    assert "ANTHROPIC_API_KEY" not in environment and environment["CLAUDE_CONFIG_DIR"] == "/h"
    hooks = json.loads(binding(CLAUDE, values)["settings.json"])["hooks"]
    assert sorted(hooks) == ["SessionStart", "Stop", "UserPromptSubmit"]
    for event, ((group,)) in hooks.items():
        assert group["hooks"][0]["command"].removesuffix(" redraw").endswith(f"reef.harness.hook claude {event}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ndescription: x\nallowed-tools: Bash\n---\nDo it.\n", "'allowed-tools' in the front matter"),
        ('---\n"h\\x6foks": {Stop: []}\n---\nDo it.\n', "'hooks' in the front matter"),
        ("---\ndescription: x\n---\nSee !`date`.\n", "calls a shell"),
        ("---\ndescription: x\n---\n```!\ndate\n```\n", "calls a shell"),
        ("---\ndescription: [\n---\nDo it.\n", "cannot be read"),
    ],
)
def test_what_makes_a_skill_or_a_command_of_claude_code_act_is_code(text: str, said: str) -> None:
    for kind in ("skill", "agent_command"):
        reasons = code_reasons(Change("create", None, Entry.parse("it", kind, {"text": text})), CLAUDE)
        assert len(reasons) == 1 and said in reasons[0], reasons


def test_alongside_the_persons_own_configuration_everything_is_a_plugin(paths: Paths) -> None:
    made = install(paths, Entry.parse("tabs", "rules", {"text": "no tabs"}))
    values = prepare_alongside(made, CLAUDE, SERVED, made.folder)
    folder = Path(str(values["alongside"]))
    assert json.loads((folder / ".claude-plugin" / "plugin.json").read_text())["name"] == "reef"
    assert sorted(json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]) == [
        "SessionStart",
        "Stop",
        "UserPromptSubmit",
    ]
    assert sorted(file.name for file in (folder / "commands").iterdir()) == ["reefine.md", "versions.md"]
    assert list((folder / "skills").iterdir()) == []
    assert values["rules"] == "no tabs\n" and "CLAUDE_CONFIG_DIR" not in bound_environment(CLAUDE, values, True)
