"""The plugin that reef gives Hermes Agent: what it changes in a request, and that it is silent without reef."""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reef.harness.adapter import base_entries, load_adapter, render
from reef.harness.binding import Served, binding, placeholders
from reef.harness.formats import parsed
from reef.harness.resume import resume_line
from reef.harness.tree import Entry, Tree

HERMES = load_adapter("hermes")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A rendered version with a rule and a command."""
    planted = [
        Entry.parse("tabs", "rules", {"text": "never use tabs"}),
        Entry.parse("greet", "agent_command", {"text": "---\ndescription: hi\n---\nGreet $ARGUMENTS.\n"}),
        Entry.parse("audit", "code_extension", {"text": "def register(ctx): ...\n", "ext": "py"}),
    ]
    for path, content in render(Tree([*base_entries(HERMES).entries, *planted]), HERMES).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    return tmp_path


@pytest.fixture
def plugin(tree: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("REEF_TREE", str(tree))
    spec = importlib.util.spec_from_file_location("reef_hermes", tree / "plugins" / "reef-hermes" / "__init__.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_plugin_and_the_adapter_know_the_same_two_lines_around_the_rules(plugin: ModuleType, tree: Path) -> None:
    assert (HERMES.render.rules_head, HERMES.render.rules_tail) == (plugin.HEAD, plugin.TAIL)
    assert (tree / "SOUL.md").read_text() == f"{plugin.HEAD}\n\nnever use tabs\n\n{plugin.TAIL}\n"
    bare = render(base_entries(HERMES), HERMES)
    # Hermes would write a file of its own where there is none.
    assert bare["SOUL.md"].decode() == f"{plugin.HEAD}\n\n{plugin.TAIL}\n"


def test_the_rules_of_a_request_are_those_that_are_installed_now(plugin: ModuleType, tree: Path) -> None:
    old = f"{plugin.HEAD}\n\nuse tabs\n\n{plugin.TAIL}\n\nThe date is …"
    message = {"role": "system", "content": old}
    assert plugin.fresh(message)["content"] == f"{plugin.HEAD}\n\nnever use tabs\n\n{plugin.TAIL}\n\nThe date is …"
    (tree / "SOUL.md").write_text("something that reef did not write")
    assert plugin.fresh(message) == message
    other = {"role": "system", "content": "You summarise."}
    assert plugin.fresh(other) == other


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("/greet the crew", "Greet the crew."),
        ("/greet", "Greet ."),
        ("/nobody x", None),
        ("/../SOUL x", None),
        ("say /greet", None),
    ],
)
def test_a_typed_command_becomes_its_text(plugin: ModuleType, typed: str, sent: str | None) -> None:
    message = {"role": "user", "content": typed}
    assert plugin.fresh(message)["content"] == (typed if sent is None else sent)
    assert plugin.commands() == ["greet"]


def test_a_request_carries_the_session_and_keeps_its_other_headers(plugin: ModuleType) -> None:
    given = {"messages": [], "extra_headers": {"x": "y"}, "model": "m"}
    made = plugin.Plugin(None).request(given, session_id="s1")["request"]
    assert made == given | {"extra_headers": {"x": "y", "x-reef-session": "s1"}}
    assert given["extra_headers"] == {"x": "y"}


def test_without_reefs_variables_nothing_is_registered(plugin: ModuleType) -> None:
    class Context:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    assert plugin.TOKEN == ""
    plugin.register(Context())


def test_a_daemon_that_is_away_is_one_sentence_and_nothing_steers_the_terminal(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "URL", "http://127.0.0.1:9")
    assert plugin.guarded(plugin.Plugin(None).reefine)("be brief") == "reef: the daemon is not running (reef up)"
    assert plugin.safe("a\x1b[2Jb\u202ec") == "a\ufffd[2Jb\ufffdc"


def test_hermes_loads_the_plugins_of_the_version_and_no_others(tree: Path) -> None:
    files = {str(file.relative_to(tree)): file.read_bytes() for file in tree.rglob("*") if file.is_file()}
    values = placeholders(HERMES, Served("http://d", "m", 8192), tree, tree, tree)
    config = parsed("config.yaml", binding(HERMES, values, files)["config.yaml"])
    assert config["plugins"] == {"enabled": ["audit", "reef-hermes"]}
    assert parsed("plugin.yaml", files["plugins/audit/plugin.yaml"])["name"] == "audit"
    # It does not start with less than 64,000 tokens; what the model cannot hold is refused by the daemon.
    assert (config["model"]["context_length"], config["model"]["max_tokens"]) == (64000, 2048)


def test_the_session_of_this_directory_that_was_used_last_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect(tmp_path / "state.db")) as store:
        store.execute("CREATE TABLE sessions (id, cwd, parent_session_id)")
        store.execute("CREATE TABLE messages (session_id, timestamp)")
        rows = [("old", str(tmp_path), None), ("new", str(tmp_path), None), ("sub", str(tmp_path), "new")]
        store.executemany("INSERT INTO sessions VALUES (?, ?, ?)", [*rows, ("far", "/elsewhere", None)])
        times = [("old", 10.0), ("new", 20.0), ("new", 30.0), ("sub", 40.0), ("far", 50.0)]
        store.executemany("INSERT INTO messages VALUES (?, ?)", times)
        store.commit()
    assert resume_line(HERMES, tmp_path, [], 15.0) == "with reef: reef-hermes --resume new"
    assert resume_line(HERMES, tmp_path, ["-z", "hi"], 15.0) is None
    assert resume_line(HERMES, tmp_path, [], 35.0) is None
