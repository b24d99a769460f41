"""Settings: one schema, five layers, and for each value where it came from.

Precedence: flag > `REEF_*` variable > deployment file (`-c`) > the user's `config.yaml` > the recipe's profile >
default. Hyphen and underscore are the same in a key. Unknown keys, duplicate keys and wrong types are refused with the
file, the line and the nearest key. Secrets are `SecretStr`: they never appear in `describe`, in a log or in an error.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from reef.errors import ConfigError, NotFound
from reef.layers import Layer, from_pairs, merge, read_file
from reef.paths import Paths, search
from reef.providers import provider_of

DEFAULT_PORT = 8900


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True
    )


class ReefSection(_Section):
    """The daemon's own address and who may talk to it."""

    host: str = "127.0.0.1"
    """Address to bind; anything but loopback needs a token."""
    port: int = Field(DEFAULT_PORT, ge=0, le=65535)
    """Port to bind; 0 lets the system choose. The default moves on when taken, a port that was set does not."""
    token: SecretStr | None = None
    """Token that every route but `/healthz` then needs; `auto` makes one."""
    tokens: list[SecretStr] = []
    """More tokens that are accepted."""
    allowed_hosts: list[str] = []
    """Names accepted in `Host` besides loopback; needs a token."""
    console_origins: list[str] = []
    """Browser origins that may call; none by default."""
    allow_implicit_scenario_creation: bool = True
    """Whether a new name on a model call creates the scenario."""
    ready_timeout: float = Field(30, gt=0)
    """Seconds that a start may take until `/healthz` answers."""


class InferenceSection(_Section):
    """What answers model calls."""

    backend: Literal["auto", "upstream", "embedded", "litellm"] = "auto"
    """Which kind of engine; `auto` decides from the other keys and from what runs on this machine.

    `litellm` is for vendors that speak no dialect of reef's; `upstream-model` then names one, as in `bedrock/…`."""
    upstream_url: str | None = None
    """Base address of the model server, with or without `/v1`."""
    upstream_model: str | None = None
    """Model id that the upstream is asked for when a call names none."""
    upstream_api_key: SecretStr | None = None
    """Key for the upstream; sent there and nowhere else. Best set as `REEF_UPSTREAM_API_KEY`."""
    upstream_api: Literal["auto", "openai", "responses", "anthropic"] = "auto"
    """The one protocol that the upstream speaks; `auto` asks it which ones it does."""
    upstream_spellings: Literal["as-sent", "older"] = "as-sent"
    """`older`: chat's role `developer` and `max_completion_tokens` reach it as `system` and `max_tokens`."""
    upstream_effort: Literal["left-out", "carried"] = "left-out"
    """`carried`: the effort of reasoning that Claude Code and Codex send reaches it in a translated call."""
    multimodal_url: str | None = None
    """Address that answers embeddings, images, speech and decisions; without it the upstream does."""
    multimodal_api_key: SecretStr | None = None
    """Key for that address; best set as `REEF_MULTIMODAL_API_KEY`."""
    timeout_s: float = Field(600, gt=0)
    """Seconds without a byte from the upstream until a call fails."""
    connect_timeout_s: float = Field(10, gt=0)
    """Seconds for a connection to the upstream."""
    retry_timeout_s: float = Field(300, ge=0)
    """Seconds in which a reply is asked for again that the engine broke off to load new weights."""
    retry_initial_s: float = Field(0.05, gt=0)
    """Seconds until the first of those tries; each wait is twice as long as the one before."""
    retry_max_s: float = Field(1.0, gt=0)
    """The longest of those waits, in seconds."""


class RecipeSection(_Section):
    """How scenarios learn."""

    implementation: str = "basic"
    """Recipe of a new scenario: a name that `reef recipes list` shows."""
    config: dict[str, Any] = {}
    """The recipe's own keys."""


class DaemonSection(_Section):
    """How the daemon starts and stops."""

    autostart: bool = True
    """Whether commands and wrappers start the daemon when it is not running."""
    stop_timeout: float = Field(30, gt=0)
    """Seconds that running calls get when the daemon stops."""


class RecordsSection(_Section):
    """What is kept of each call."""

    redact: bool = True
    """Whether credential-shaped strings are replaced before storage."""
    keep_raw_streams: bool = False
    """Whether the event stream of a reply is kept beside the folded body."""
    max_bytes: int = Field(20 * 1024**3, gt=0)
    """Bytes of bodies kept before the oldest go."""
    count_agent_reports: bool = False
    """Whether a recipe learns from what an agent reports of itself as from a person's reports."""


