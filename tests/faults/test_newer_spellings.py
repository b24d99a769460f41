"""Newer words of chat go on untouched, and as the older ones where the person says that the server refuses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reef.engines.upstream import UpstreamEngine
from tests.unit.gateway.serving import serving

NEWER = (
    b'{"model":"m", "max_completion_tokens":5,\n'
    b' "messages":[{"role":"developer","content":"be brief"},{"role":"user","content":"hi"}], "x":1.50}'
)
PLAIN = b'{"model":"m", "max_tokens":5,\n "messages":[{"role":"user","content":"a developer said hi"}], "x":1.50}'


@pytest.mark.parametrize("body", [NEWER, PLAIN])
async def test_they_pass_untouched_by_default(tmp_path: Path, body: bytes) -> None:
    async with serving(tmp_path) as reef:
        assert (await reef.send(body)).status == 200
        assert reef.seen()[0]["body"].encode() == body


async def test_they_become_the_older_ones_where_that_is_set(tmp_path: Path) -> None:
    async with serving(tmp_path) as first:
        url = first.engine.base_url
        engine = UpstreamEngine(url, "m", dialects=("chat",), older_spellings=True)
        (tmp_path / "older").mkdir()
        async with serving(tmp_path / "older", engine=engine) as reef:
            for body in (NEWER, PLAIN):
                assert (await reef.send(body)).status == 200
            sent = [call["body"].encode() for call in first.seen()]
            assert json.loads(sent[0]) == {
                "model": "m",
                "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
                "max_tokens": 5,
                "x": 1.5,
            }
            assert sent[1] == PLAIN
            rows = await reef.settled(2)
            assert reef.request_of(rows[0]) == NEWER
            assert [row["notes_json"] for row in rows] == ['{"older_spellings":true}', None]
