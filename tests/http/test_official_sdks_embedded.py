"""The official SDKs on the embedded model: through reef they get the objects that the model's own server gives."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from reef.engines import weights
from reef.engines.embedded import EmbeddedEngine
from reef.paths import Paths
from tests.http import sdk_calls as sdk
from tests.http.sdk_calls import Clients
from tests.unit.gateway.serving import serving

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.timeout(300)]

SAME: dict[str, Any] = {"extra_body": {"temperature": 0}}
SHORT = {**SAME, "max_tokens": 12}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "chat": (sdk.chat, SHORT),
    "chat with a tool": (sdk.chat, {**SHORT, "tools": sdk.CHAT_TOOLS, "tool_choice": "required", "max_tokens": 60}),
    "chat stream": (sdk.chat_stream, SHORT),
    "chat stream with usage": (sdk.chat_stream, {**SHORT, "stream_options": sdk.USAGE}),
    "chat helper": (sdk.chat_helper, {**SAME, "stream_options": sdk.USAGE, "stop": ["."]}),
    "response": (sdk.response, {**SAME, "max_output_tokens": 12}),
    "response stream": (sdk.response_stream, {**SAME, "max_output_tokens": 12}),
    "message": (sdk.message, SHORT),
    "message stream": (sdk.message_stream, SHORT),
    "message helper": (sdk.message_helper, SHORT),
}
NEW_EACH_TIME = ("id", "item_id", "response_id", "call_id", "created", "created_at", "completed_at", "timings")
"""What the model's server makes anew for every call: names, times, and how long it took."""
TOO_LONG = "word " * 12_000


def settled(found: Any) -> Any:
    """Plain values without what is new in each call, and without what the cache of the last call changes."""
    if isinstance(found, dict):
        kept = {name: settled(value) for name, value in found.items() if name not in NEW_EACH_TIME}
        return {name: value for name, value in kept.items() if "cache" not in name and name != "input_tokens"}
    return [settled(value) for value in found] if isinstance(found, list) else found


async def test_an_sdk_gets_the_same_objects_and_errors_from_the_embedded_model_through_reef(
    paths: Paths, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths.models.mkdir(parents=True, exist_ok=True)
    stored = weights.fetch_here(tmp_path_factory.getbasetemp().parent / "reef-weights", lambda *_: None)
    os.link(stored, weights.model_file(paths))
    engine = EmbeddedEngine(paths)
    await engine.start()
    try:
        await engine.ready(60)
        key = engine.headers()["authorization"].removeprefix("Bearer ")
        async with serving(tmp_path, engine=engine) as reef:
            places = [Clients(engine.base_url.removesuffix("/v1"), key), Clients(reef.url)]
            assert await asyncio.to_thread(compared, *places) == len(CALLS)
    finally:
        await engine.stop()


def compared(direct: Clients, through: Clients) -> int:
    """Makes every call at both places; returns how many gave objects."""
    for name, (ask, more) in CALLS.items():
        own, found = (settled(sdk.outcome(at, ask, "Name a colour.", **more)) for at in (direct, through))
        assert found == own and "class" not in own, name
    for ask, kind in (
        (sdk.chat, openai.BadRequestError),
        (sdk.response, openai.BadRequestError),
        (sdk.message, anthropic.BadRequestError),
    ):
        own, found = (settled(sdk.outcome(at, ask, TOO_LONG)) for at in (direct, through))
        # The one sentence that is reef's own: it names both sizes in the same words for every model server.
        assert found["class"] is own["class"] is kind and found["status_code"] == own["status_code"] == 400
        assert re.search(r"request needs about [\d,]+ tokens, the model has 8,192", str(found["said"]))
    counts = [at.anthropic.messages.count_tokens(model="m", messages=sdk.said("x")) for at in (direct, through)]
    assert counts[0].input_tokens == counts[1].input_tokens > 0
    listed = [[model.id for model in at.openai.models.list()] for at in (direct, through)]
    assert listed[0] == listed[1] == [weights.SMOLLM2.name]
    return len(CALLS)
