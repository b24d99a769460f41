"""The house rules that a reader would otherwise have to check: sizes, names, stubs, strange paths."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = ("reef", "recipes", "adapters")
TOP_LEVEL = {"reef", "recipes", "adapters", "tests", "pyproject.toml", "README.md", "install.sh", "LICENSE"}
FORBIDDEN_NAMES = {"utils", "helpers", "manager", "common", "util", "helper", "misc"}
TEXT = {".py", ".md", ".sh", ".toml", ".yaml", ".yml", ".tcss", ".txt", ".ts", ".svg", ""}


def tracked() -> list[Path]:
    """Every file of the tree that git knows or would take in, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(name) for name in found.stdout.splitlines() if (ROOT / name).is_file()]


def python_files(*rooms: str) -> list[Path]:
    """The Python files of the rooms."""
    return [path for path in tracked() if path.suffix == ".py" and path.parts[0] in rooms]


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function in a parsed file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a tracked file."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), str(path))


def test_files_stay_under_400_lines() -> None:
    long = {str(path): lines for path in python_files(*CODE) if (lines := _lines(path)) >= 400}
    assert not long


def _lines(path: Path) -> int:
    return (ROOT / path).read_text(encoding="utf-8").count("\n")


def test_functions_stay_under_60_lines() -> None:
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path in python_files(*CODE)
        for node in functions(parsed(path))
        if (node.end_lineno or 0) - node.lineno + 1 >= 60
    ]
    assert not long


def test_no_module_is_named_for_nothing_in_particular() -> None:
    strange = [str(path) for path in tracked() if FORBIDDEN_NAMES & {*path.parts[:-1], path.stem}]
    assert not strange


def test_every_module_says_why_it_exists() -> None:
    silent = [str(path) for path in python_files(*CODE, "tests") if not ast.get_docstring(parsed(path))]
    assert [path for path in silent if (ROOT / path).stat().st_size] == []


def test_nothing_is_left_undone() -> None:
    # The words are put together here so that this file does not find itself.
    marks = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
    found = [f"{path}:{number}" for path, number, line in lines_of_text() if marks.search(line)]
    stubs = [
        f"{path}:{node.lineno}"
        for path in python_files(*CODE)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)
    ]
    assert found + stubs == []


def test_no_handler_swallows_everything() -> None:
    swallowed = [
        f"{path}:{node.lineno}"
        for path in python_files(*CODE)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and all(isinstance(x, ast.Pass) for x in node.body)
    ]
    assert not swallowed


def _is_broad(node: ast.ExceptHandler) -> bool:
    return node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    absolute = re.compile(r"(?<![\w/.$}~-])/(work|farm|root|home/[a-z]+)/")
    found = [f"{path}:{number}: {line.strip()[:80]}" for path, number, line in lines_of_text() if absolute.search(line)]
    assert not found


def test_only_one_place_names_the_host_of_a_package_registry() -> None:
    # Everything else takes the registry from the person's own settings of pip, uv and npm.
    hosts = re.compile(r"pypi\.org|files\.pythonhosted|registry\.npmjs|registry\.yarnpkg")
    found = {str(path) for path, _, line in lines_of_text() if hosts.search(line) and path.parts[0] != "tests"}
    assert found <= {"reef/engines/index.py"}


def lines_of_text() -> Iterator[tuple[Path, int, str]]:
    """(file, line number, line) of every tracked text file but the licence."""
    for path in tracked():
        if path.suffix in TEXT and path.name != "LICENSE":
            text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.splitlines(), 1):
                yield path, number, line


def test_no_pattern_is_possessive_or_atomic() -> None:
    # Python 3.11.0 to 3.11.4, which Debian 12 has, matches these wrongly (gh-106052).
    possessive = re.compile(r"[^+\\(]\+\+(?!\+)|(?<!\\)(?:[*?]|\{[0-9]*,?[0-9]*\})\+|\(\?>")
    found = [
        f"{path}:{node.lineno}"
        for path in python_files(*CODE)
        if "import re\n" in (ROOT / path).read_text(encoding="utf-8")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        if possessive.search(node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
    ]
    assert not found


def test_the_top_level_holds_only_what_the_design_names() -> None:
    strange = {path.parts[0] for path in tracked()} - TOP_LEVEL
    assert {name for name in strange if not name.startswith(".")} == set()


@pytest.mark.parametrize("room", ["unit", "http", "cli", "tui", "harness", "recipes", "contracts", "e2e", "agents"])
def test_every_test_can_fail(room: str) -> None:
    idle = [
        f"{path}:{node.lineno} {node.name}"
        for path in python_files("tests")
        if len(path.parts) > 1 and path.parts[1] == room
        for node in functions(parsed(path))
        if node.name.startswith("test_")
        and not any(word in ast.dump(node) for word in ("Assert(", "raises", "assert_", "check_", "expect"))
    ]
    assert not idle
