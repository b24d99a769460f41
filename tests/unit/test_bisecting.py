"""Which version is asked about next, and what answers say."""

from __future__ import annotations

from typing import Any

import pytest

from reef import bisecting
from reef.bisecting import begin
from reef.errors import Conflict, Failed, InvalidInput, NotFound
from reef.paths import Paths


def chain(count: int, **contents: str) -> list[dict[str, Any]]:
    """Rows of versions, newest first; `contents` gives some of them a content of their own."""
    return [
        {"version": n, "state": "published", "content_id": contents.get(f"v{n}", f"c{n}")} for n in range(count, 0, -1)
    ]


@pytest.mark.parametrize("bad", range(2, 9))
def test_eight_versions_take_at_most_three_answers_whichever_is_the_first_bad_one(bad: int) -> None:
    rows, answers = chain(8), 0
    search = begin(rows, "coding", None, None)
    assert search.left(rows) == 3
    while (asked := search.next(rows)) is not None:
        search.answer(rows, asked, "bad" if asked >= bad else "good")
        answers += 1
    assert (search.suspects(rows), answers <= 3) == ([bad], True)


def test_a_thousand_versions_take_ten_answers() -> None:
    rows = chain(1000)
    search, answers = begin(rows, "coding", 1, 1000), 0
    while (asked := search.next(rows)) is not None:
        search.answer(rows, asked, "bad" if asked >= 777 else "good")
        answers += 1
    assert (search.suspects(rows), answers <= 10) == ([777], True)


def test_what_was_skipped_is_asked_about_no_more_and_can_be_answered_later() -> None:
    rows = chain(4)
    search = begin(rows, "coding", 1, 4)
    assert search.next(rows) is not None
    for number in (2, 3):
        search.answer(rows, number, "skip")
    assert (search.next(rows), search.suspects(rows)) == (None, [2, 3, 4])
    search.answer(rows, 3, "good")
    assert search.suspects(rows) == [4]


def test_a_version_with_the_content_of_an_answered_one_is_not_asked_about() -> None:
    # v4 went back to v1, so it is as good as v1.
    rows = chain(7, v4="c1")
    search = begin(rows, "coding", 1, 7)
    asked = []
    while (number := search.next(rows)) is not None:
        asked.append(number)
        search.answer(rows, number, "good" if number <= 5 else "bad")
    assert search.next(rows) is None
    assert (search.suspects(rows), 4 in asked) == ([6], False)


def test_only_versions_in_question_are_answered_and_only_published_ones_are_searched() -> None:
    rows = chain(8)
    rows[0] |= {"state": "pending"}
    search = begin(rows, "coding", None, None)
    assert search.bad == 7
    search.answer(rows, 4, "bad")
    with pytest.raises(InvalidInput, match=r"v6 is not in question \(in question: v2 to v3\)"):
        search.answer(rows, 6, "good")
    for good, bad in ((3, 3), (5, 2)):
        with pytest.raises(InvalidInput, match="must be before"):
            begin(rows, "coding", good, bad)
    with pytest.raises(InvalidInput, match="v8 was not published"):
        begin(rows, "coding", 1, 8)
    with pytest.raises(NotFound):
        begin([], "coding", None, None)


def test_a_search_is_kept_and_a_file_that_cannot_be_read_is_named(paths: Paths) -> None:
    rows = chain(8)
    with pytest.raises(NotFound):
        bisecting.running(paths, rows, "coding")
    search = begin(rows, "coding", 2, 8)
    search.answer(rows, 5, "good")
    bisecting.save(paths, search)
    again = bisecting.running(paths, rows, "coding")
    assert again == search
    with pytest.raises(Conflict):
        bisecting.refuse_running(again, rows)
    place = paths.state / "bisect" / "coding.json"
    place.write_text("{")
    with pytest.raises(Failed, match="cannot be read"):
        bisecting.load(paths, "coding")
    assert bisecting.drop(paths, "coding")
    assert not bisecting.drop(paths, "coding")


def test_one_version_alone_is_nothing_to_search() -> None:
    with pytest.raises(InvalidInput, match="has one version") as refused:
        begin(chain(1), "coding", None, None)
    assert refused.value.hint == "reef versions list -s coding"


@pytest.mark.parametrize(
    ("good", "bad", "answers"),
    [(5, 1, "{}"), (1, 99, "{}"), (1, 8, '{"8": "good"}'), (0, 8, "{}"), ("1e999", 8, "{}"), (True, "[]", "{}")],
)
def test_a_kept_search_that_does_not_fit_the_versions_is_refused_with_what_forgets_it(
    paths: Paths, good: object, bad: object, answers: str
) -> None:
    bisecting.save(paths, begin(chain(8), "coding", 1, 8))
    place = paths.state / "bisect" / "coding.json"
    place.write_text(f'{{"good": {str(good).lower()}, "bad": {bad}, "answers": {answers}}}')
    with pytest.raises(Failed) as failed:
        bisecting.running(paths, chain(8), "coding")
    assert failed.value.hint == "reef versions bisect reset -s coding"
