"""The README promises only what is there: its commands parse, its files exist, its order is kept."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from reef import errors
from reef.config import load, model_flags
from reef.paths import Paths
from tests.contracts.commands import problem, split, unknown_words

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HELP = sorted((ROOT / "reef" / "help").glob("*.md"))


def blocks(kind: str) -> list[str]:
    """The fenced blocks of one kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def typed() -> list[str]:
    """Every command line of the README: all of a `sh` block, what follows `$ ` in a `console` block."""
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    return lines + [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]


def quoted(text: str) -> list[str]:
    """Commands that a text names between backticks."""
    return re.findall(r"`((?:reef|reef-pi|\./install\.sh)(?: [^`]*)?)`", text)


@pytest.mark.parametrize("line", typed())
def test_a_command_of_the_readme_exists(line: str) -> None:
    assert [found for command in split(line) if (found := problem(command))] == []


@pytest.mark.parametrize("line", sorted(set(quoted(README))))
def test_a_command_named_in_the_readmes_prose_exists(line: str) -> None:
    if line not in ("reef", "reef tui"):
        assert [found for command in split(line) if (found := problem(command))] == []


def test_the_readme_has_the_two_set_up_commands_in_its_first_block() -> None:
    assert blocks("sh")[0].split("\n")[:2] == ["./install.sh quickstart", "./install.sh test"]


def test_the_readmes_lines_for_the_settings_file_name_the_model_of_its_example(paths: Paths) -> None:
    (lines,) = blocks("yaml")
    paths.config_file.write_text(lines)
    kept, typed_flags = load(paths=paths, environ={}).settings, dict(model_flags("ollama/qwen3"))
    assert kept.inference.upstream_url == typed_flags["inference.upstream-url"]
    assert kept.inference.upstream_model == typed_flags["inference.upstream-model"]


def test_the_readme_keeps_its_order() -> None:
    headings = re.findall(r"^## (.*)$", README, re.MULTILINE)
    assert headings == [
        "Set up",
        "From nothing to a first improved version",
        "Your agent",
        "From a program",
        "Where your data lives",
        "Privacy",
        "Platforms",
        "Take it back",
        "License",
    ]
    assert README.index("![") < README.index("## Set up")


def test_the_readme_shows_what_the_quickstart_prints() -> None:
    (shown,) = [block for block in blocks("console") if block.startswith("$ ./install.sh quickstart\n")]
    steps = [line.split("  ")[0] for line in shown.splitlines() if re.match(r"[1-4] |proof ", line)]
    assert steps == ["1 serve", "2 observe", "3 grow", "4 commit", "proof"]
    assert max(len(line) for line in shown.splitlines()) <= 120


def test_the_picture_is_there_and_loads_nothing_from_elsewhere() -> None:
    (place,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    picture = (ROOT / place).read_text(encoding="utf-8")
    assert picture.startswith("<svg")
    assert "quickstart" in picture
    assert re.findall(r"(?:url|href|src)\s*[=(]\s*[\"']?https?:", picture) == []


def test_the_python_snippet_is_a_program() -> None:
    (snippet,) = blocks("python")
    imported = {
        alias.name for node in ast.walk(ast.parse(snippet)) if isinstance(node, ast.Import) for alias in node.names
    }
    assert imported == {"os", "httpx"}
    assert "`pip install httpx`" in README


@pytest.mark.parametrize("page", HELP, ids=lambda page: page.name)
def test_the_commands_of_a_help_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    examples = text.partition("\nExamples:\n")[2].splitlines()
    wrong = [found for line in examples for command in split(line) if (found := problem(command))]
    assert wrong + [found for line in quoted(text) for found in unknown_words(line)] == []


def test_every_hint_in_the_code_names_a_command_that_exists() -> None:
    wrong = []
    for path in sorted((ROOT / "reef").rglob("*.py")):
        for hint in hints(ast.parse(path.read_text(encoding="utf-8"))):
            wrong += [f"{path.relative_to(ROOT)}: {found}" for found in unknown_words(hint)]
    assert wrong == []


def hints(tree: ast.Module) -> list[str]:
    """The beginning of every second argument of a raised or returned error of reef's own."""
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in kinds
            and len(node.args) > 1
        ):
            first = node.args[1].values[0] if isinstance(node.args[1], ast.JoinedStr) else node.args[1]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.append(first.value)
    return found
