"""Adapters: read from data, rendered purely, bound without a key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from reef.errors import ConfigError, InvalidInput, NotFound
from reef.harness.adapter import adapter_names, base_entries, fitting, load_adapter, render
from reef.harness.binding import Served, Value, binding, filled, headless_arguments, placeholders
from reef.harness.tree import Entry, Tree
from reef.paths import Paths, bundled


def entry(id: str, kind: str, text: str, **config: object) -> Entry:
    return Entry.parse(id, kind, {"text": text, **config})


def pointed(url: str, model: str, window: int | None = None) -> dict[str, Value]:
    here = Path("/h")
    return placeholders(load_adapter("pi"), Served(url, model, window), here, here, here)


def test_rules_share_one_file_in_the_order_of_their_ids() -> None:
    tree = Tree([entry("b", "rules", "second\n"), entry("a", "rules", "\nfirst")])
    assert render(tree, load_adapter("pi")) == {"AGENTS.md": b"first\n\nsecond\n"}


def test_every_kind_has_its_place_in_pis_home() -> None:
    tree = Tree(
        [
            entry("s", "skill", "---\n---\nx", files={"more/a.md": "y"}),
            entry("c", "agent_command", "x"),
            entry("e", "code_extension", "x", ext="ts"),
            Entry.parse("settings", "config", {"data": {"steeringMode": "all"}}),
        ]
    )
    assert sorted(render(tree, load_adapter("pi"))) == [
        "extensions/e.ts",
        "prompts/c.md",
        "settings.json",
        "skills/s/SKILL.md",
        "skills/s/more/a.md",
    ]


def test_a_kind_that_an_agent_has_no_place_for_is_refused_by_name() -> None:
    pi = load_adapter("pi")
    bare = pi.model_copy(update={"render": pi.render.model_copy(update={"agent_command": None})})
    with pytest.raises(InvalidInput, match="c: pi has no place for an agent_command"):
        render(Tree([entry("c", "agent_command", "x")]), bare)


def test_the_base_of_pi_is_what_reef_ships_and_nothing_else() -> None:
    pi = load_adapter("pi")
    tree = base_entries(pi)
    assert [(item.id, item.kind) for item in tree.entries] == [("reef-pi", "code_extension")]
    assert list(render(tree, pi)) == ["extensions/reef-pi.ts"]


def test_the_binding_names_the_daemon_and_the_variable_of_the_key_never_a_key() -> None:
    files = binding(load_adapter("pi"), pointed("http://127.0.0.1:8900", "m2", 8192))
    provider = json.loads(files["models.json"])["providers"]["reef"]
    assert (provider["baseUrl"], provider["apiKey"]) == ("http://127.0.0.1:8900/v1", "$REEF_SESSION")
    assert provider["models"][0]["id"] == "m2"
    assert (provider["models"][0]["contextWindow"], provider["models"][0]["maxTokens"]) == (8192, 2048)
    settings = json.loads(files["settings.json"])
    assert (settings["defaultProvider"], settings["defaultModel"]) == ("reef", "m2")
    # pi compacts as soon as less than this is free; its own default is more than a small model has at all.
    assert settings["compaction"]["reserveTokens"] == 2048


def test_a_placeholder_alone_keeps_its_type_and_an_unknown_one_stays() -> None:
    values: dict[str, Value] = {"max_tokens": 5, "home": "/h"}
    asked = {"{home}/x": ["{max_tokens}", "at most {max_tokens}", "{other}"]}
    assert filled(asked, values) == {"/h/x": [5, "at most 5", "{other}"]}


def test_what_reef_ships_for_another_agent_is_not_rendered() -> None:
    tree = Tree([entry("reef-pi", "code_extension", "x", ext="ts"), entry("reef-other", "rules", "not for pi")])
    assert list(render(tree, load_adapter("pi"))) == ["extensions/reef-pi.ts"]


def test_an_entry_that_an_agent_cannot_be_given_is_left_out_and_named() -> None:
    tree = Tree([entry("a", "rules", "said"), entry("e", "code_extension", "x", ext="py")])
    kept, left_out = fitting(tree, load_adapter("pi"))
    assert ([item.id for item in kept.entries], len(left_out)) == (["a"], 1)
    assert left_out[0].startswith("e: pi does not load .py")


def test_the_tree_may_override_defaults_but_not_where_the_agent_is_pointed() -> None:
    mine = {"settings.json": b'{"compaction": {"enabled": false}, "defaultProvider": "elsewhere", "other": 1}'}
    settings = json.loads(binding(load_adapter("pi"), pointed("http://h", "m"), mine)["settings.json"])
    assert settings["compaction"] == {"reserveTokens": 8192, "keepRecentTokens": 10922, "enabled": False}
    assert (settings["defaultProvider"], settings["other"]) == ("reef", 1)


def test_an_unknown_adapter_is_named_with_the_known_ones(paths: Paths) -> None:
    with pytest.raises(NotFound, match=r"'vi' \(known: .*pi"):
        load_adapter("vi", paths)
    for name in ("..", "", "pi/base", "/etc"):
        with pytest.raises(NotFound):
            load_adapter(name, paths)


def test_the_persons_own_adapter_goes_before_the_bundled_one(paths: Paths) -> None:
    own = paths.config / "adapters" / "mine"
    shutil.copytree(bundled("adapters") / "pi", own)
    file = own / "adapter.toml"
    file.write_text(file.read_text().replace('name = "pi"\ntitle = "pi"', 'name = "mine"\ntitle = "My own"'))
    assert {"mine", "pi"} <= set(adapter_names(paths))
    assert load_adapter("mine", paths).title == "My own"
    assert load_adapter("mine", paths).folder == own


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('dialect = "chat"', 'dialect = "morse"', "dialect"),
        ('binary = "pi"', 'binary = "pi"\nbinry = "pi"', "binry"),
        ('name = "pi"', 'name = "qi"', "names the adapter 'qi'"),
        ('name = "pi"', "name = pi", "cannot be read"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_file(paths: Paths, old: str, new: str, said: str) -> None:
    own = paths.config / "adapters" / "pi"
    shutil.copytree(bundled("adapters") / "pi", own)
    (own / "adapter.toml").write_text((own / "adapter.toml").read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=r"adapter\.toml") as refused:
        load_adapter("pi", paths)
    assert said in refused.value.message


def test_the_lock_file_of_pi_pins_every_package_by_hash_and_names_no_host() -> None:
    folder = bundled("adapters") / "pi"
    lock = json.loads((folder / "package-lock.json").read_text())
    pinned = load_adapter("pi").install
    assert pinned is not None
    assert lock["packages"][f"node_modules/{pinned.package}"]["version"] == pinned.version
    packages = {name: facts for name, facts in lock["packages"].items() if name}
    assert all(facts["integrity"].startswith("sha512-") for facts in packages.values())
    assert not any("resolved" in facts for facts in packages.values())
    assert json.loads((folder / "package.json").read_text())["dependencies"] == {pinned.package: pinned.version}


def test_an_adapter_folder_holds_a_readme() -> None:
    for name in adapter_names():
        assert "#" in (Path(bundled("adapters")) / name / "README.md").read_text()


def test_a_command_without_a_person_is_a_prompt_or_has_arguments_of_its_own() -> None:
    opencode, pi, values = load_adapter("opencode"), load_adapter("pi"), pointed("http://127.0.0.1:8900", "m")
    typed = "/greet you there"
    assert headless_arguments(pi, typed, values, {"greet"})[-1] == typed
    assert headless_arguments(opencode, "greet", values, {"greet"}) == ["run", "greet"]
    known = headless_arguments(opencode, typed, values, {"greet"})
    assert known == ["run", "--command", "greet", "you", "there"]
    assert headless_arguments(opencode, "/greet", values, {"greet"}) == ["run", "--command", "greet"]
    assert headless_arguments(opencode, typed, values, set()) == ["run", typed]


def test_a_projects_rules_are_named_from_its_top_to_the_folder_of_the_start(tmp_path: Path) -> None:
    project, opencode = tmp_path / "project", load_adapter("opencode")
    (project / "lib" / "part").mkdir(parents=True)

    def named(cwd: Path) -> object:
        files = binding(opencode, placeholders(opencode, Served("http://127.0.0.1:8900", "m"), cwd, cwd, cwd))
        return json.loads(files["opencode.json"])["instructions"]

    (tmp_path / "AGENTS.md").write_text("beyond the project")
    (project / "AGENTS.md").write_text("x")
    (project / "lib" / "CLAUDE.md").write_text("x")
    inner = str(project / "lib" / "part" / "AGENTS.md")
    assert named(project / "lib" / "part") == [inner]
    (project / ".git").mkdir()
    assert named(project / "lib" / "part") == [str(project / "AGENTS.md"), str(project / "lib" / "CLAUDE.md"), inner]
