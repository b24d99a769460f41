"""B36: a conversation that every call repeats, an image included, is stored once, and every call is shown as it was."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

from tests.http.running import Home, wait_for

TURNS = 40
IMAGE_BYTES = 750_000
"""1 MB in base64."""


def size_on_disk(home: Home) -> int:
    """The store and what waits beside it."""
    store = home.paths.database
    files = (store, store.with_name(store.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def conversation() -> list[bytes]:
    """What an agent sends: all that was said, again with every turn; the image comes with the first."""
    chance = random.Random(36)
    image = base64.b64encode(chance.randbytes(IMAGE_BYTES)).decode()
    look = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
    ]
    talk: list[dict[str, Any]] = [
        {"role": "system", "content": "Look closely. " * 400},
        {"role": "user", "content": look},
    ]
    sent = []
    for turn in range(TURNS):
        sent.append(json.dumps({"model": "m", "messages": talk, "stream": turn % 2 == 0}).encode())
        words = f"Turn {turn}: " + base64.b64encode(chance.randbytes(700)).decode()
        talk = [*talk, {"role": "assistant", "content": words[:300]}, {"role": "user", "content": words}]
    return sent


def test_forty_turns_with_an_image_take_under_three_megabytes_and_each_is_shown_as_it_was_sent(
    new_home: Callable[..., Home],
) -> None:
    home = new_home().start()
    empty = size_on_disk(home)
    sent = conversation()
    assert sum(map(len, sent)) > 40_000_000
    receipts = []
    for body in sent:
        reply = home.nobody.post(
            "/v1/chat/completions", content=body, headers={"content-type": "application/json"}, timeout=60
        )
        assert reply.status_code == 200
        receipts.append(reply.headers["x-reef-agent-record-id"])
    for receipt, body in zip(receipts, sent, strict=True):
        # A large request follows its row by itself.
        shown = wait_for(lambda receipt=receipt: home.person.get(f"/reef/records/{receipt}/request").content)
        assert shown == body
    assert home.stop() == 0
    assert size_on_disk(home) - empty < 3_000_000
