"""What the settings choose must be there and whole before a daemon starts with it: adapter, recipe, model server."""

from __future__ import annotations

from collections.abc import Mapping

from reef.config import Resolved
from reef.engines.upstream import base_address
from reef.errors import ConfigError, NotFound, ReefError
from reef.harness.adapter import load_adapter
from reef.learning.check import check_keys
from reef.learning.manifest import manifest
from reef.paths import Paths


def check_chosen(resolved: Resolved, environ: Mapping[str, str], paths: Paths) -> None:
    """Raises ConfigError that names the setting and its place."""
    settings = resolved.settings
    if settings.inference.upstream_url:
        base_address(settings.inference.upstream_url)
    try:
        load_adapter(settings.harness.adapter, paths)
    except NotFound as error:
        raise _at("harness.adapter", error, resolved) from None
    try:
        manifest(settings.recipe.implementation, paths)
    except NotFound as error:
        raise _at("recipe.implementation", error, resolved) from None
    if settings.recipe.config:
        # Only then: a recipe's keys are known to its code, and to run that takes a process.
        check_keys(settings.recipe.implementation, settings.recipe.config, environ)


def _at(key: str, error: ReefError, resolved: Resolved) -> ConfigError:
    place = resolved.origins.get(key, "default")
    shown = "" if place in ("flag", "default") else f"{place}: "
    return ConfigError(f"{shown}{key}: {error.message}", error.hint)
