"""One ask, found by what a person calls it, and what its state means now."""

from __future__ import annotations

from typing import Any

from reef.daemon.house import House
from reef.errors import NotFound
from reef.ids import is_id

Json = dict[str, Any]

MEANINGS = {
    "queued": "it waits for its turn; one step runs at a time in a scenario",
    "proposing": "the change is being written",
    "evaluating": "the change is being checked with the real agent",
    "settling": "the decision is made and is being stored",
    "published": "the change is served now",
    "pending": "the change is ready and waits for the person",
    "rejected": "a check said no; what is served did not change",
    "skipped": "there was nothing to change",
    "failed": "the step did not get to a decision; what is served did not change",
    "cancelled": "somebody cancelled it; what is served did not change",
}


async def meaning_of(house: House, ask: Json) -> tuple[str, str]:
    """How far an ask is and what that means: its version may have been decided on, replaced or rolled back since."""
    state = ask["state"]
    if state == "running":
        state = house.supervisor.phase(ask["scenario"], ask["step"]) or "settling"
    head = house.publisher.head_now(ask["scenario"])
    if state not in ("published", "pending") or ask["version"] is None or head is None:
        return state, MEANINGS[state]
    made = await house.reading(lambda reader: reader.version(ask["scenario"], ask["version"]))
    if made["content_id"] == head.content_id:
        return state, MEANINGS["published"]
    if made["state"] == "pending":
        return state, MEANINGS["pending"]
    return state, f"it was published as v{made['version']}; v{head.number} is served now"


async def find_ask(house: House, reference: str, scenario: str | None = None) -> Json:
    """By id, or by number within `scenario` (default: `default`). Raises NotFound."""
    if is_id(reference):
        found: Json = await house.reading(lambda reader: reader.ask(reference))
        return found
    number = reference.removeprefix("#")
    if number.isascii() and number.isdigit():
        name = house.scenarios.known(scenario or "default", archived=True).name
        for ask in await house.reading(lambda reader: reader.asks(name)):
            if ask["number"] == int(number[:10]):
                return dict(ask)
        raise NotFound(f"scenario {name!r} has no ask {reference}", f"reef asks list --scenario {name}")
    raise NotFound(f"there is no ask {reference[:40]!r}", "reef asks list")
