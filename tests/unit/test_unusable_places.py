"""A place that cannot be used, and what is no key, no address or no install: one sentence, and no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reef.client import Client
from reef.daemon.secrets_on_disk import person_key
from reef.discovery import is_ours, read_discovery, read_person_key, start_daemon
from reef.errors import DaemonUnreachable, Failed
from reef.harness.adapter import load_adapter
from reef.harness.install import install_tree, installed, installed_versions
from reef.paths import Paths, unusable


@pytest.fixture
def no_folder(tmp_path: Path) -> Paths:
    """A home below a file, where nothing can be made: also for root, whom no mode keeps out."""
    file = tmp_path / "file"
    file.touch()
    return Paths.from_environ({"REEF_HOME": str(file / "reef"), "HOME": str(tmp_path)})


def test_a_full_disk_and_a_closed_place_are_sentences_and_every_other_error_is_not() -> None:
    with pytest.raises(OSError) as full, Path("/dev/full").open("wb", buffering=0) as file:
        file.write(b"x")
    found = unusable(full.value, "this cannot go on")
    assert found is not None
    assert (found.message, found.hint) == ("this cannot go on: no space left on device", "df -h")
    with pytest.raises(OSError) as folder:
        Path("/").write_text("x")
    found = unusable(folder.value, "this cannot go on")
    assert found is not None
    assert (found.message, found.hint) == ("this cannot go on: /: is a directory", "ls -ld / /")
    for other in (FileNotFoundError(2, "No such file", "/x"), ConnectionResetError(104, "reset"), OSError("x")):
        assert unusable(other, "this") is None


@pytest.mark.parametrize(
    ("command", "closed", "said"),
    [
        ("reef.daemon", "data", "data: file exists"),
        ("reef.cli.app up --model embedded", "data", "data: file exists"),
        ("reef.cli.app use default", "state", "state/daemon.json: not a directory"),
        ("reef.cli.app agents add pi", "state", "state/daemon.json: not a directory"),
    ],
)
def test_a_place_that_is_no_folder_ends_in_a_sentence(paths: Paths, command: str, closed: str, said: str) -> None:
    """A file in the place of a folder: that stops root too, whom no mode keeps out."""
    assert paths.home is not None
    place = paths.home / closed
    if place.is_dir():
        place.rmdir()
    place.touch()
    done = subprocess.run([sys.executable, "-P", "-m", *command.split()], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and "fault of its own" not in done.stderr
    assert said in done.stderr and "hint: ls -ld" in done.stderr, done.stderr


def test_a_start_in_the_background_says_what_the_place_is(no_folder: Paths) -> None:
    with pytest.raises(Failed, match=r"the daemon cannot start: .*: not a directory"):
        start_daemon(no_folder, {"flags": []})


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"two\nlines", b"\x1b[2J"])
def test_what_is_no_key_is_named_to_the_daemon_and_to_its_clients(paths: Paths, content: bytes) -> None:
    paths.person_key.write_bytes(content)
    for read in (person_key, read_person_key):
        with pytest.raises(Failed, match="holds no key") as refused:
            read(paths)
        assert refused.value.hint == f"rm {paths.person_key} && reef up"


@pytest.mark.parametrize(
    "found",
    [
        {"pid": 1, "url": "http://[::1"},
        {"pid": 1, "url": "http://127.0.0.1:99999"},
        {"pid": 1, "url": "http://127.0.0.1"},
        {"pid": 1, "url": "file:///etc/passwd"},
        {"pid": "x", "url": "http://127.0.0.1:1"},
        {"url": "http://127.0.0.1:1"},
        {"pid": 1, "url": 5},
    ],
)
def test_a_discovery_file_without_an_address_is_no_daemon(paths: Paths, found: object) -> None:
    paths.person_key.write_text("0" * 64)
    paths.discovery.write_text(json.dumps(found))
    assert read_discovery(paths) is None
    with pytest.raises(DaemonUnreachable):
        Client.connect(paths, start=False)


def test_an_address_that_no_client_can_use_is_not_ours(paths: Paths) -> None:
    paths.person_key.write_text("0" * 64)
    assert not is_ours({"url": "http://a b:80"}, paths)


@pytest.mark.parametrize("change", [{"files": None}, {"version": "x"}, {"files": {"AGENTS.md": 5}}])
def test_an_install_whose_facts_were_edited_is_none_and_the_next_one_puts_it_right(
    paths: Paths, change: dict[str, object]
) -> None:
    pi = load_adapter("pi")
    made = install_tree(paths, "coding", pi, 2, {"AGENTS.md": b"be brief\n"}, "r2", "c2").install
    file = made.folder / "install.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert installed_versions(paths, "pi") == []
    with pytest.raises(Exception, match="no harness of scenario coding is installed"):
        installed(paths, "coding", "pi")
    install_tree(paths, "coding", pi, 2, {"AGENTS.md": b"be brief\n"}, "r2", "c2")
    assert installed(paths, "coding", "pi") == made
