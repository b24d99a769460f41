"""Where a person's own settings say that packages come from, and how to find one file there.

The settings of pip and uv are honoured (variables, `pip.conf`, `uv.toml`), neither of the two needs to be installed.
The file itself is checked by its hash, so which index answers makes no difference to what is used.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

DEFAULT_INDEX = "https://pypi.org/simple"
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


@dataclass(frozen=True)
class Sources:
    """The places to look, in order, and how to trust them."""

    indexes: tuple[str, ...]
    """Simple-index addresses, `https://…/simple` or `file://…`; may hold a user name and password."""
    folders: tuple[Path, ...]
    """Local folders of files (find-links)."""
    certificates: str | None
    """Bundle of certificate authorities, None for the default."""


def read_sources(environ: Mapping[str, str] | None = None, prefix: str = sys.prefix) -> Sources:
    """The person's package sources: variables first, then the configuration files, then the public index."""
    env = os.environ if environ is None else environ
    pip = _pip_settings(env, Path(prefix))
    uv = _uv_settings(env)
    primary = [
        env.get("UV_DEFAULT_INDEX", "").partition("=")[2] or env.get("UV_DEFAULT_INDEX", ""),
        env.get("UV_INDEX_URL", ""),
        env.get("PIP_INDEX_URL", "") or pip.get("index-url", ""),
        *uv[:1],
    ]
    extra = [
        *(entry.partition("=")[2] or entry for entry in env.get("UV_INDEX", "").split()),
        *env.get("UV_EXTRA_INDEX_URL", "").split(),
        *(env.get("PIP_EXTRA_INDEX_URL", "") or pip.get("extra-index-url", "")).split(),
        *uv[1:],
    ]
    chosen = [url for url in primary if url]
    no_index = (env.get("PIP_NO_INDEX") or pip.get("no-index", "")).lower() in ("1", "true", "yes", "on")
    indexes = [] if no_index else [*(chosen or [DEFAULT_INDEX]), *(url for url in extra if url)]
    links = f"{env.get('PIP_FIND_LINKS', '') or pip.get('find-links', '')} {env.get('UV_FIND_LINKS', '')}".split()
    folders = [Path(unquote(urlsplit(link).path)) for link in links if urlsplit(link).scheme in ("", "file")]
    names = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    certificates = next((env[name] for name in names if env.get(name)), None) or pip.get("cert")
    return Sources(tuple(dict.fromkeys(url.rstrip("/") for url in indexes)), tuple(folders), certificates)


def project_page(index: str, package: str) -> str:
    """Address of the page that lists the files of `package`."""
    return f"{index}/{re.sub(r'[-_.]+', '-', package).lower()}/"


def find_file(page: str, content_type: str, text: bytes, filename: str) -> str | None:
    """The full address of `filename` on a project page, JSON (PEP 691) or HTML (PEP 503); None when it is not there.

    Raises ValueError when the page is neither.
    """
    if "json" in content_type:
        files = json.loads(text).get("files", [])
        found = [str(entry["url"]) for entry in files if entry.get("filename") == filename]
    else:
        reader = _Links()
        reader.feed(text.decode("utf-8", "replace"))
        found = [link for link in reader.links if unquote(urlsplit(link).path).rpartition("/")[2] == filename]
    if not found:
        return None
    address = urljoin(page, found[0]).partition("#")[0]
    source, target = urlsplit(page), urlsplit(address)
    if source.username and not target.username and source.hostname == target.hostname:
        # A private index wants the same user name for its files; another host must never get it.
        user = source.netloc.rpartition("@")[0]
        target = target._replace(netloc=f"{user}@{target.netloc}")
    return urlunsplit(target)


def shown(url: str) -> str:
    """`url` without user name, password and query, for messages."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]


def _pip_settings(env: Mapping[str, str], prefix: Path) -> dict[str, str]:
    """The `[global]` and `[download]` keys of every pip.conf that pip would read, later files winning."""
    home = Path(env.get("HOME") or Path.home())
    xdg_dirs = [Path(part) for part in (env.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if part]
    config_home = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    files = [*(folder / "pip" / "pip.conf" for folder in xdg_dirs), Path("/etc/pip.conf")]
    if sys.platform == "darwin":
        files += [Path("/Library/Application Support/pip/pip.conf"), home / "Library/Application Support/pip/pip.conf"]
    files += [home / ".pip" / "pip.conf", config_home / "pip" / "pip.conf", prefix / "pip.conf"]
    if env.get("PIP_CONFIG_FILE"):
        files = [] if env["PIP_CONFIG_FILE"] == os.devnull else [*files, Path(env["PIP_CONFIG_FILE"])]
    found: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in ("global", "download"):
            if parser.has_section(section):
                found |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    return found


def _uv_settings(env: Mapping[str, str]) -> list[str]:
    """The indexes of uv's user and system configuration, the default one first; empty when there is none."""
    home = Path(env.get("HOME") or Path.home())
    config_home = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    named = env.get("UV_CONFIG_FILE")
    for file in [Path(named)] if named else [config_home / "uv" / "uv.toml", Path("/etc/uv/uv.toml")]:
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            continue
        entries = [entry for entry in table.get("index", []) if isinstance(entry, dict) and entry.get("url")]
        ordered = sorted(entries, key=lambda entry: not entry.get("default"))
        pip = table.get("pip", {})
        urls = [str(entry["url"]) for entry in ordered]
        urls += [str(url) for url in (table.get("index-url"), pip.get("index-url")) if url]
        return urls
    return []
