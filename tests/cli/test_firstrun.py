"""The parts of the quickstart that decide what is claimed: what counts as proof, what a size is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reef.cli import firstrun, quickstart
from reef.paths import Paths

RULE = "Always answer in one short sentence."


def request(*messages: dict[str, object]) -> bytes:
    """The bytes of a chat request with these messages."""
    return json.dumps({"model": "m", "messages": list(messages)}).encode()


def test_the_line_is_found_in_a_system_text_and_named() -> None:
    body = request({"role": "system", "content": f"You are pi.\n\n- {RULE}\nBye."}, {"role": "user", "content": "hi"})
    assert firstrun.find_in_request(body, RULE) == f"system › … - {RULE} …"


def test_the_line_is_found_in_a_list_of_text_parts() -> None:
    body = request({"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": RULE}]})
    assert firstrun.find_in_request(body, RULE) == f"developer › … {RULE} …"


@pytest.mark.parametrize(
    "body",
    [
        request({"role": "system", "content": "Always answer in one short sentence"}),
        request({"role": "system", "content": None}),
        request(),
        b"",
        b"[]",
        b'{"messages": 3}',
        b'{"messages": [7, {"content": [null, {"text": 4}]}]}',
        RULE.encode(),
    ],
)
def test_nothing_else_counts_as_proof(body: bytes) -> None:
    assert firstrun.find_in_request(body, RULE) is None


def test_the_size_of_a_folder_counts_a_linked_file_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1000)
    os.link(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "d").write_bytes(b"x" * 10)
    assert firstrun.folder_size(tmp_path) == 1010


def test_a_part_that_was_there_shows_no_time() -> None:
    assert firstrun.part_line("pi 1.6.0", None, 168_000_000).split() == ["✓", "pi", "1.6.0", "there", "168", "MB"]
    assert firstrun.part_line("pi 1.6.0", 7.2, 168_000_000).split() == ["✓", "pi", "1.6.0", "7", "s", "168", "MB"]


def test_the_end_names_commands_that_fit_this_home(
    paths: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REEF_INSTALLER", "./install.sh")
    quickstart.show_next(paths)
    alone = capsys.readouterr().out
    assert "reef versions rollback v1 --scenario quickstart · ./install.sh uninstall --purge" in alone
    assert f'export PATH="{paths.bin}:$PATH"' in alone
    paths.last_install.write_text("quickstart")
    monkeypatch.setenv("PATH", f"{paths.bin}:/usr/bin")
    quickstart.show_next(paths)
    after = capsys.readouterr().out
    assert "reef versions rollback v1 · ./install.sh uninstall --purge" in after
    assert "export PATH" not in after


def test_without_the_installers_name_the_shipped_one_is_named(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    quickstart.show_next(paths)
    (undo,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("undo")]
    assert "install.sh uninstall --purge" in undo


def test_an_agents_session_cannot_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from reef.errors import Forbidden

    monkeypatch.setenv("REEF_SESSION", "reef-session")
    with pytest.raises(Forbidden):
        quickstart.quickstart(prove=True)
