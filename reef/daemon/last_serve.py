"""What the last `reef up` or `reef serve` was started with, so that an automatic start serves the same.

`state/last-serve.json` (0600) holds flags, deployment file and the `REEF_*` variables that were settings. A value that
is or may hold a secret is not kept, only the setting's name: an automatic start without it is refused, because the
daemon would serve with less than the person chose. `config.yaml` is read again at every start and not kept here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from reef.config import ENVIRONMENT, Resolved, load
from reef.credentials import find_credentials
from reef.engines.discovery import key_variable
from reef.errors import ConfigError, CredentialMissing, ReefError
from reef.ids import utc_now
from reef.paths import Paths, write_atomic

_ABOUT = "how the daemon was last started by reef up or reef serve; a command that starts it by itself does the same"
_SECRETS = "the values of these are secrets and not in this file; set them again before the daemon starts"
_SECRET_KEYS = ("inference.upstream-api-key", "reef.token", "reef.tokens")


@dataclass(frozen=True)
class LastServe:
    """A start that can be made again."""

    flags: list[tuple[str, str]]
    """(dotted key, text) as typed."""
    deployment: Path | None
    variables: dict[str, str]
    """`REEF_*` variables that were set; one that is set now goes before."""
    not_kept: list[str]
    """Settings whose values are secrets."""
    provider_key: str | None
    """Variable that held the key of the model provider."""

    def write(self, paths: Paths) -> None:
        """Remember this start."""
        fact: dict[str, Any] = {
            "about": _ABOUT,
            "at": utc_now(),
            "flags": self.flags,
            "deployment": None if self.deployment is None else str(self.deployment),
            "variables": self.variables,
            "not-kept": {"about": _SECRETS, "settings": self.not_kept, "provider-key": self.provider_key},
        }
        write_atomic(file_of(paths), (json.dumps(fact, indent=1) + "\n").encode())


def file_of(paths: Paths) -> Path:
    """Where a start is remembered."""
    return paths.state / "last-serve.json"


def describe(
    flags: list[tuple[str, str]],
    deployment: Path | None,
    resolved: Resolved,
    environ: Mapping[str, str],
    paths: Paths,
) -> LastServe:
    """What is to be remembered of a start with these flags in `environ`; holds no secret."""
    variables = {name: environ[name] for name in ENVIRONMENT if environ.get(name)}
    typed = [*flags, *((ENVIRONMENT[name], text) for name, text in variables.items())]
    secret = {key for key, text in typed if _may_be_secret(key, text)}
    if deployment is not None:
        # Its text may take a secret from a variable, which can be unset the next time.
        own = [key for key in _SECRET_KEYS if resolved.origins.get(key, "").startswith(f"{deployment}:")]
        secret |= {key for key in own if _is_set(resolved, key)}
    provider = key_variable(resolved.settings, paths)
    return LastServe(
        [pair for pair in flags if pair[0] not in secret],
        deployment,
        {name: text for name, text in variables.items() if ENVIRONMENT[name] not in secret},
        sorted(secret),
        provider if provider is not None and environ.get(provider) else None,
    )


def recall(paths: Paths) -> LastServe | None:
    """The last start, None when there was none. Raises ConfigError when the file cannot be read."""
    place = file_of(paths)
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return LastServe(
            [(str(key), str(text)) for key, text in found["flags"]],
            None if found["deployment"] is None else Path(found["deployment"]),
            {str(name): str(text) for name, text in found["variables"].items()},
            [str(key) for key in found["not-kept"]["settings"]],
            found["not-kept"]["provider-key"],
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{place} cannot be read", "reef up") from None


def settings_again(last: LastServe, environ: Mapping[str, str], paths: Paths) -> Resolved:
    """The settings of the last start, made again in `environ`.

    Raises CredentialMissing when a secret of it is not set now, ConfigError when it can no longer be made.
    """
    now = last.variables | {name: text for name, text in environ.items() if text or name not in last.variables}
    try:
        resolved = load(last.flags, last.deployment, now, paths)
    except ConfigError as error:
        if (error.hint or "").startswith("export "):
            raise CredentialMissing(f"the last reef up cannot be made again: {error.message}", error.hint) from None
        raise ConfigError(f"the last reef up cannot be made again: {error.message}", "reef up") from None
    for key in last.not_kept:
        if not _is_given(resolved, key):
            raise _missing(key)
    provider = last.provider_key
    # Settings that name another provider by now need no key of this one.
    needed = key_variable(resolved.settings, paths) if not resolved.settings.inference.upstream_api_key else None
    if provider and provider == needed and not now.get(provider):
        raise CredentialMissing(f"the last reef up had {provider}, which is not set now", f"export {provider}=…")
    return resolved


def _missing(key: str) -> ReefError:
    variable = next((name for name, setting in ENVIRONMENT.items() if setting == key), None)
    hint = f"export {variable}=…" if variable else f"reef up --{key}=…"
    return CredentialMissing(f"the last reef up had {key}, a secret that is not kept and not set now", hint)


def _may_be_secret(key: str, text: str) -> bool:
    if key in _SECRET_KEYS:
        return text != "auto"
    if key.endswith("-url"):
        parts = urlsplit(text)
        return bool("@" in parts.netloc or parts.query or find_credentials(text))
    return bool(find_credentials(text))


def _is_given(resolved: Resolved, key: str) -> bool:
    """Whether a setting that was not kept has a value again, and not merely one from below the one that is missing."""
    origin = resolved.origins.get(key, "default")
    return origin in ENVIRONMENT or (key in _SECRET_KEYS and _is_set(resolved, key))


def _is_set(resolved: Resolved, key: str) -> bool:
    section, _, name = key.partition(".")
    value = getattr(getattr(resolved.settings, section), name.replace("-", "_"))
    return bool(value.get_secret_value() if isinstance(value, SecretStr) else value)
