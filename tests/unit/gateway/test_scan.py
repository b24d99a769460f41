"""Finding values in very large bodies: what a parser finds, on every input in time that grows with its length alone."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reef.errors import InvalidInput
from reef.gateway import scan
from reef.gateway.chat import ChatDialect
from reef.gateway.scan import SCAN_ABOVE

AWKWARD = 'a "quoted" \\ [ { ] } word\n'
TEXTS = st.text(max_size=20) | st.sampled_from([AWKWARD, "\\", '"', "{}", "[]", '\\"', ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=6),
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(TEXTS, VALUES, max_size=6), st.sampled_from([None, 1]))
def test_every_member_is_found_where_a_parser_finds_it(value: dict[str, object], indent: int | None) -> None:
    body = json.dumps(value, indent=indent).encode()
    found = scan.members(body)
    assert {name: json.loads(body[start:end]) for name, (start, end) in found.items()} == value


@settings(max_examples=40, deadline=None)
@given(st.lists(VALUES, max_size=8), st.integers(min_value=0, max_value=70))
def test_every_element_is_found_across_the_edges_of_windows(values: list[object], shift: int) -> None:
    values = ["x" * (64 * 1024 - shift), AWKWARD * 2000, *values]
    body = json.dumps(values).encode()
    found = [json.loads(body[start:end]) for start, end in scan.elements(body, (0, len(body)))]
    assert found == values


@pytest.mark.parametrize(
    "unit",
    [
        b"[],", b'"",', b"[1,2,", b'{"a":', b'\\"', b"\\", b'"', b"x", b"{", b"[", b"[[]],", b"[{]}",
        b"{" + b"a" * 30000, b"{" + b'"a\\n",' * 5000, b'{"a":"' + b"\\n" * 3000 + b'","b":[{',
    ],
)  # fmt: skip
def test_no_body_makes_the_scan_slow(unit: bytes) -> None:
    body = b'{"messages":[' + unit * (4 * 1024 * 1024 // len(unit))
    started = time.process_time()
    try:
        scan.members(body)
    except ValueError:
        assert unit
    assert time.process_time() - started < 10


@pytest.mark.parametrize("size", [0, SCAN_ABOVE])
def test_a_body_that_is_nested_too_deep_to_parse_is_refused_in_words_whatever_its_size(size: int) -> None:
    body = b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b',"x":"' + b"x" * size + b'"}'
    with pytest.raises(InvalidInput, match="not JSON"):
        ChatDialect().read_request(body)
