"""Loads the one class of a `recipe.py` by its path. Only the step's own process runs recipe code."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from reef.config import recipe_folder
from reef.errors import ConfigError
from reef.learning.recipe import Recipe
from reef.paths import Paths


def load_recipe(name: str, config: Mapping[str, Any], paths: Paths) -> Recipe:
    """The recipe `name` with its own keys checked.

    Raises NotFound for an unknown name, ConfigError that names the file or the key for everything that is wrong in it.
    """
    folder = recipe_folder(name, paths)
    kind = _only_class(_load(folder / "recipe.py"), folder / "recipe.py")
    try:
        checked = kind.Config.model_validate(dict(config))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(field.replace("_", "-") for field in kind.Config.model_fields)) or "none"
            raise ConfigError(f"recipe {name} has no key {key!r} (keys: {known})", "reef recipes list") from None
        reason = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise ConfigError(f"recipe.config.{key}: {reason}", "reef config show") from None
    return kind(checked)


def _load(file: Path) -> ModuleType:
    if not file.is_file():
        raise ConfigError(f"the recipe has no {file}", "reef recipes list")
    name = f"reef_recipe_{file.parent.name}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pydantic look their own module up by its name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        raise ConfigError(f"{file}:{error.lineno}: {error.msg}", "reef recipes list") from None
    except ImportError as error:
        del sys.modules[name]
        raise ConfigError(f"{file} cannot be imported: {error}", "reef recipes list") from error
    return module


def _only_class(module: ModuleType, file: Path) -> type[Recipe]:
    found = [
        kind
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, Recipe) and kind.__module__ == module.__name__
    ]
    if len(found) != 1:
        names = ", ".join(kind.__name__ for kind in found) or "none"
        raise ConfigError(f"{file} must hold exactly one recipe class, it holds {names}", "reef recipes list")
    return found[0]
