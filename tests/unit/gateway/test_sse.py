"""Streams cut at any place, in any legal framing, read and passed on the same."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reef.gateway.chat import ChatDialect
from reef.gateway.sse import EndWatch, EventReader
from reef.gateway.streaming import watch_of

DATA = ('{"a":"[DONE]"}', '{"b":"x\\n"}', "{}", '{"c":"data: [DONE]"}')


def stream(newline: str, blank: str, before: str, end: str) -> tuple[bytes, bytes]:
    """A whole stream and its ending event."""
    events = "".join(f"{before}data:{blank}{data}{newline * 2}" for data in DATA)
    ending = f"data:{blank}[DONE]{end}"
    named = before if not before.startswith(":") else ""
    return (events + before + ending).encode(), (named + ending).encode()


@given(
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    blank=st.sampled_from(["", " "]),
    before=st.sampled_from(["", ": ping\n", ": ping\r\n\r\n", "event: message\nid: 3\n", "retry: 1\r\n"]),
    ends=st.integers(0, 2),
    cuts=st.lists(st.integers(0, 400), max_size=30),
)
def test_bytes_pass_unchanged_and_the_end_is_found_wherever_the_stream_is_cut(
    newline: str, blank: str, before: str, ends: int, cuts: list[int]
) -> None:
    whole, ending = stream(newline, blank, before, newline * ends)
    watch = EndWatch(ChatDialect().is_end, ChatDialect().end_tokens)
    reader = EventReader()
    passed = last = b""
    data: list[bytes] = []
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    for start, stop in pairwise(places):
        out, end = watch.feed(whole[start:stop])
        passed, last = passed + out, last + end
        data += [event.data for event in reader.feed(whole[start:stop])]
        # Only what may be the beginning of the end is ever kept back.
        assert len(passed) + len(last) >= stop - 40
    out, end = watch.finish()
    data += [event.data for event in reader.finish()]
    assert passed + out + last + end == whole
    assert last + end == ending
    assert data == [*(text.encode() for text in DATA), b"[DONE]"]


def test_an_event_is_passed_on_with_the_piece_that_brought_it() -> None:
    watch = EndWatch(ChatDialect().is_end, ChatDialect().end_tokens)
    for piece in (b'data: {"a":1}\n\n', b'data: {"a"', b":2}\n\n: ping\n\n", b'data: {"x":"[DONE]"}\n\n'):
        assert watch.feed(piece) == (piece, b"")
    assert watch.feed(b"data: [DO") == (b"", b"")
    assert watch.feed(b"NE]\n\n") == (b"", b"data: [DONE]\n\n")
    assert watch.feed(b": bye\n") == (b"", b": bye\n")


USAGE = b'data: {"choices":[],"usage":{"total_tokens":3}}\n\n'
COUNTED = b'data: {"choices":[{"delta":{}}],"usage":{"total_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"


@given(cuts=st.lists(st.integers(0, 400), max_size=30), comment=st.sampled_from([b"", b": ping\n\n"]))
def test_the_usage_right_before_the_end_belongs_to_the_ending_wherever_the_stream_is_cut(
    cuts: list[int], comment: bytes
) -> None:
    # The first usage is followed by more, so it is no part of the ending.
    whole = USAGE + COUNTED + USAGE + comment + DONE
    watch = watch_of(ChatDialect())
    passed = ending = b""
    for start, stop in pairwise(sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})):
        out, end = watch.feed(whole[start:stop])
        passed, ending = passed + out, ending + end
    assert (passed, ending, watch.ended) == (USAGE + COUNTED, USAGE + comment + DONE, True)


def test_the_usage_waits_for_the_next_event_and_no_other_event_does() -> None:
    watch = watch_of(ChatDialect())
    assert watch.feed(COUNTED) == (COUNTED, b"")
    assert watch.feed(USAGE) == (b"", b"")
    assert watch.feed(COUNTED) == (USAGE + COUNTED, b"")
    assert watch.feed(USAGE) == (b"", b"")
    assert watch.finish() == (USAGE, b"") and not watch.ended
    watch = watch_of(ChatDialect())
    assert watch.feed(USAGE + b"data: [DONE]") == (b"", b"")
    assert watch.finish() == (b"", USAGE + b"data: [DONE]") and watch.ended


def test_a_stream_without_an_end_goes_out_whole() -> None:
    watch = EndWatch(ChatDialect().is_end, ChatDialect().end_tokens)
    assert watch.feed(b'data: {"a":1}\n\ndata: [DO') == (b'data: {"a":1}\n\n', b"")
    assert watch.finish() == (b"data: [DO", b"")
    assert not watch.ended


def test_an_event_of_many_lines_and_pieces_is_read_once() -> None:
    reader = EventReader()
    assert reader.feed(b'data: {"a":\ndata: 1') == []
    assert [event.data for event in reader.feed(b"}\n\r\ndata: x\r")] == [b'{"a":\n1}']
    assert [event.data for event in reader.feed(b"\n\r\n")] == [b"x"]
    assert reader.finish() == []
