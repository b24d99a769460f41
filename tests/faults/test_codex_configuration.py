"""B67: what Codex wants of its configuration stands in the file that reef writes.

An empty provider name ends Codex, a provider that nothing selects is ignored, the built-in ids cannot be overridden,
and only the responses wire form is left.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

from reef.harness.adapter import load_adapter, render
from reef.harness.binding import Served, binding, bound_environment, own_arguments, placeholders
from reef.harness.tree import Entry, Tree

CODEX = load_adapter("codex")
BUILT_IN = {"openai", "amazon-bedrock", "ollama", "lmstudio", "oss"}
HOME = Path("/a home/codex")
VALUES = placeholders(CODEX, Served("http://127.0.0.1:8900", "some/model", 8192), HOME, Path("/t"), Path("/p"))


def config(theirs: dict[str, Any] | None = None) -> dict[str, Any]:
    tree = Tree([Entry.parse("config", "config", {"data": theirs})] if theirs else [])
    return tomllib.loads(binding(CODEX, VALUES, render(tree, CODEX))["config.toml"].decode())


def test_the_provider_is_reefs_own_named_selected_and_speaks_the_one_wire_form_there_is() -> None:
    made = config()
    assert made["model"] == "some/model" and made["model_context_window"] == 8192
    chosen = made["model_provider"]
    assert chosen not in BUILT_IN and list(made["model_providers"]) == [chosen]
    provider = made["model_providers"][chosen]
    assert provider["name"] and provider["wire_api"] == "responses"
    assert provider["base_url"] == "http://127.0.0.1:8900/v1"
    # A server that is away is asked four times instead of thirty.
    assert provider["request_max_retries"] == provider["stream_max_retries"] == 1


def test_a_version_cannot_lead_codex_elsewhere_or_past_what_asks_the_person() -> None:
    made = config(
        {
            "model_provider": "openai",
            "model_providers": {"reef": {"base_url": "http://192.0.2.1/v1"}},
            "features": {"daemon_auto_start": True},
            "hide_agent_reasoning": True,
        }
    )
    assert (made["model_provider"], made["model_providers"]["reef"]["base_url"]) == ("reef", "http://127.0.0.1:8900/v1")
    assert made["features"]["daemon_auto_start"] is False and made["hide_agent_reasoning"] is True
    assert not {"approval_policy", "sandbox_mode", "projects"} & set(config())


def test_the_key_is_the_name_of_a_variable_in_the_file_and_in_the_arguments() -> None:
    values = VALUES | {"token": "a-secret", "rules": "be brief"}
    texts = [content.decode() for content in binding(CODEX, values).values()] + own_arguments(CODEX, values, True)
    assert not [text for text in texts if "a-secret" in text]
    assert config()["model_providers"]["reef"]["env_key"] == "REEF_SESSION"
    assert bound_environment(CODEX, values) == {"CODEX_HOME": str(HOME)}
    assert bound_environment(CODEX, values, alongside=True) == {}


def test_every_hook_that_reef_writes_is_trusted_by_its_own_hash_and_no_other_is() -> None:
    hooks = json.loads(binding(CODEX, VALUES)["hooks.json"])["hooks"]
    names = {"SessionStart": "session_start", "Stop": "stop", "UserPromptSubmit": "user_prompt_submit"}
    wanted = {}
    for event, groups in hooks.items():
        for index, group in enumerate(groups):
            (hook,) = group["hooks"]
            # How Codex 0.171 says what it trusts: every value that was left out at its default, keys in order.
            whole = {"event_name": names[event], "hooks": [hook | {"async": False, "timeout": 600}]}
            text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
            digest = hashlib.sha256(text.encode()).hexdigest()
            wanted[f"{HOME}/hooks.json:{names[event]}:{index}:0"] = {"trusted_hash": f"sha256:{digest}"}
    assert config()["hooks"] == {"state": wanted}


def test_arguments_over_the_persons_own_configuration_are_toml_whatever_the_rules_hold() -> None:
    rules = 'say "no"\n\ttab \\ \x7f [x] = {model} = "é" #'
    words = own_arguments(CODEX, VALUES | {"rules": rules}, alongside=True)
    assert words[::2] == ["-c"] * (len(words) // 2)
    made: dict[str, Any] = {}
    for word in words[1::2]:
        made |= tomllib.loads(word)
    assert made["developer_instructions"] == rules
    assert made["model_providers"] == config()["model_providers"]
    state = made["hooks"].pop("state")
    assert {key.rsplit(":", 3)[1] for key in state} == {"session_start", "stop", "user_prompt_submit"}
    assert {entry["trusted_hash"] for entry in state.values()} == {
        entry["trusted_hash"] for entry in config()["hooks"]["state"].values()
    }
