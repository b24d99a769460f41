"""A vendor that speaks none of the three dialects, reached through litellm in a child process of the daemon.

The child is started only where the settings name such a model. The vendor's keys get to it in its environment, and
nothing else of the daemon's does.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from reef.credentials import hold
from reef.engines.child import ChildEngine
from reef.engines.engine import CHAT, EngineHealth, OnChange
from reef.engines.upstream import base_address
from reef.errors import ConfigError, CredentialMissing
from reef.providers import PROVIDERS, Provider, provider_of

INSTALL = "./install.sh --with providers"
QUIET = {
    # Nothing is fetched but what a call asks for: no prices, no tokenizers, no news; and no file of a folder is read.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_LOG": "ERROR",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
_KEPT_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "PYTHONPATH",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)


class LitellmEngine(ChildEngine):
    """One vendor's models; a call that names none of them gets the one that the settings name."""

    name = "litellm"
    dialects = frozenset({CHAT})
    _worker = "reef.engines.litellm_worker"
    _mends = INSTALL

    def __init__(
        self,
        model: str,
        url: str | None = None,
        key: str | None = None,
        timeout_s: float = 600,
        on_change: OnChange | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`model` is `bedrock/…`; `url` and `key` go before what the vendor's own variables say.

        Raises ConfigError when the vendor is not known or litellm is not installed.
        """
        provider = provider_of(model)
        if provider is None:
            known = ", ".join(f"{name}/…" for name in PROVIDERS)
            raise ConfigError(f"{model!r} names no vendor that litellm is used for ({known})", "reef help config")
        if importlib.util.find_spec("litellm") is None:
            raise ConfigError(f"{model} is reached through litellm, which is not installed", INSTALL)
        if url is not None:
            base_address(url)
        super().__init__(on_change)
        self.model: str | None = model
        self._what = f"litellm for {provider.name}"
        self._url = url
        self._timeout_s = timeout_s
        self._variables = _variables(provider, key, os.environ if environ is None else environ)
        for name in provider.secrets:
            hold(self._variables.get(name))
        unset = provider.key_needed and not any(self._variables.get(name) for name in provider.secrets)
        self._missing = provider.secrets[0] if unset else None
        if self._missing is not None:
            self._health = EngineHealth("failed", f"{self._missing} is not set", f"export {self._missing}=…")

    async def start(self) -> None:
        if self._missing is None:
            await super().start()

    async def ready(self, wait_s: float) -> None:
        if self._missing is not None:
            raise CredentialMissing(f"{self._missing} is not set", f"export {self._missing}=…")
        await super().ready(wait_s)

    def _job(self) -> dict[str, Any]:
        return {"model": self.model, "url": self._url, "timeout": self._timeout_s}

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        return kept | QUIET | self._variables


def _variables(provider: Provider, key: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of this vendor that are set; `key` is the value of its usual one."""
    found = {name: environ[name] for name in (*provider.secrets, *provider.more) if environ.get(name)}
    return found | ({provider.secrets[0]: key} if key else {})
