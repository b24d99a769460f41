"""Recipes and adapters are folders that anybody may write: they use public names only, and each explains itself."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("reef.learning", "reef.training", "reef.evaluation", "reef.harness")
BASE = ("reef.errors", "reef.ids", "reef.paths", "reef.config", "reef.text", "reef.events")
OUTSIDE = {"pydantic"}
# What stands in an adapter's `base` and `agent` runs inside the agent, with the agent's own modules and none of reef's.
INSIDE = ("base", "agent")
FILES = sorted(
    path
    for kind in ("recipes", "adapters")
    for path in (ROOT / kind).rglob("*.py")
    if kind == "recipes" or path.relative_to(ROOT / kind).parts[1] not in INSIDE
)


def imports(text: str) -> list[tuple[str, str | None]]:
    """(module, name) of every import in a file; name None for `import module`."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            found += [("." * node.level + (node.module or ""), alias.name) for alias in node.names]
    return found


def is_public(module: str, name: str | None) -> bool:
    """Whether a plug-in may import `name` from `module`."""
    if module.split(".")[0] in sys.stdlib_module_names or module.split(".")[0] in OUTSIDE:
        return True
    words = [*module.split("."), *([name] if name else [])]
    hidden = any(word.startswith("_") for word in words)
    room = any(module == room or module.startswith(f"{room}.") for room in (*ROOMS, *BASE))
    return room and not hidden


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_plug_in_imports_public_names_only(path: Path) -> None:
    strange = [found for found in imports(path.read_text(encoding="utf-8")) if not is_public(*found)]
    assert not strange


@pytest.mark.parametrize(
    "line",
    [
        "import reef.daemon",
        "from reef.learning import _private",
        "from reef.records.writer import Writer",
        "import torch",
    ],
)
def test_the_check_sees_what_a_plug_in_may_not_do(line: str) -> None:
    (found,) = imports(line)
    assert not is_public(*found)


def test_there_are_recipes_to_check() -> None:
    assert {"basic", "reefine"} <= {path.parent.name for path in FILES}


@pytest.mark.parametrize("kind", ["recipes", "adapters"])
def test_every_folder_names_itself_and_has_a_readme(kind: str) -> None:
    for folder in sorted(path for path in (ROOT / kind).iterdir() if path.is_dir() and path.name[:1] not in "._"):
        (manifest,) = folder.glob("*.toml")
        table = tomllib.loads(manifest.read_text(encoding="utf-8"))
        assert table["name"] == folder.name.replace("_", "-")
        assert (folder / "README.md").is_file(), f"{folder.name} has no README.md"
