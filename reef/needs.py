"""What a change needs of a machine: `{"kind", "name", "check"?, "prompt"?}`, as an ask and a version have it.

env          a variable (`check`, else `name`) that is set where the agent is started
binary       a program on the PATH
permission   only the person can say; shown and agreed to
service      the same
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from reef.errors import Refused
from reef.text import one_line

Json = Mapping[str, Any]


def met(need: Json, environ: Mapping[str, str] | None = None) -> bool | None:
    """Whether a need is met in `environ` (None: this process's own); None where only the person can say."""
    around = os.environ if environ is None else environ
    if need.get("kind") == "env":
        return bool(around.get(_variable(need)))
    if need.get("kind") == "binary":
        return shutil.which(str(need.get("name")), path=around.get("PATH")) is not None
    return None


def shown(need: Json, environ: Mapping[str, str] | None = None) -> str:
    """A need in words: `env GITHUB_TOKEN (not set)`, `binary gh`, `service db: http://…`; foreign text made safe."""
    kind = one_line(str(need.get("kind")), 20)
    if kind == "env":
        return f"env {one_line(_variable(need), 100)}" + ("" if met(need, environ) else " (not set)")
    text = f"{kind} {one_line(str(need.get('name')), 100)}"
    if kind == "binary":
        return text + ("" if met(need, environ) else " (not on the PATH)")
    more = need.get("prompt") or need.get("check")
    return f"{text}: {one_line(str(more), 200)}" if more else text


def only_the_person_knows(needs: Sequence[Json]) -> list[Json]:
    """The needs that no look at the machine can settle."""
    return [need for need in needs if met(need) is None]


def refuse_unmet(what: str, needs: Sequence[Json], environ: Mapping[str, str] | None = None) -> None:
    """Raises Refused (exit 5) for the first need that is not met; `what` needs it, for example `v5`."""
    for need in needs:
        if met(need, environ) is not False:
            continue
        name = one_line(str(need.get("name")), 100)
        if need.get("kind") == "env":
            variable = one_line(_variable(need), 100)
            raise Refused(f"{what} needs the variable {variable}, which is not set", f"export {variable}=…")
        raise Refused(f"{what} needs the program {name}, which is not on the PATH", f"command -v {name}")


def _variable(need: Json) -> str:
    return str(need.get("check") or need.get("name"))
