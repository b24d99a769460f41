"""The four tools, and child processes that are bounded."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from reef.native.bounded import run_bounded
from reef.native.home import Limits
from reef.native.tools import Result, built_in

LIMITS = Limits()


@pytest.fixture
def call(tmp_path: Path) -> Any:
    def made(name: str, limits: Limits = LIMITS, **arguments: Any) -> Result:
        return built_in(name, arguments, tmp_path, limits)

    return made


def test_read_shows_lines_from_an_offset_and_says_what_it_left_out(call: Any, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    assert call("read", path="f", offset=3, limit=2).text == (
        "line 3\nline 4\n… 96 more lines; read on with offset 5 …"
    )
    short = call("read", Limits(tool_output_bytes=30), path="f")
    assert short.text == "line 1\nline 2\nline 3\nline 4\n… 96 more lines; read on with offset 5 …"
    (tmp_path / "folder/inner").mkdir(parents=True)
    assert call("read", path="folder").text == "inner/"


def test_read_refuses_what_is_no_text(call: Any, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\x7fELF\x00\x00")
    os.mkfifo(tmp_path / "p")
    for name, said in (("b", "is not a text file"), ("none", "is not there"), ("p", "is no file that can be read")):
        result = call("read", path=name)
        assert result.failed and said in result.text


def test_write_makes_folders_and_keeps_line_ends_as_they_are(call: Any, tmp_path: Path) -> None:
    assert call("write", path="a/b/c.txt", content="x\r\ny").text == f"wrote 4 bytes to {tmp_path / 'a/b/c.txt'}"
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"x\r\ny"
    assert call("write", path="a", content="x").failed


def test_edit_changes_one_place_or_nothing(call: Any, tmp_path: Path) -> None:
    place = tmp_path / "f"
    place.write_bytes(b"one\r\ntwo\r\nthree three\r\n")
    assert not call("edit", path="f", old="one\ntwo", new="1\n2").failed
    assert place.read_bytes() == b"1\r\n2\r\nthree three\r\n"
    assert "is in it 2 times" in call("edit", path="f", old="three", new="x").text
    assert "is not in it" in call("edit", path="f", old="four", new="x").text
    assert call("edit", path="none", old="a", new="b").failed
    assert place.read_bytes() == b"1\r\n2\r\nthree three\r\n"


def test_bash_ends_at_its_time_limit_with_all_that_it_started(call: Any, tmp_path: Path) -> None:
    before = time.monotonic()
    result = call("bash", command="echo begun; sleep 60 & sleep 60", timeout=1)
    assert result == Result("begun\n(ended after 1 s: the time limit)", failed=True)
    assert time.monotonic() - before < 10


def test_bash_keeps_the_beginning_and_the_end_of_a_long_output(call: Any) -> None:
    result = call("bash", Limits(tool_output_bytes=2000), command="seq 1 100000")
    assert len(result.text) < 2200 and result.text.startswith("1\n2\n") and result.text.endswith("\n100000")
    assert "bytes are left out here" in result.text


def test_bash_does_not_wait_for_what_stays_in_the_background(call: Any) -> None:
    before = time.monotonic()
    result = call("bash", command="sleep 20 & echo $!")
    assert time.monotonic() - before < 5
    os.kill(int(result.text), 9)


def test_an_argument_of_the_wrong_kind_is_named(call: Any) -> None:
    assert call("bash", command=7).text == "'command' is not a text"
    assert call("bash", command="true", timeout="soon").text == "'timeout' is not a number"
    assert call("read", path="a\x00b").text == "'path' holds a null character"


def test_a_program_that_does_not_read_its_input_is_no_trouble(tmp_path: Path) -> None:
    ran = run_bounded(["/bin/sh", "-c", "echo out; echo err >&2"], tmp_path, 5, 1000, b"x" * 200_000)
    assert (ran.status, ran.stdout, ran.stderr, ran.timed_out) == (0, "out\n", "err\n", False)
