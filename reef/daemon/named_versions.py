"""What a person may call the content of a scenario: a version, a step's candidate, or the base.

v3, 3, a release id   a version
s12                   what step 12 made, published or not
base                  v1
"""

from __future__ import annotations

import re
from typing import Any

from reef.daemon.house import House
from reef.errors import NotFound
from reef.ids import spans, version_number

Json = dict[str, Any]
BASE = "base"
_STEP = re.compile(r"s([1-9][0-9]{0,8})\Z")


async def catalog(house: House, scenario: str) -> list[Json]:
    """Every version of a scenario, oldest first, in the shape that all routes show."""
    found = await house.reading(lambda reader: reader.versions(scenario))
    return sorted((dict(version) for version in found), key=lambda version: int(version["version"]))


async def find_version(house: House, scenario: str, name: str) -> Json:
    """The version called `v3`, `3`, `base` or by its release id. Raises NotFound with those that there are."""
    found = await catalog(house, scenario)
    wanted = 1 if name == BASE else name if len(name) == 40 else version_number(name)
    for version in found:
        if wanted in (version["version"], version["release_id"]):
            return version
    shown = name[:12] if isinstance(wanted, str) else f"v{wanted}"
    there = spans("v", (version["version"] for version in found)) or "none yet"
    raise NotFound(
        f"scenario {scenario} has no version {shown} (versions: {there})", f"reef versions list -s {scenario}"
    )


async def find_content(house: House, scenario: str, name: str) -> tuple[str, str]:
    """What a name stands for: (how it is shown, release id). Raises NotFound with what there is."""
    step = _STEP.match(name)
    if step is None:
        version = await find_version(house, scenario, name)
        return f"v{version['version']}", str(version["release_id"])
    number = int(step.group(1))
    rows = await house.reading(lambda reader: reader.steps(scenario))
    made = {int(row["number"]): str(row["candidate"]) for row in rows if row["candidate"]}
    if number in made:
        return f"s{number}", made[number]
    there = spans("s", made) or "none"
    what = "made no candidate" if any(row["number"] == number for row in rows) else "is not there"
    raise NotFound(
        f"step {number} of scenario {scenario} {what} (candidates: {there})", f"reef steps list -s {scenario}"
    )
