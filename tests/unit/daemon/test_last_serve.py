"""What is remembered of a start, and when it may be made again: never with less than the person chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from reef.config import load
from reef.daemon import last_serve
from reef.daemon.last_serve import describe, recall, settings_again
from reef.errors import ConfigError, CredentialMissing
from reef.paths import Paths

OLLAMA = [("inference.upstream-url", "http://127.0.0.1:11434"), ("inference.upstream-model", "qwen3")]
OPENAI = [("inference.upstream-url", "https://api.openai.com"), ("inference.upstream-model", "m")]


def remember(
    paths: Paths, flags: list[tuple[str, str]], environ: dict[str, str] | None = None, deployment: Path | None = None
) -> str:
    """Remember a start. Returns the file's text."""
    env = environ or {}
    describe(flags, deployment, load(flags, deployment, env, paths), env, paths).write(paths)
    return last_serve.file_of(paths).read_text()


def again(paths: Paths, environ: dict[str, str] | None = None) -> dict[str, object]:
    """The settings of the remembered start, made again."""
    found = recall(paths)
    assert found is not None
    rows = settings_again(found, environ or {}, paths).describe()
    return {row["key"]: row["value"] for row in rows}


def test_flags_variables_and_the_deployment_file_are_used_again(paths: Paths, tmp_path: Path) -> None:
    deployment = tmp_path / "reef.yaml"
    deployment.write_text("recipe:\n  implementation: reefine\n")
    remember(paths, [*OLLAMA, ("reef.port", "0")], {"REEF_PROPOSER": "model"}, deployment)
    assert last_serve.file_of(paths).stat().st_mode & 0o777 == 0o600
    made = again(paths)
    assert (made["inference.upstream-url"], made["inference.upstream-model"]) == (OLLAMA[0][1], "qwen3")
    assert (made["recipe.implementation"], made["harness.proposer"]) == ("reefine", "model")
    assert again(paths, {"REEF_PROPOSER": "verbatim"})["harness.proposer"] == "verbatim"


def test_a_home_without_a_start_remembers_none(paths: Paths) -> None:
    assert recall(paths) is None


@pytest.mark.parametrize(
    ("flags", "environ", "setting", "hint"),
    [
        ([*OLLAMA, ("inference.upstream-api-key", "hush")], {}, "inference.upstream-api-key", "REEF_UPSTREAM_API_KEY"),
        (OLLAMA, {"REEF_UPSTREAM_API_KEY": "hush"}, "inference.upstream-api-key", "REEF_UPSTREAM_API_KEY"),
        (OLLAMA, {"REEF_TOKEN": "hush"}, "reef.token", "REEF_TOKEN"),
        ([("inference.upstream-url", "http://me:hush@h/v1")], {}, "inference.upstream-url", "REEF_UPSTREAM_URL"),
        ([], {"REEF_UPSTREAM_URL": "http://h/v1?key=hush"}, "inference.upstream-url", "REEF_UPSTREAM_URL"),
    ],
)
def test_a_secret_is_named_and_not_kept_and_a_start_without_it_is_refused(
    paths: Paths, flags: list[tuple[str, str]], environ: dict[str, str], setting: str, hint: str
) -> None:
    text = remember(paths, flags, environ)
    assert "hush" not in text and f'"{setting}"' in text
    with pytest.raises(CredentialMissing) as refused:
        again(paths)
    assert (refused.value.exit_code, refused.value.hint) == (4, f"export {hint}=…")
    assert setting in refused.value.message
    again(paths, {hint: "http://h/again"})


def test_a_secret_without_a_variable_is_asked_for_as_a_flag(paths: Paths) -> None:
    text = remember(paths, [("reef.tokens", '["hush"]')])
    assert "hush" not in text
    with pytest.raises(CredentialMissing) as refused:
        again(paths)
    assert refused.value.hint == "reef up --reef.tokens=…"


def test_a_secret_that_the_settings_file_holds_is_not_missed(paths: Paths) -> None:
    remember(paths, [*OLLAMA, ("inference.upstream-api-key", "hush")])
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text("inference:\n  upstream-api-key: of-the-file\n")
    assert again(paths)["inference.upstream-api-key"] == "set"


@pytest.mark.parametrize("text", ["${MY_KEY}", "${MY_KEY:?}"])
def test_a_variable_that_a_deployment_file_took_its_key_from_is_missed(paths: Paths, tmp_path: Path, text: str) -> None:
    deployment = tmp_path / "reef.yaml"
    deployment.write_text(f"inference:\n  upstream-api-key: {text}\n")
    assert "hush" not in remember(paths, OLLAMA, {"MY_KEY": "hush"}, deployment)
    with pytest.raises(CredentialMissing) as refused:
        again(paths)
    assert (refused.value.hint or "").startswith("export ")
    again(paths, {"MY_KEY": "hush"})


def test_the_providers_own_variable_is_missed_only_where_that_provider_is_still_meant(paths: Paths) -> None:
    assert "hush" not in remember(paths, OPENAI, {"OPENAI_API_KEY": "hush"})
    with pytest.raises(CredentialMissing) as refused:
        again(paths)
    assert refused.value.hint == "export OPENAI_API_KEY=…"
    again(paths, {"OPENAI_API_KEY": "hush"})
    again(paths, {"REEF_UPSTREAM_API_KEY": "hush"})
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text("inference:\n  upstream-url: https://api.openai.com\n  upstream-model: m\n")
    remember(paths, [], {"OPENAI_API_KEY": "hush"})
    paths.config_file.write_text("inference:\n  upstream-url: http://127.0.0.1:11434\n")
    again(paths)


def test_auto_is_no_token(paths: Paths) -> None:
    remember(paths, [("reef.token", "auto")])
    assert again(paths)["reef.token"] == "set"


def test_a_start_that_can_no_longer_be_made_says_reef_up(paths: Paths, tmp_path: Path) -> None:
    deployment = tmp_path / "reef.yaml"
    deployment.write_text("{}\n")
    remember(paths, [], {}, deployment)
    deployment.unlink()
    with pytest.raises(ConfigError, match="the last reef up cannot be made again: there is no settings file") as gone:
        again(paths)
    assert gone.value.hint == "reef up"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"flags": 1, "deployment": null}'])
def test_a_file_that_cannot_be_read_is_named(paths: Paths, text: str) -> None:
    remember(paths, OLLAMA)
    last_serve.file_of(paths).write_text(text)
    with pytest.raises(ConfigError, match=r"last-serve\.json cannot be read"):
        recall(paths)
