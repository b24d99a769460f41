"""`recipe.toml`: what reef knows of a recipe without running it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reef.config import recipe_folder
from reef.errors import ConfigError, ReefError
from reef.paths import Paths, search


class Manifest(BaseModel):
    """The whole of a `recipe.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """Kebab-case; its folder has the same name in snake_case."""
    help: str
    """One line."""
    surface: list[Literal["harness", "weights"]] = []
    """What it changes; nothing for a recipe that only records."""
    inputs: list[Literal["asks", "proposals", "reports"]] = []
    """What it learns from."""
    needs: list[str] = []
    """Extras that must be installed."""
    paper: str | None = None
    policy: str = "reach"
    """Decision policy when the settings name none."""
    profile: dict[str, Any] = Field(default_factory=dict)
    """Settings that differ from the defaults while this recipe is the daemon's."""

    @property
    def takes_asks(self) -> bool:
        """Whether `POST /reef/train` and `reef ask` are for it."""
        return "asks" in self.inputs


def read_manifest(folder: Path) -> Manifest:
    """The manifest in `folder`. Raises ConfigError that names the file and the key."""
    file = folder / "recipe.toml"
    try:
        found = Manifest.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "reef recipes list") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{file}: {key}: {first['msg'][:1].lower()}{first['msg'][1:]}", "reef recipes list") from None
    if found.name.replace("-", "_") != folder.name:
        raise ConfigError(f"{file} names the recipe {found.name!r}, its folder is {folder.name!r}", f"mv {folder} …")
    return found


def manifest(name: str, paths: Paths) -> Manifest:
    """The manifest of recipe `name`. Raises NotFound, ConfigError."""
    return read_manifest(recipe_folder(name, paths))


def known_recipes(paths: Paths) -> list[tuple[Path, Manifest | ReefError]]:
    """Every recipe by name: its folder and its manifest, or what is wrong with it. The user's own hide bundled ones."""
    folders: dict[str, Path] = {}
    for place in search("recipes", paths):
        for file in place.glob("*/recipe.toml"):
            folders.setdefault(file.parent.name, file.parent)
    found: list[tuple[Path, Manifest | ReefError]] = []
    for name in sorted(folders):
        try:
            found.append((folders[name], read_manifest(folders[name])))
        except ReefError as error:
            found.append((folders[name], error))
    return found
