"""What is looked for in a request, and when it counts as found."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

import pytest

from reef.evaluation.markers import Marker, changed_markers, last_user_text, texts
from reef.harness.adapter import load_adapter
from reef.harness.tree import Change, Entry

PI = load_adapter("pi")


def request(system: str = "", user: str = "hi") -> dict[str, Any]:
    content = [{"type": "text", "text": user}]
    tools = [{"function": {"description": "a secret in a tool"}}]
    return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": content}], "tools": tools}


def entry(kind: str, text: str, id: str = "linter") -> Entry:
    return Entry.parse(id, kind, {"text": text})


def change(before: Entry | None, after: Entry | None) -> Change:
    return Change("update" if before and after else "create" if after else "remove", before, after)


def gained(before: Entry | None, after: Entry | None) -> list[Marker]:
    return changed_markers(change(before, after), PI)[0]


def lost(before: Entry | None, after: Entry | None) -> list[Marker]:
    return changed_markers(change(before, after), PI)[1]


def skill(description: str, body: str = "Do it.", more: str = "") -> Entry:
    return entry("skill", f"---\nname: linter\ndescription: {description}\n{more}---\n{body}\n")


def listed(name: str, description: str) -> str:
    return f"<skill>\n    <name>{name}</name>\n    <description>{escape(description)}</description>\n  </skill>"


def test_everything_the_model_is_told_is_searched_and_the_tools_are_not() -> None:
    assert texts(request("You are\n pi", "say  hi")) == "Youarepisayhi"
    assert texts({"system": [{"type": "text", "text": "a"}], "input": "b", "instructions": "c"}) == "acb"
    assert last_user_text({"messages": []}) == "" and last_user_text({"input": "x"}) == ""


def test_a_rule_is_found_however_it_is_wrapped() -> None:
    (marker,) = gained(None, entry("rules", "reproduce it\nwith a <failing> test\n"))
    assert marker.prompt is None
    assert marker.found(request("before\n  reproduce it with a\n  <failing> test after"))
    assert not marker.found(request("reproduce it with a test"))


def test_a_skill_is_found_by_the_name_and_the_description_that_the_agent_lists() -> None:
    name, description = gained(None, skill("\"Lint <all> & 'some' code\""))
    body = request(listed("linter", "Lint <all> & 'some' code"))
    assert name.found(body) and description.found(body)
    # The path of the skill's file holds its name as well and proves nothing.
    assert not name.found(request("<location>/agent/skills/linter/SKILL.md</location>"))
    assert not description.found(request(listed("linter", "Lint <all>")))


def test_a_description_over_several_lines_is_found() -> None:
    found = gained(None, entry("skill", "---\ndescription: |\n  first line\n  second\n---\nx"))
    assert all(marker.found(request(listed("linter", "first line\nsecond\n"))) for marker in found)


@pytest.mark.parametrize(
    ("text", "said", "is_found"),
    [
        ("Say hello to $ARGUMENTS now", "Say hello to wordone wordtwo now", True),
        ("Say hello to $@ now", "Say hello to wordone now", False),
        ("first $1, second $2, third $3.", "first wordone, second wordtwo, third .", True),
        ("rest ${2:-none} end", "rest wordtwo end", True),
        ("---\ndescription: x\n---\nSay $1\n", "Say wordone", True),
        ("---\ndescription: x\n---\nSay $1\n", "Say wordone wordtwo", True),
        ("---\ndescription: x\n---\nSay $2\n", "Say wordone wordtwo", False),
        ("$ARGUMENTS", "wordone wordtwo", True),
        ("$ARGUMENTS", "/linter wordone wordtwo", False),
        ("Say hello", "/linter wordone wordtwo", False),
        ("a (b) [c] .* $1", "a (b) [c] .* wordone", True),
        ("a .* $1", "a xx wordone", False),
    ],
)
def test_a_command_is_found_by_its_expansion(text: str, said: str, is_found: bool) -> None:
    (marker,) = gained(None, entry("agent_command", text))
    assert marker.prompt == "/linter wordone wordtwo"
    assert marker.found(request("system", said)) is is_found


def test_a_removal_looks_for_what_was_there() -> None:
    assert gained(entry("rules", "old"), None) == []
    (marker,) = lost(entry("rules", "old"), None)
    assert marker.found(request("old"))


def test_a_rule_that_grew_brings_its_new_text_and_takes_nothing_away() -> None:
    before, after = entry("rules", "be brief"), entry("rules", "be brief, always")
    assert len(gained(before, after)) == 1 and lost(before, after) == []
    assert gained(after, before) == [] and len(lost(after, before)) == 1


def test_an_update_of_a_skill_is_judged_by_what_differs() -> None:
    assert [marker.what for marker in gained(skill("one"), skill("two"))] == ["its description"]
    assert [marker.what for marker in lost(skill("one"), skill("two"))] == ["its description"]
    (body,) = gained(skill("one", "Do it."), skill("one", "Do it twice."))
    assert (body.what, body.prompt) == ("its instructions", "/skill:linter")
    assert body.found(request("", "<skill>\nDo it twice.\n</skill>"))
    assert changed_markers(change(skill("one"), skill("one", more="license: mit\n")), PI) == ([], [])


def test_a_kind_that_no_request_shows_has_no_marker() -> None:
    settings = Entry.parse("settings", "config", {"data": {"a": 1}})
    assert changed_markers(change(None, settings), PI) == ([], [])


def test_words_of_a_command_are_numbered_as_the_agent_numbers_them() -> None:
    text = "Compare $1 with $0, all: $ARGUMENTS."
    for agent, said in (
        ("pi", "Compare wordone with , all: wordone wordtwo."),
        ("claude", "Compare wordtwo with wordone, all: wordone wordtwo."),
    ):
        (marker,) = changed_markers(change(None, entry("agent_command", text)), load_adapter(agent))[0]
        assert marker.found(request(user=said)), agent
