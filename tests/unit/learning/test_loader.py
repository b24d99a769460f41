"""Recipes by path: what is there, what is wrong with it, and whose own hides whose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reef.errors import ConfigError, NotFound
from reef.learning.loader import load_recipe
from reef.learning.manifest import Manifest, known_recipes, manifest
from reef.paths import Paths

CLASS = "from reef.learning.recipe import *\nclass Own(Recipe):\n    pass\n"


def write(paths: Paths, code: str, name: str = "own", manifest_text: str | None = None) -> Path:
    folder = paths.config / "recipes" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(manifest_text or f'name = "{name}"\nhelp = "x"\n')
    (folder / "recipe.py").write_text(code)
    return folder


def test_the_bundled_recipes_are_there(paths: Paths) -> None:
    names = {found.name: found for _, found in known_recipes(paths) if isinstance(found, Manifest)}
    assert {"basic", "reefine"} <= names.keys()
    assert not names["basic"].takes_asks and names["basic"].surface == []
    assert names["reefine"].takes_asks and names["reefine"].surface == ["harness"]


def test_both_spellings_and_the_alias_find_a_recipe(paths: Paths) -> None:
    write(paths, CLASS, "two_words", 'name = "two-words"\nhelp = "x"\n')
    for name in ("two-words", "two_words"):
        assert type(load_recipe(name, {}, paths)).__name__ == "Own"
    assert manifest("harness-evolve", paths).name == "reefine"


def test_a_persons_own_recipe_hides_the_bundled_one(paths: Paths) -> None:
    write(paths, CLASS, "basic")
    assert type(load_recipe("basic", {}, paths)).__name__ == "Own"
    assert [
        found.help for _, found in known_recipes(paths) if isinstance(found, Manifest) and found.name == "basic"
    ] == ["x"]


def test_an_unknown_name_lists_the_known_ones(paths: Paths) -> None:
    with pytest.raises(NotFound, match="known: basic, reefine"):
        load_recipe("nonesuch", {}, paths)


def test_the_recipes_own_keys_are_checked_and_named(paths: Paths) -> None:
    assert load_recipe("reefine", {"max-tokens": 5}, paths).config.max_tokens == 5  # type: ignore[attr-defined]
    assert load_recipe("reefine", {"max_tokens": 5}, paths).config.max_tokens == 5  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"has no key 'max-token' \(keys: max-tokens\)"):
        load_recipe("reefine", {"max-token": 5}, paths)
    with pytest.raises(ConfigError, match=r"recipe.config.max-tokens"):
        load_recipe("reefine", {"max-tokens": "many"}, paths)
    with pytest.raises(ConfigError, match="keys: none"):
        load_recipe("basic", {"x": 1}, paths)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", "it holds none"),
        (CLASS + "class Two(Recipe): pass\n", "it holds Own, Two"),
        ("from reef.learning.recipe import Recipe\n", "it holds none"),
        ("class Own(:\n", r"recipe.py:1: "),
        ("import nonesuch_package\n", "No module named 'nonesuch_package'"),
        ("from reef.learning.recipe import Nonesuch\n", "cannot be imported"),
    ],
)
def test_a_recipe_that_cannot_be_used_is_named_with_its_fault(paths: Paths, code: str, reason: str) -> None:
    write(paths, code)
    with pytest.raises(ConfigError, match=reason) as caught:
        load_recipe("own", {}, paths)
    assert "own/recipe.py" in caught.value.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = 'own'\n", "help"),
        ("name = 'other'\nhelp = 'x'\n", "its folder is 'own'"),
        ("name = 'own'\nhelp = 'x'\nsurfce = []\n", "surfce"),
        ("name = 'own'\nhelp = 'x'\ninputs = ['mail']\n", "inputs.0"),
        ("name =", "cannot be read"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_named_with_its_fault(paths: Paths, text: str, reason: str) -> None:
    write(paths, CLASS, manifest_text=text)
    with pytest.raises(ConfigError, match=reason) as caught:
        manifest("own", paths)
    assert "recipe.toml" in caught.value.message


def test_a_recipe_without_code_is_named(paths: Paths) -> None:
    (write(paths, CLASS) / "recipe.py").unlink()
    with pytest.raises(ConfigError, match=r"the recipe has no .*recipe\.py"):
        load_recipe("own", {}, paths)


def test_the_daemons_side_of_learning_loads_no_recipe_and_no_http_client() -> None:
    code = (
        "import sys, reef.learning.supervisor\n"
        "print([n for n in ('httpx', 'reef.learning.loader', 'reef.evaluation.reach', 'torch') if n in sys.modules])"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"
