"""What the settings choose by name is looked at before a daemon starts with it."""

from __future__ import annotations

import json
import os

import pytest

from reef.config import load
from reef.daemon.chosen import check_chosen
from reef.daemon.engine_room import parse_spec
from reef.daemon.starting import understand
from reef.errors import ConfigError, InvalidInput
from reef.harness.adapter import adapter_names
from reef.paths import Paths


def refused(paths: Paths, *flags: tuple[str, str]) -> ConfigError:
    with pytest.raises(ConfigError) as error:
        check_chosen(load(flags, paths=paths), os.environ, paths)
    assert error.value.hint
    return error.value


def own_recipe(paths: Paths, code: str) -> None:
    folder = paths.config / "recipes" / "own"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text('name = "own"\nhelp = "x"\n')
    (folder / "recipe.py").write_text(f"from reef.learning.recipe import *\n{code}\n")


def test_what_came_with_reef_is_whole(paths: Paths) -> None:
    check_chosen(load(paths=paths), os.environ, paths)
    flags = [("recipe.implementation", "reefine"), ("recipe.config.max-tokens", "100")]
    check_chosen(load(flags, paths=paths), os.environ, paths)


def test_an_adapter_that_is_not_there_is_named_with_its_place(paths: Paths) -> None:
    error = refused(paths, ("harness.adapter", "nope"))
    known = ", ".join(adapter_names(paths))
    assert error.message == f"harness.adapter: there is no adapter 'nope' (known: {known})"
    paths.config_file.write_text("harness:\n  adapter: nope\n")
    assert refused(paths).message.startswith(f"{paths.config_file}:2: harness.adapter: there is no adapter")


def test_an_adapter_that_cannot_be_read_is_named_by_its_file(paths: Paths) -> None:
    file = paths.config / "adapters" / "own" / "adapter.toml"
    file.parent.mkdir(parents=True)
    file.write_text("name = [")
    assert f"{file} cannot be read" in refused(paths, ("harness.adapter", "own")).message


def test_a_key_that_the_recipe_does_not_take_is_named(paths: Paths) -> None:
    reefine = ("recipe.implementation", "reefine")
    assert refused(paths, reefine, ("recipe.config.max-tokens", "abc")).message.startswith("recipe.config.max-tokens: ")
    assert "has no key 'most' (keys: max-tokens)" in refused(paths, reefine, ("recipe.config.most", "1")).message
    assert "has no key 'max-tokens' (keys: none)" in refused(paths, ("recipe.config.max-tokens", "1")).message


def test_a_recipe_whose_code_breaks_is_said_in_one_sentence_whatever_it_prints(paths: Paths) -> None:
    own_recipe(paths, 'print("{}")\nraise OSError("the disk is gone")')
    flags = (("recipe.implementation", "own"), ("recipe.config.x", "1"))
    assert refused(paths, *flags).message == "recipe own cannot be loaded: OSError: the disk is gone"


@pytest.mark.parametrize("url", ["http://[::1", "http://", "ftp://x", "http://127.0.0.1:99999"])
def test_what_is_no_address_is_refused_before_it_is_remembered(paths: Paths, url: str) -> None:
    wanted = {"flags": [["inference.upstream-url", url], ["inference.upstream-model", "m"]]}
    with pytest.raises(ConfigError, match=r"inference\.upstream-url") as refused:
        understand(wanted, os.environ, paths)
    assert refused.value.exit_code == 2 and refused.value.hint
    spec = json.dumps({"url": url})
    with pytest.raises(InvalidInput, match="is not an http address"):
        parse_spec(spec)


def test_a_recipe_that_is_no_toml_is_named_by_its_file(paths: Paths) -> None:
    file = paths.config / "recipes" / "own" / "recipe.toml"
    file.parent.mkdir(parents=True)
    file.write_text("name = [")
    with pytest.raises(ConfigError, match=r"recipe\.toml cannot be read"):
        load([("recipe.implementation", "own")], paths=paths)
