"""Which engine answers when the settings name none: what the person confirmed of what is found, else the embedded one.

`python -m reef.engines.discovery --json` prints `{"found": [{"kind", "url", "model", "reason", "why_not",
"confirmed"}], "choice": {"kind", "url", "model", "reason"}, "reason"}`. `--confirm KIND` stores the person's yes to one
of the found and prints the same; `--confirm embedded` is a yes too. Only the loopback address is contacted; a provider
key is told by its variable's name, and neither sent nor printed nor stored.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reef.config import Settings
from reef.credentials import hold
from reef.engines import servers
from reef.engines.engine import CHAT, MESSAGES, RESPONSES, Engine, OnChange
from reef.engines.upstream import UpstreamEngine, base_address
from reef.engines.weights import SMOLLM2
from reef.errors import ConfigError, Failed, NotFound, ReefError
from reef.ids import utc_now
from reef.paths import Paths, write_atomic
from reef.providers import provider_of

PROVIDERS: tuple[tuple[str, str, str], ...] = (
    ("openai", "OPENAI_API_KEY", "https://api.openai.com/v1"),
    ("anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com/v1"),
    ("openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
    ("gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
    ("groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
    ("mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
    ("deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
    ("xai", "XAI_API_KEY", "https://api.x.ai/v1"),
    ("together", "TOGETHER_API_KEY", "https://api.together.xyz/v1"),
)
"""Kind, the variable that holds its key, and its OpenAI-shaped address."""

SPOKEN: dict[str, tuple[str, ...] | None] = {
    "auto": None,
    "openai": (CHAT,),
    "responses": (RESPONSES,),
    "anthropic": (MESSAGES,),
}
"""What a value of `inference.upstream-api` says of an upstream; None: it is asked."""


@dataclass(frozen=True)
class Found:
    """One thing that could answer calls on this machine or with this environment."""

    kind: str
    url: str | None
    model: str | None
    reason: str
    why_not: str | None = None
    key_env: str | None = None
    confirmed: bool = False

    def to_json(self) -> dict[str, Any]:
        """The object that the command prints."""
        return {
            "kind": self.kind,
            "url": self.url,
            "model": self.model,
            "reason": self.reason,
            "why_not": self.why_not,
            "confirmed": self.confirmed,
        }


EMBEDDED = Found("embedded", None, SMOLLM2.name, "nothing else was named or confirmed")


def search(environ: Mapping[str, str] | None = None, known: tuple[servers.Known, ...] = servers.KNOWN) -> list[Found]:
    """Model servers of this user on known ports, then provider keys in the environment."""
    env = os.environ if environ is None else environ
    found = [
        Found(
            server.kind,
            server.url,
            server.models[0] if server.models else None,
            f"it listens on {server.url} under your user",
            server.why_not,
        )
        for server in servers.find(known)
    ]
    for kind, variable, url in PROVIDERS:
        if env.get(variable):
            found.append(Found(kind, url, None, f"{variable} is set", key_env=variable))
    return found


def confirmed(paths: Paths) -> dict[str, Any] | None:
    """What the person said yes to: `{"kind", "url", "model", "key_env", "at"}`, or None. Raises ConfigError."""
    try:
        stored = json.loads((paths.state / "engine.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        stored = None
    if not isinstance(stored, dict) or not isinstance(stored.get("kind"), str):
        raise ConfigError(f"{paths.state / 'engine.json'} cannot be read", f"rm {paths.state / 'engine.json'}")
    return stored


def confirm(paths: Paths, kind: str, found: list[Found]) -> Found:
    """Store the person's yes to `kind`. Raises NotFound when it is not among `found` or may not be used."""
    usable = [item for item in [*found, EMBEDDED] if item.why_not is None]
    chosen = next((item for item in usable if item.kind == kind), None)
    if chosen is None:
        names = ", ".join(item.kind for item in usable)
        raise NotFound(f"{kind!r} is not among what was found ({names})", "reef up --model embedded")
    fact = {"kind": chosen.kind, "url": chosen.url, "model": chosen.model, "key_env": chosen.key_env, "at": utc_now()}
    write_atomic(paths.state / "engine.json", json.dumps(fact).encode())
    return chosen


def choose(paths: Paths, found: list[Found]) -> tuple[list[Found], Found]:
    """What was found, marked with the person's earlier yes, and the choice with its reason."""
    stored = confirmed(paths)
    if stored is None:
        return found, EMBEDDED
    reason = f"you chose it on {str(stored.get('at'))[:10]}"
    choice = Found(
        stored["kind"], stored.get("url"), stored.get("model"), reason, key_env=stored.get("key_env"), confirmed=True
    )
    marked = []
    for item in found:
        same = item.kind == choice.kind and item.url == choice.url
        why_not = item.why_not or (None if same else f"you chose {choice.kind}")
        marked.append(Found(item.kind, item.url, item.model, item.reason, why_not, item.key_env, same))
    return marked, choice