class HarnessSection(_Section):
    """The coding agent whose harness is evolved."""

    adapter: str = "pi"
    """Adapter of a new scenario."""
    proposer: Literal["auto", "model", "verbatim"] = "auto"
    """Who writes a change: the served model, or the ask word for word; `auto` is `verbatim` on the embedded model."""
    step_timeout: float = Field(1800, gt=0)
    """Seconds that one step may take."""


class UsageSection(_Section):
    """What calls cost."""

    prices: dict[str, dict[Literal["input", "output", "cached"], float]] = {}
    """Your own prices, by model: US dollars for a million tokens of `input`, `output` and `cached` input."""


class TuiSection(_Section):
    """How `reef tui` looks and which keys it takes."""

    ascii: bool = False
    """Plain ASCII instead of symbols."""
    keys: dict[str, str] = {}
    """Key for an action id, for example `rate_good: g`."""


class Settings(_Section):
    """All settings of one home, whole and checked."""

    reef: ReefSection = ReefSection()
    inference: InferenceSection = InferenceSection()
    recipe: RecipeSection = RecipeSection()
    daemon: DaemonSection = DaemonSection()
    records: RecordsSection = RecordsSection()
    harness: HarnessSection = HarnessSection()
    usage: UsageSection = UsageSection()
    tui: TuiSection = TuiSection()

    @property
    def tokens(self) -> list[str]:
        """Every accepted token in clear; empty means that none is needed."""
        found = [token.get_secret_value() for token in (self.reef.token, *self.reef.tokens) if token is not None]
        return [token for token in found if token and token != "auto"]


ENVIRONMENT: dict[str, str] = {
    "REEF_HOST": "reef.host",
    "REEF_PORT": "reef.port",
    "REEF_TOKEN": "reef.token",
    "REEF_UPSTREAM_URL": "inference.upstream-url",
    "REEF_UPSTREAM_MODEL": "inference.upstream-model",
    "REEF_UPSTREAM_API_KEY": "inference.upstream-api-key",
    "REEF_MULTIMODAL_API_KEY": "inference.multimodal-api-key",
    "REEF_RECIPE": "recipe.implementation",
    "REEF_AUTOSTART": "daemon.autostart",
    "REEF_PROPOSER": "harness.proposer",
}
"""Variables that are read, and the setting each one is."""

RECIPE_ALIASES = {"recipe": "basic", "harness-evolve": "reefine", "harness_evolve": "reefine"}
"""Public names that mean a recipe of another name."""


@dataclass(frozen=True)
class Resolved:
    """Settings with the origin of each value."""

    settings: Settings
    origins: dict[str, str]
    """Dotted key to `flag`, a variable, `file:line`, `profile NAME`; a key that is not in it has its default."""
    files: tuple[Path, ...]
    """Files that were read, lowest precedence first."""

    def describe(self) -> list[dict[str, Any]]:
        """One row a key: `{"key", "value", "origin"}`; a secret's value is `set` or `unset`."""
        rows = []
        for key, value in _flatten(self.settings):
            rows.append({"key": key, "value": value, "origin": self.origins.get(key, "default")})
        return rows


def load(
    flags: Sequence[tuple[str, str]] = (),
    deployment: Path | None = None,
    environ: Mapping[str, str] | None = None,
    paths: Paths | None = None,
) -> Resolved:
    """Read every layer and return the checked settings.

    `flags` are (dotted key, text) pairs as typed. Raises ConfigError that names the key, its place and the nearest key.
    """
    env = os.environ if environ is None else environ
    places = paths or Paths.from_environ(env)
    files: list[Path] = []
    layers: list[Layer] = []
    for path, required in ((places.config_file, False), (deployment, True)):
        if path is None or not (required or path.exists()):
            continue
        layers.append(read_file(path, env, interpolate=path == deployment))
        files.append(path)
    layers.append(from_pairs([(key, env[name], name) for name, key in ENVIRONMENT.items() if env.get(name)]))
    layers.append(from_pairs([(key, text, "flag") for key, text in flags]))
    values, origins = merge(layers)
    name = (values.get("recipe") or {}).get("implementation")
    if isinstance(name, str):
        values["recipe"]["implementation"] = canonical_recipe(name)
        values, origins = merge([_profile(values["recipe"]["implementation"], places), (values, origins)])
    return Resolved(_check(values, origins), origins, tuple(files))


