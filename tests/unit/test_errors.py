"""Errors on their way over HTTP."""

from __future__ import annotations

import pytest

from reef.errors import Failed, ReefError, Unavailable, from_json
from reef.records.writer import RecordingFailed
from reef.versions.child_git import GitFailed


@pytest.mark.parametrize(
    ("error", "kind"),
    [(Failed("x", "y"), Failed), (GitFailed("init", 1, "x"), Failed), (RecordingFailed("x"), RecordingFailed)],
)
def test_an_error_is_rebuilt_as_the_kind_that_its_code_names(error: ReefError, kind: type[ReefError]) -> None:
    found = from_json(error.http_status, error.to_json())
    assert type(found) is kind
    assert (found.message, found.hint) == (error.message, error.hint)


def test_an_answer_of_another_shape_names_its_status() -> None:
    assert from_json(502, None).message == "the daemon answered with status 502"
    assert type(from_json(503, Unavailable("x").to_json())) is Unavailable
