"""Vendors behind litellm: who gets which key, and what is refused, all without litellm itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from reef.config import load, model_flags
from reef.engines.discovery import build
from reef.engines.litellm_engine import LitellmEngine
from reef.engines.litellm_worker import Worker, error_reply
from reef.errors import ConfigError, CredentialMissing
from reef.paths import Paths
from reef.providers import PROVIDERS

JOB = {"model": "bedrock/claude", "url": None, "timeout": 600, "key": "k"}
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret-of-amazon",
    "AWS_REGION": "eu-west-1",
    "OPENAI_API_KEY": "secret-of-openai",
    "GEMINI_API_KEY": "secret-of-google",
    "REEF_TOKEN": "secret-of-reef",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of the name is there; no test of this file imports it."""
    (tmp_path / "packages" / "litellm").mkdir(parents=True)
    (tmp_path / "packages" / "litellm" / "__init__.py").write_text("raise ImportError('not here')\n")
    monkeypatch.syspath_prepend(tmp_path / "packages")


def test_without_the_extra_the_command_that_installs_it_is_named(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    settings = load(model_flags("bedrock/claude"), paths=paths, environ={}).settings
    with pytest.raises(ConfigError, match="litellm, which is not installed") as caught:
        build(settings, paths)
    assert caught.value.hint == "./install.sh --with providers"


def test_a_vendors_name_before_the_slash_chooses_litellm_and_no_other_slash_does() -> None:
    for name in PROVIDERS:
        assert dict(model_flags(f"{name}/some/model")) == {
            "inference.backend": "litellm",
            "inference.upstream-url": "",
            "inference.upstream-model": f"{name}/some/model",
        }
    for model in ("meta-llama/Llama-3-8B", "bedrock/", "bedrock", "qwen3"):
        assert model_flags(model) == [("inference.upstream-model", model)]


def test_the_child_gets_the_variables_of_its_vendor_alone_and_its_job_holds_no_key(
    installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    engine = LitellmEngine("bedrock/claude")
    given = engine._environment()
    assert {name for name in KEYS if name in given} == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"}
    assert given["LITELLM_LOCAL_MODEL_COST_MAP"] == "True" and given["LITELLM_MODE"] == "PRODUCTION"
    assert not any(secret in json.dumps(engine._job()) for secret in KEYS.values())
    assert "secret-of-google" in LitellmEngine("gemini/flash")._environment().values()
    own = LitellmEngine("gemini/flash", key="my-own-key")._environment()
    assert own["GEMINI_API_KEY"] == "my-own-key" and "AWS_SECRET_ACCESS_KEY" not in own


async def test_a_missing_key_is_named_and_nothing_is_started(installed: None) -> None:
    engine = LitellmEngine("gemini/flash")
    await engine.start()
    assert engine.describe()["state"] == "failed" and engine.pid is None
    with pytest.raises(CredentialMissing, match="GEMINI_API_KEY is not set"):
        await engine.ready(1)


def test_an_address_of_another_model_is_not_sent_the_vendors_key(installed: None, paths: Paths) -> None:
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text("inference:\n  upstream-url: http://127.0.0.1:11434\n")
    settings = load(model_flags("bedrock/claude"), paths=paths, environ={}).settings
    engine = build(settings, paths)
    assert isinstance(engine, LitellmEngine) and engine._job()["url"] is None
    named = [*model_flags("bedrock/claude"), ("inference.upstream-url", "https://vpce.example")]
    engine = build(load(named, paths=paths, environ={}).settings, paths)
    assert isinstance(engine, LitellmEngine) and engine._job()["url"] == "https://vpce.example"


@pytest.mark.parametrize("model", [None, "claude", "openai/gpt"])
def test_a_backend_without_a_model_of_a_known_vendor_is_refused(paths: Paths, model: str | None) -> None:
    flags = [("inference.backend", "litellm"), *([("inference.upstream-model", model)] if model else [])]
    with pytest.raises(ConfigError):
        build(load(flags, paths=paths, environ={}).settings, paths)


@pytest.mark.parametrize("field", ["api_base", "base_url", "api_key", "extra_headers", "aws_region_name", "model_list"])
def test_no_call_says_where_the_key_is_sent(field: str) -> None:
    worker = Worker(None, JOB)
    with pytest.raises(ValueError, match=f"'{field}' cannot be carried to bedrock"):
        worker.arguments({"messages": [], field: "http://127.0.0.1:9"})


def test_a_call_names_models_of_its_own_vendor_only() -> None:
    worker = Worker(None, JOB)
    named = {"bedrock/other": "bedrock/other", "gemini/flash": "bedrock/claude", "m": "bedrock/claude"}
    for asked, wanted in named.items():
        found = worker.arguments({"messages": [], "model": asked, "temperature": 0, "store": False, "seed": None})
        assert found["model"] == wanted and found["temperature"] == 0 and "store" not in found
        assert (found["max_retries"], found["num_retries"]) == (0, 0) and "api_base" not in found


class _Raised(Exception):
    def __init__(self, status: object, message: str, headers: dict[str, str] | None) -> None:
        super().__init__(message)
        self.status_code, self.message, self.litellm_response_headers = status, message, headers


def test_what_litellm_raises_keeps_its_status_and_how_long_to_wait() -> None:
    reply = error_reply(_Raised(429, "too fast", {"retry-after": "7"}))
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")
    error = json.loads(reply.text or "")["error"]
    assert error == {"message": "too fast", "type": "rate_limit_error", "param": None, "code": None}
    assert error_reply(_Raised(None, "", None)).status == 500
    cut = error_reply(_Raised(400, "x does not support parameters: ['n']. To drop these, set `litellm…`", None))
    assert json.loads(cut.text or "")["error"]["message"] == "x does not support parameters: ['n']."


def test_the_help_names_every_vendor_and_its_usual_key() -> None:
    text = (Path(__file__).parents[3] / "reef/help/providers.md").read_text(encoding="utf-8")
    for provider in PROVIDERS.values():
        assert f"\n  {provider.name} " in text
        assert provider.secrets[0] in text