def build(settings: Settings, paths: Paths, on_change: OnChange | None = None) -> Engine:
    """The daemon's own engine, not started. Raises ConfigError when the settings name half of one."""
    from reef.engines.embedded import EmbeddedEngine

    inference = settings.inference
    secret = inference.upstream_api_key.get_secret_value() if inference.upstream_api_key else None
    _hold(secret)
    if inference.backend == "embedded":
        return EmbeddedEngine(paths, on_change)
    if inference.backend == "litellm":
        return _litellm(settings, secret, on_change)
    url, model, key_env = _upstream(settings, paths)
    if url is None and model is None and inference.backend == "auto":
        return EmbeddedEngine(paths, on_change)
    if url is None:
        what = f"model {model!r} is named" if model else "an upstream is asked for"
        raise ConfigError(f"{what} but no address", "--inference.upstream-url http://127.0.0.1:11434")
    variable = key_env or provider_variable(url)
    key = secret or (os.environ.get(variable) if variable else None)
    older, effort = inference.upstream_spellings == "older", inference.upstream_effort == "carried"
    return UpstreamEngine(url, model, key, on_change, key_env, SPOKEN[inference.upstream_api], older, effort)


def _litellm(settings: Settings, key: str | None, on_change: OnChange | None) -> Engine:
    from reef.engines.litellm_engine import LitellmEngine

    inference = settings.inference
    if inference.upstream_model is None:
        raise ConfigError("inference.backend is litellm but no model is named", "reef up --model bedrock/…")
    return LitellmEngine(inference.upstream_model, inference.upstream_url or None, key, inference.timeout_s, on_change)


def build_multimodal(settings: Settings) -> Engine | None:
    """What answers embeddings, images and speech instead of the engine; None when the settings name nothing."""
    inference = settings.inference
    if inference.multimodal_url is None:
        return None
    base_address(inference.multimodal_url, "inference.multimodal-url")
    key = inference.multimodal_api_key.get_secret_value() if inference.multimodal_api_key else None
    variable = provider_variable(inference.multimodal_url)
    return UpstreamEngine(inference.multimodal_url, None, key or (os.environ.get(variable) if variable else None))


def _hold(key: str | None) -> None:
    """Keep out of what is stored also the keys that this engine is not made with: an agent may print them."""
    hold(key)
    for _, variable, _ in PROVIDERS:
        hold(os.environ.get(variable))


def _upstream(settings: Settings, paths: Paths) -> tuple[str | None, str | None, str | None]:
    """Address, model and the variable of the key, as far as the settings or the person's earlier yes name them."""
    inference = settings.inference
    stored = confirmed(paths) if inference.upstream_url is None and inference.backend == "auto" else None
    if stored is not None and stored["kind"] != EMBEDDED.kind:
        return stored["url"], inference.upstream_model or stored.get("model"), stored.get("key_env")
    return inference.upstream_url, inference.upstream_model, None


def key_variable(settings: Settings, paths: Paths) -> str | None:
    """The variable that the daemon's own engine takes its provider's key from; None when from none."""
    if settings.inference.backend == "embedded":
        return None
    if settings.inference.backend == "litellm":
        provider = provider_of(settings.inference.upstream_model or "")
        return provider.secrets[0] if provider else None
    url, _, key_env = _upstream(settings, paths)
    return key_env or (provider_variable(url) if url else None)


def why_chosen(settings: Settings, origins: Mapping[str, str], paths: Paths) -> str:
    """Why the daemon's own engine is the one it is, in a few words."""
    inference = settings.inference
    if inference.backend != "auto" or inference.upstream_url is not None:
        key = "inference.backend" if inference.backend in ("embedded", "litellm") else "inference.upstream-url"
        return f"named by {origins.get(key, key)}"
    stored = confirmed(paths)
    return EMBEDDED.reason if stored is None else f"you chose it on {str(stored.get('at'))[:10]}"


def provider_variable(url: str) -> str | None:
    """The variable that holds the key of a known provider's own host; None for every other host."""
    host = base_address(url).hostname
    return next((variable for _, variable, address in PROVIDERS if base_address(address).hostname == host), None)


def main() -> None:
    """Print what is found and chosen; with `--confirm KIND` store the choice first."""
    parser = argparse.ArgumentParser(prog="python -m reef.engines.discovery", description="Look for model servers.")
    parser.add_argument("--json", action="store_true", help="print JSON (the only form)")
    parser.add_argument("--confirm", metavar="KIND", help="store the person's yes to one of the found")
    arguments = parser.parse_args()
    paths = Paths.from_environ()
    try:
        found = search()
        if arguments.confirm:
            confirm(paths, arguments.confirm, found)
        marked, choice = choose(paths, found)
    except (ReefError, OSError) as error:
        shown = error if isinstance(error, ReefError) else Failed(f"looking for model servers failed: {error}")
        sys.stderr.write(f"{shown.message}\n")
        sys.exit(shown.exit_code)
    told = {"found": [item.to_json() for item in marked], "choice": choice.to_json(), "reason": choice.reason}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
