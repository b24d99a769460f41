"""The effort that an agent sends reaches the upstream of a translated call where the person's settings say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reef.config import InferenceSection, Settings
from reef.engines.discovery import build
from reef.paths import Paths
from tests.unit.gateway.serving import serving


@pytest.mark.parametrize("setting", ["left-out", "carried"])
async def test_the_setting_decides_whether_an_effort_reaches_the_upstream_and_the_record_names_what_does_not(
    paths: Paths, tmp_path: Path, setting: str
) -> None:
    (tmp_path / "upstream").mkdir()
    async with serving(tmp_path / "upstream", speaks=("chat",)) as upstream:
        inference = InferenceSection(
            upstream_url=upstream.engine.base_url,
            upstream_api="openai",
            upstream_effort=setting,
        )
        engine = build(Settings(inference=inference), paths)
        async with serving(tmp_path, engine=engine) as reef:
            asks: dict[str, Any] = {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}
            reply = await reef.ask("messages", "hello", **asks)
            sent = json.loads(upstream.seen()[0]["body"])
            notes = json.loads((await reef.settled())[0]["notes_json"])["translated"]
    carried = setting == "carried"
    assert sent.get("reasoning_effort") == ("high" if carried else None)
    left = [] if carried else ["output_config.effort", "thinking"]
    assert notes.get("fields_left_out", []) == left
    named = "; fields-left-out=" + ",".join(left) if left else ""
    assert reply.headers["x-reef-translated"] == "messages to chat" + named
