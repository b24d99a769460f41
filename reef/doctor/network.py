"""Every address that reef would contact with these settings here, and what for. Nothing is contacted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from reef import config
from reef.daemon.last_serve import recall
from reef.doctor.agents import installed_adapters
from reef.engines import discovery, index, servers
from reef.paths import Paths
from reef.providers import provider_of

_DEFAULT_NPM = "npm's own default registry"


@dataclass(frozen=True)
class Address:
    """One place that may be asked for something."""

    address: str
    """Without user name, password and query."""
    why: str
    when: str


def addresses(paths: Paths, environ: Mapping[str, str] | None = None) -> Iterator[Address]:
    """The upstream, what looks for local servers, and the registries of packages, in the order of how often."""
    env = os.environ if environ is None else environ
    settings = config.load(*_last_start(paths, env), paths=paths).settings
    yield from _upstreams(settings, env)
    sources = index.read_sources(env)
    for url in sources.indexes:
        yield Address(index.shown(url), "Python packages: reef, the embedded model, Node", "when you install them")
    npm = next((env[name] for name in env if name.upper() == "NPM_CONFIG_REGISTRY" and env[name]), None) or _npmrc(env)
    yield Address(index.shown(npm) if npm else _DEFAULT_NPM, "packages of coding agents", "at `reef agents add`")
    for adapter in installed_adapters(paths):
        for url, when in adapter.own.contacts.items():
            yield Address(url, f"{adapter.title} itself; it has no switch for it", when)
    for name in sorted(
        name for name in env if name.upper() in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") and env[name]
    ):
        yield Address(index.shown(env[name]), f"the proxy of {name}", "for what is not on this machine")


def _last_start(paths: Paths, env: Mapping[str, str]) -> tuple[list[tuple[str, str]], Path | None, Mapping[str, str]]:
    """What an automatic start would go by: flags and variables of the last one that a person made."""
    last = recall(paths)
    return ([], None, env) if last is None else (last.flags, last.deployment, last.variables | dict(env))


def _upstreams(settings: config.Settings, env: Mapping[str, str]) -> Iterator[Address]:
    inference = settings.inference
    for url, why in (
        (inference.upstream_url, "model calls"),
        (inference.multimodal_url, "embeddings, images and speech"),
    ):
        if url:
            yield Address(index.shown(url), why, "at each such call")
    named = provider_of(inference.upstream_model or "")
    if inference.backend == "litellm" or named:
        yield Address(f"the vendor of {inference.upstream_model}", "model calls, through litellm", "at each call")
    if inference.upstream_url or inference.backend in ("litellm", "embedded"):
        return
    for kind, variable, url in discovery.PROVIDERS:
        if env.get(variable):
            yield Address(url, f"model calls of {kind} ({variable} is set)", "at each call, once you said yes to it")
    ports = ", ".join(str(known.port) for known in servers.KNOWN)
    yield Address(f"http://{servers.HOST}", f"model servers on this machine, ports {ports}", "at start")


def _npmrc(env: Mapping[str, str]) -> str | None:
    place = Path(env.get("HOME") or Path.home()) / ".npmrc"
    if not place.is_file():
        return None
    for line in place.read_text(encoding="utf-8", errors="replace").splitlines():
        name, mark, value = line.partition("=")
        if mark and name.strip() == "registry" and urlsplit(value.strip()).scheme:
            return value.strip()
    return None
