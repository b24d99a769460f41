"""Differences word by word."""

from __future__ import annotations

import difflib

from reef import worddiff
from reef.cli.difference import lines_of


def hunks(old: str, new: str) -> str:
    """A unified difference of two texts."""
    return "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/x", "b/x"))


def test_a_changed_line_is_one_line_with_its_changed_words() -> None:
    found = worddiff.lines(hunks("Keep it.\nAnswer in two sentences.\n", "Keep it.\nAnswer in one sentence.\n"))
    assert [line["sign"] for line in found] == ["@", " ", "~"]
    assert found[2]["text"] == "Answer in one sentence."
    words = found[2]["words"]
    assert "".join(text for sign, text in words if sign != "+") == "Answer in two sentences."
    assert "".join(text for sign, text in words if sign != "-") == "Answer in one sentence."
    assert ["-", "two"] in words and ["+", "one"] in words


def test_lines_that_are_not_alike_stay_whole_and_in_order() -> None:
    found = worddiff.lines(hunks("alpha beta gamma\nkeep\n", "one two three\nkeep\nmore\n"))
    assert [(line["sign"], line["text"]) for line in found[1:]] == [
        ("-", "alpha beta gamma"), ("+", "one two three"), (" ", "keep"), ("+", "more"),
    ]  # fmt: skip


def test_a_new_line_before_a_changed_one_comes_before_it() -> None:
    found = worddiff.lines(hunks("run the tests first\n", "entirely new words\nrun all the tests first\n"))
    assert [line["sign"] for line in found[1:]] == ["+", "~"]


def test_a_rule_that_looks_like_a_header_is_not_taken_for_one() -> None:
    found = worddiff.lines(hunks("- a list\n", "- a list\n-- not a header\n"))
    assert [(line["sign"], line["text"]) for line in found[1:]] == [(" ", "- a list"), ("+", "-- not a header")]


def test_what_is_not_a_difference_is_kept_as_it_is() -> None:
    assert worddiff.lines("not shown as text: 3 bytes before, 4 bytes after\n") == [
        {"sign": "!", "text": "not shown as text: 3 bytes before, 4 bytes after"}
    ]
    assert worddiff.lines("") == []


def test_the_command_line_marks_changed_words_without_colour() -> None:
    file = {"path": "harness/rules/x.md", "status": "changed", "entry": {"kind": "rules", "id": "x"}}
    shown = lines_of({"files": [file | {"hunks": hunks("  Answer in two words.\n", "  Answer in one words.\n")}]})
    assert shown == ["  harness/rules/x.md  rules x", "  @@ -1 +1 @@", "  ~   Answer in [-two-]{+one+} words."]
