"""How each agent is pointed at reef: by its wrapper, or as a person would do it, in each of its wire formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "fake-model"
WRAPPED = {
    "claude": (["-p", "--allowedTools=Bash"], ["--continue"]),
    "codex": (["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"], ["resume", "--last"]),
}
"""The agents that run through reef's own wrapper: arguments of a run, and of one that goes on with the last session."""


@dataclass
class Start:
    """One run of an agent without a person, ready to be started in a folder of its own."""

    arguments: list[str]
    """What follows the program; the prompt comes last."""
    again: list[str]
    """What stands before the prompt in a run that goes on with the last session."""
    environment: dict[str, str]


def point(agent: str, dialect: str, url: str, scenario: str, folder: Path) -> Start:
    """Write the configuration of one agent below `folder`, and say how it is started."""
    folder.mkdir(parents=True, exist_ok=True)
    return _POINTERS[agent](dialect, url, scenario, folder)


def _pi(dialect: str, url: str, scenario: str, folder: Path) -> Start:
    api = {"chat": "openai-completions", "responses": "openai-responses", "messages": "anthropic-messages"}[dialect]
    provider: dict[str, Any] = {
        "baseUrl": url if dialect == "messages" else f"{url}/v1",
        "api": api,
        "apiKey": "reef-local",
        "headers": {"x-reef-scenario": scenario},
        "models": [{"id": MODEL, "contextWindow": 32768, "maxTokens": 4096}],
    }
    if dialect == "chat":
        provider["compat"] = {"sendSessionAffinityHeaders": True}
    settings = {"defaultProvider": "reef", "defaultModel": MODEL, "defaultThinkingLevel": "off", "quietStartup": True}
    _json(folder / "models.json", {"providers": {"reef": provider}})
    _json(folder / "settings.json", settings)
    return Start(["-p"], ["--continue"], {"PI_CODING_AGENT_DIR": str(folder), "PI_OFFLINE": "1", "PI_TELEMETRY": "0"})


def _opencode(dialect: str, url: str, scenario: str, folder: Path) -> Start:
    driver = {"chat": "openai-compatible", "responses": "openai", "messages": "anthropic"}[dialect]
    provider = {
        "npm": f"@ai-sdk/{driver}",
        "options": {"baseURL": f"{url}/v1", "apiKey": "reef-local", "headers": {"x-reef-scenario": scenario}},
        "models": {MODEL: {"limit": {"context": 32768, "output": 4096}}},
    }
    config = {
        "model": f"reef/{MODEL}",
        "small_model": f"reef/{MODEL}",
        "share": "disabled",
        "autoupdate": False,
        "permission": {"bash": "allow", "edit": "allow"},
        "provider": {"reef": provider},
    }
    _json(folder / "opencode.json", config)
    environment = {"OPENCODE_CONFIG_DIR": str(folder)}
    for name in ("config", "data", "state", "cache"):
        environment[f"XDG_{name.upper()}_HOME"] = str(folder / name)
    switches = ("OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD")
    return Start(["run", "-m", f"reef/{MODEL}"], ["--continue"], environment | dict.fromkeys(switches, "1"))


_POINTERS: dict[str, Callable[[str, str, str, Path], Start]] = {
    "pi": _pi,
    "opencode": _opencode,
}


def _json(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value), encoding="utf-8")
