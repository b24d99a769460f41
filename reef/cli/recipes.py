"""`reef recipes`: what ways to learn there are, read from their folders."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from reef.cli import output
from reef.cli.group import JsonOption, command, noun
from reef.cli.look import ERR, OUT
from reef.paths import Paths, search

app = noun("List the recipes. A recipe is how a scenario learns.", "reef recipes list", "reef recipes list --json")


@command(app, "list", examples=("reef recipes list", "reef recipes list --json"))
def list_recipes(json: JsonOption = False) -> None:
    """List the recipes.

    Those that came with reef, and your own from the `recipes` folder beside config.yaml, which win over one of the same
    name. `reef help recipes` says how to write one.
    """
    paths = Paths.from_environ()
    rows: dict[str, dict[str, Any]] = {}
    for folder in search("recipes", paths):
        origin = "yours" if folder == paths.config / "recipes" else "reef"
        for file in sorted(folder.glob("*/recipe.toml")):
            row = _row(file, origin)
            rows.setdefault(row["name"], row)
    found = [rows[name] for name in sorted(rows)]
    if json:
        output.json_value(found)
        return
    cells = [[OUT.line(row["name"]), OUT.line(row["surface"]), row["origin"], OUT.line(row["help"])] for row in found]
    for line in OUT.table(["recipe", "changes", "from", "what it does"], cells):
        output.data(line)
    for row in found:
        if row["problem"]:
            output.say(f"{ERR.paint('warning:', 'needs')} {ERR.line(row['problem'])}")


def _row(file: Path, origin: str) -> dict[str, Any]:
    table: dict[str, Any] = {}
    problem = None
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problem = f"{file} cannot be read: {error}"
    name = str(table.get("name") or file.parent.name.replace("_", "-"))
    surface = table.get("surface")
    shown = "+".join(str(part) for part in surface) if isinstance(surface, list) else str(surface or "nothing")
    if problem is not None:
        shown = "broken"
    return {
        "name": name,
        "surface": shown,
        "help": str(table.get("help") or ""),
        "origin": origin,
        "path": str(file.parent),
        "problem": problem,
    }
