"""The recipes that come with reef: what they take, what they make, and that their examples can be served."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from reef.config import load
from reef.learning.loader import load_recipe
from reef.learning.recipe import AskInput, ReportInput
from reef.paths import Paths, bundled

RECIPES = sorted(path.parent for path in bundled("recipes").glob("*/recipe.toml"))
PUBLIC = ("reef.learning", "reef.training", "reef.evaluation", "reef.harness")
BASE = ("reef.errors", "reef.ids", "reef.paths", "reef.config", "reef.text", "reef.events")


def ask(number: int) -> AskInput:
    return AskInput(f"{number:032x}", number, f"ask {number}")


def report() -> ReportInput:
    return ReportInput("f" * 32, 0.0, None, (), {}, "person")


def test_basic_takes_nothing(paths: Paths) -> None:
    recipe = load_recipe("basic", {}, paths)
    assert [recipe.eligible(item) for item in (ask(1), report())] == [None, None]
    assert recipe.batch([]) is None


def test_reefine_takes_the_oldest_ask_and_no_report(paths: Paths) -> None:
    recipe = load_recipe("reefine", {}, paths)
    assert recipe.eligible(report()) is None
    samples = [sample for number in (4, 5) if (sample := recipe.eligible(ask(number)))]
    batch = recipe.batch(samples)
    assert batch is not None and batch.inputs == [ask(4).id]
    assert recipe.batch([]) is None


@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_a_recipe_is_explained_and_its_examples_are_valid_settings(folder: Path, paths: Paths) -> None:
    assert (folder / "README.md").read_text().startswith(f"# {folder.name.replace('_', '-')}\n")
    examples = sorted(folder.glob("examples/*/serve.yaml"))
    assert examples
    for example in examples:
        settings = load([], example, {}, paths).settings
        assert settings.recipe.implementation == folder.name.replace("_", "-")
        load_recipe(settings.recipe.implementation, settings.recipe.config, paths)
        assert f"(examples/{example.parent.name}/serve.yaml)" in (folder / "README.md").read_text()


@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_a_recipe_uses_public_names_only(folder: Path) -> None:
    for node in ast.walk(ast.parse((folder / "recipe.py").read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert name is not None
            if name.startswith("reef"):
                assert name in BASE or name.startswith(PUBLIC), f"{folder.name} imports {name}"
