"""What holds for every adapter folder: it says all that reef needs, and what it says is sound."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from reef.harness import frontmatter
from reef.harness.adapter import adapter_names, base_entries, load_adapter, render
from reef.harness.adapter_file import Adapter
from reef.harness.admission import admit, code_reasons
from reef.harness.binding import (
    Served,
    Value,
    binding,
    bound_environment,
    filled,
    headless_arguments,
    own_arguments,
    placeholders,
)
from reef.harness.formats import formatted, parsed
from reef.harness.tree import KINDS, Change, Entry, Tree

HOME, TREE, WORK = Path("/a home/agent"), Path("/a home/tree"), Path("/work")
TOKEN = "rs-a1B2c3D4e5F6g7H8i9J0"
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
PROGRAM = "# /// tool\n# description: Count\n# ///\n# /// hook\n# events: [turn_end]\n# ///\n"
TEXTS = {
    "rules": "Say it in a few words.",
    "skill": "---\ndescription: How it is shipped\n---\nCall first.\n",
    "agent_command": "Greet $ARGUMENTS.\n",
    "code_extension": "x\n",
    "tool": PROGRAM,
    "hook": PROGRAM,
    "agent": "---\ndescription: Looks things up\n---\nLook it up.\n",
}
GRAPH = {"description": "two", "nodes": [{"id": "a", "prompt": "x"}], "edges": []}

NAMES = adapter_names()


@pytest.fixture(params=NAMES)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return load_adapter(request.param)


def values(adapter: Adapter) -> dict[str, Value]:
    served = Served("http://127.0.0.1:8900", "some/model", 8192, 1024)
    return placeholders(adapter, served, HOME, TREE, WORK)


def run_values(adapter: Adapter) -> dict[str, Value]:
    """With what a wrapper adds."""
    return values(adapter) | {"token": TOKEN, "alongside": str(HOME), "rules": "be brief"}


def one_of(kind: str, adapter: Adapter) -> list[Entry]:
    """An entry of the kind in every form that the adapter takes."""
    if kind == "config":
        return [Entry.parse(target, kind, {"data": {"a": {"b": 1}}}) for target in adapter.render.config]
    if kind == "graph":
        return [Entry.parse(f"my-{kind}", kind, {"data": GRAPH})]
    exts = adapter.render.extensions.allowed if kind in ("code_extension", "tool", "hook") else [None]
    name = f"my-{kind.replace('_', '-')}"
    more = [{} if ext is None else {"ext": ext} for ext in exts]
    return [Entry.parse(f"{name}-{at}", kind, {"text": TEXTS[kind], **config}) for at, config in enumerate(more)]


def everything(adapter: Adapter) -> Tree:
    return Tree(entry for kind in adapter.kinds for entry in one_of(kind, adapter))


def test_the_adapters_that_reef_promises_are_there() -> None:
    assert {"pi", "claude", "codex", "opencode", "hermes", "native"} <= set(NAMES)


def test_every_kind_that_it_has_a_place_for_is_rendered_below_its_home(adapter: Adapter) -> None:
    bare = render(Tree([]), adapter)
    assert {"rules", "skill"} <= set(adapter.kinds) <= set(KINDS)
    for kind in adapter.kinds:
        for entry in one_of(kind, adapter):
            made = render(Tree([entry]), adapter)
            assert made != bare, f"{kind} is not rendered"
            for path in made:
                assert not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
                assert "{" not in path
    assert render(base_entries(adapter), adapter) is not None


def test_two_entries_never_share_a_file_but_rules(adapter: Adapter) -> None:
    kinds = [kind for kind in adapter.kinds if kind not in ("rules", "config")]
    single = [len(set(render(Tree([entry]), adapter)) - set(render(Tree([]), adapter)))
              for kind in kinds for entry in one_of(kind, adapter)]  # fmt: skip
    tree = Tree(entry for kind in kinds for entry in one_of(kind, adapter))
    assert len(render(tree, adapter)) - len(render(Tree([]), adapter)) == sum(single)


def test_front_matter_that_it_renders_reads_back_with_all_that_the_agent_wants(adapter: Adapter) -> None:
    for kind in {"skill", "agent_command"} & set(adapter.kinds):
        (entry,) = one_of(kind, adapter)
        place = adapter.render.places[kind].replace("{id}", entry.id)
        found, body = frontmatter.read(render(Tree([entry]), adapter)[place].decode())
        wanted = adapter.render.front_matter.get(kind, [])
        assert all(frontmatter.field(found, key) for key in wanted) and body.strip()
        if "name" in wanted:
            assert frontmatter.field(found, "name") == entry.id


def test_texts_that_are_there_in_every_version_have_front_matter_that_reads_back(adapter: Adapter) -> None:
    for path, text in adapter.render.files.items():
        if path.endswith(".md"):
            found, body = frontmatter.read(text)
            assert frontmatter.field(found, "description") and body.strip(), path


def test_every_file_that_reef_writes_parses_back_and_holds_no_key(adapter: Adapter) -> None:
    rendered = render(everything(adapter), adapter)
    filled_in = run_values(adapter)
    made = binding(adapter, filled_in, rendered)
    made |= {f"seed/{path}": formatted(path, filled(seed, filled_in)) for path, seed in adapter.home.seed.items()}
    if adapter.alongside is not None:
        pairs = adapter.alongside.binding.items()
        made |= {f"alongside/{path}": formatted(path, filled(content, filled_in)) for path, content in pairs}
    for path, content in made.items():
        again = parsed(path, content)
        assert formatted(path, again) == content, path
        assert TOKEN not in content.decode(), path
    for path, content in rendered.items():
        for foreign in (TOKEN, "127.0.0.1", "some/model"):
            assert foreign not in content.decode(), path


def test_a_version_cannot_change_what_points_the_agent_at_reef(adapter: Adapter) -> None:
    for target, path in adapter.render.config.items():
        bound = filled(adapter.binding.get(path, {}), values(adapter) | {"extensions": []})
        hostile = Entry.parse(target, "config", {"data": _turned(bound) or {"a": 1}})
        made = parsed(path, binding(adapter, values(adapter), render(Tree([hostile]), adapter)).get(path, b"{}"))
        for keys, value in _leaves(bound):
            at: Any = made
            for key in keys:
                at = at[key]
            assert at == value, (path, keys)


def test_every_placeholder_is_known(adapter: Adapter) -> None:
    known = {*run_values(adapter), *adapter.digests, "extensions"}
    more = {"run.headless": {"prompt"}, "run.command": {"id", "words"}, "alongside": set(), "resume": {"session"}}
    places: dict[str, Any] = {
        "run.headless": adapter.run.headless,
        "run.command": adapter.run.command,
        "run.arguments": adapter.run.arguments,
        "run.bound": adapter.run.bound,
        "home.variables": adapter.home.variables,
        "home.seed": adapter.home.seed,
        "digests": adapter.digests,
        "binding": adapter.binding,
        "defaults": adapter.defaults,
        "resume": adapter.resume.arguments if adapter.resume else [],
        "alongside": adapter.alongside.model_dump() if adapter.alongside else {},
    }
    for place, value in places.items():
        found = {match for text in _strings(value) for match in PLACEHOLDER.findall(text)}
        assert found <= known | more.get(place, set()), place
    templates = {word for text in adapter.render.places.values() for word in PLACEHOLDER.findall(text)}
    assert templates <= {"id", "ext"}


def test_its_home_is_reefs_own_and_a_key_is_in_the_environment_alone(adapter: Adapter) -> None:
    environment = bound_environment(adapter, run_values(adapter))
    assert environment[adapter.home_variable] == str(HOME)
    for variable in adapter.home.variables:
        # A switch is no path.
        assert environment[variable].startswith((str(HOME), "1")), variable
    for name, value in environment.items():
        assert not PLACEHOLDER.search(value), name
    # Arguments are in every list of processes.
    said = headless_arguments(adapter, "hi", run_values(adapter), set())
    said += own_arguments(adapter, run_values(adapter), alongside=True)
    assert not [word for word in said if TOKEN in word]
    assert "hi" in " ".join(said)


def test_no_tree_over_its_limits_is_admitted_and_the_refusal_names_the_bytes(adapter: Adapter) -> None:
    limits = adapter.limits
    assert limits.rules_bytes <= 65536 and limits.entry_bytes <= 65536
    half = limits.rules_bytes // 2
    rules = [{"op": "create", "id": f"r{at}", "kind": "rules", "config": {"text": chr(97 + at) * (half + 8)}}
             for at in range(2)]  # fmt: skip
    refused = admit(Tree([]), rules, adapter)
    assert not refused.ok and re.search(r"\d{4,}", refused.detail)
    assert admit(Tree([]), rules[:1], adapter).ok


def test_a_plain_rule_skill_and_command_are_no_code_and_a_shell_call_is(adapter: Adapter) -> None:
    for kind in {"rules", "skill", "agent_command"} & set(adapter.kinds):
        (entry,) = one_of(kind, adapter)
        assert code_reasons(Change("create", None, entry), adapter) == [], kind
    for pattern in adapter.code.shell_interpolation:
        re.compile(pattern)
        called = Entry.parse("s", "skill", {"text": "---\nname: s\n---\nSee !`date` here\n\n```!\ndate\n```\n"})
        assert code_reasons(Change("create", None, called), adapter), pattern


def test_it_names_one_version_by_hash_and_tells_a_person_what_it_does(adapter: Adapter) -> None:
    text = (adapter.folder / "README.md").read_text(encoding="utf-8")
    spec = adapter.install
    assert len(text) > 400
    if spec is None or spec.kind == "ships":
        return
    assert spec.binary_path and spec.package in text
    if spec.kind == "npm":
        package = json.loads((adapter.folder / "package.json").read_text(encoding="utf-8"))
        assert package["dependencies"] == {spec.package: spec.version} and package["version"] == spec.version
        lock = json.loads((adapter.folder / "package-lock.json").read_text(encoding="utf-8"))
        rows = {name: row for name, row in lock["packages"].items() if name}
        assert rows[f"node_modules/{spec.package}"]["version"] == spec.version
        assert all(row.get("integrity", "").startswith("sha512-") for row in rows.values())
        assert not [name for name, row in rows.items() if "resolved" in row]
    else:
        lines = (adapter.folder / "requirements.lock").read_text(encoding="utf-8")
        assert re.search(rf"(?mi)^{re.escape(spec.package)}==" + re.escape(spec.version), lines)
        assert "--hash=sha256:" in lines and "://" not in lines


def test_sessions_that_can_be_gone_on_with_can_be_read_back(adapter: Adapter) -> None:
    if adapter.resume is None:
        return
    assert adapter.transcript is not None
    place = PurePosixPath(adapter.transcript.path)
    assert not place.is_absolute() and ".." not in place.parts
    assert importlib.util.find_spec(f"reef.transcripts.{adapter.name}") is not None


def _turned(value: Any) -> Any:
    """The same keys with other values."""
    if isinstance(value, Mapping):
        return {key: _turned(item) for key, item in value.items()}
    return "hostile"


def _leaves(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*at, key))
    else:
        yield at, value


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