def canonical_recipe(name: str) -> str:
    """The id of a recipe as it is stored: kebab-case, aliases resolved."""
    return RECIPE_ALIASES.get(name, name.replace("_", "-"))


def model_flags(model: str) -> list[tuple[str, str]]:
    """The settings that `--model` stands for: `embedded`, `ollama/ID`, `openai/ID`, `bedrock/ID`, or a bare model id.

    Raises ConfigError for an unknown provider.
    """
    if model == "embedded":
        return [("inference.backend", "embedded")]
    provider, slash, rest = model.partition("/")
    if slash and provider == "ollama" and rest:
        return [("inference.upstream-url", "http://127.0.0.1:11434"), ("inference.upstream-model", rest)]
    if slash and provider == "openai" and rest:
        return [("inference.upstream-url", "https://api.openai.com"), ("inference.upstream-model", rest)]
    if provider_of(model) is not None:
        # An address that a settings file names for another model must not be sent this vendor's key.
        at_home = ("inference.upstream-url", "")
        return [("inference.backend", "litellm"), at_home, ("inference.upstream-model", model)]
    return [("inference.upstream-model", model)]


def recipe_folder(name: str, paths: Paths) -> Path:
    """The folder of recipe `name`, the user's own before the bundled one. Raises NotFound with the list."""
    folders = search("recipes", paths)
    wanted = canonical_recipe(name).replace("-", "_")
    for folder in folders:
        # A name is no path: a caller over HTTP must not choose which file of the disk is run.
        if wanted.isidentifier() and (folder / wanted / "recipe.toml").is_file():
            return folder / wanted
    known = sorted({path.parent.name.replace("_", "-") for folder in folders for path in folder.glob("*/recipe.toml")})
    raise NotFound(f"there is no recipe {name!r} (known: {', '.join(known)})", "reef recipes list")


def _profile(recipe: str, paths: Paths) -> Layer:
    try:
        folder = recipe_folder(recipe, paths)
    except NotFound as error:
        raise ConfigError(error.message, error.hint) from None
    file = folder / "recipe.toml"
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("profile", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "reef recipes list") from None
    return table, dict.fromkeys(_leaves(table), f"profile {recipe}")


def _check(values: dict[str, Any], origins: dict[str, str]) -> Settings:
    known = [key for key, _ in _flatten(Settings())] + list(Settings.model_fields)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"]).replace("_", "-")
        place = next((where for name, where in origins.items() if name == key or name.startswith(key + ".")), "")
        shown = f"{place}: " if place and place != "flag" else ""
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(key, known, 1, 0.4)
            hint = f"did you mean {near[0]!r}?" if near else "reef config show"
            raise ConfigError(f"{shown}there is no setting {key!r}", hint) from None
        raise ConfigError(f"{shown}{key}: {first['msg'][:1].lower()}{first['msg'][1:]}", "reef config show") from None
    loopback = settings.reef.host in ("127.0.0.1", "::1", "localhost")
    if not (loopback and not settings.reef.allowed_hosts) and settings.reef.token is None and not settings.tokens:
        raise ConfigError("an address or name other than loopback needs a token", "export REEF_TOKEN=…")
    return settings


def _leaves(table: Mapping[str, Any], at: str = "") -> list[str]:
    found = []
    for key, value in table.items():
        name = f"{at}.{key}" if at else key
        found += _leaves(value, name) if isinstance(value, dict) and value else [name]
    return found


def _flatten(section: BaseModel, at: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name in type(section).model_fields:
        value = getattr(section, name)
        key = f"{at}.{name}".lstrip(".").replace("_", "-")
        if isinstance(value, BaseModel):
            rows += _flatten(value, key)
        elif "token" in name or isinstance(value, SecretStr) or name.endswith("api_key"):
            rows.append((key, "set" if value else "unset"))
        else:
            rows.append((key, _shown_address(value) if name.endswith("_url") and value else value))
    return rows


def _shown_address(url: str) -> str:
    """An address as it may be shown: a user name and a query may hold a key."""
    scheme, mark, rest = url.partition("://")
    place, query, _ = (rest if mark else url).partition("?")
    host, slash, path = place.partition("/")
    user, at, name = host.rpartition("@")
    shown = f"{'…@' if at and user else ''}{name}{slash}{path}{'?…' if query else ''}"
    return f"{scheme}{mark}{shown}" if mark else shown
