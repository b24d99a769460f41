"""What a change needs of a machine: `{"kind", "name", "check"?, "prompt"?}`, as an ask and a version have it.

env          a variable (`check`, else `name`) that is set where the agent is started, or kept by `reef setup`
binary       a program on the PATH
permission   only the person can say; shown and agreed to
service      the same; `check` is a command that finds out, and runs only after the person has seen it
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reef.errors import Refused
from reef.text import one_line

Json = Mapping[str, Any]


def of(row: Mapping[str, Any]) -> list[Json]:
    """The needs in a row of a version or an ask; whatever else stands among them is none."""
    found = row.get("requires")
    return [need for need in found if isinstance(need, Mapping)] if isinstance(found, list) else []


def met(need: Json, environ: Mapping[str, str] | None = None) -> bool | None:
    """Whether a need is met in `environ` (None: this process's own); None where only the person can say."""
    around = os.environ if environ is None else environ
    if need.get("kind") == "env":
        return bool(around.get(variable(need)))
    if need.get("kind") == "binary":
        return shutil.which(str(need.get("name")), path=around.get("PATH")) is not None
    return None


def shown(need: Json, environ: Mapping[str, str] | None = None) -> str:
    """A need in words: `env GITHUB_TOKEN (not set)`, `binary gh`, `service db: http://…`; foreign text made safe."""
    kind = one_line(str(need.get("kind")), 20)
    if kind == "env":
        return f"env {one_line(variable(need), 100)}" + ("" if met(need, environ) else " (not set)")
    text = f"{kind} {one_line(str(need.get('name')), 100)}"
    if kind == "binary":
        return text + ("" if met(need, environ) else " (not on the PATH)")
    more = need.get("prompt") or need.get("check")
    return f"{text}: {one_line(str(more), 200)}" if more else text


def only_the_person_knows(needs: Sequence[Json]) -> list[Json]:
    """The needs that no look at the machine can settle."""
    return [need for need in needs if met(need) is None]


def key(need: Json) -> str:
    """What tells a need from another: kind, name and check. Who agreed to one has not agreed to another check."""
    return " ".join(str(need.get(part) or "") for part in ("kind", "name", "check")).strip()


def open_needs(needs: Iterable[Json], environ: Mapping[str, str], agreed: Iterable[str]) -> list[Json]:
    """The needs that are not met: by `environ`, by the PATH in it, or by the person's word in `agreed` (keys)."""
    said = set(agreed)
    return [need for need in needs if not (met(need, environ) or key(need) in said)]


def newest_without(versions: Iterable[Json], below: int) -> int | None:
    """The newest published version before `below` that needs nothing."""
    free = [
        int(row["version"])
        for row in versions
        if row["version"] < below and row.get("state") == "published" and not row.get("requires")
    ]
    return max(free, default=None)


def refuse(what: str, unmet: Sequence[Json], scenario: str, versions: Iterable[Json] = (), below: int = 0) -> None:
    """Raises Refused (exit 5) for the first of `unmet`; `what` needs it, for example `v5`.

    Where the chain of `versions` has an older one that needs nothing, the sentence names it.
    """
    if not unmet:
        return
    need = unmet[0]
    kind, name = one_line(str(need.get("kind")), 20), one_line(str(need.get("name")), 100)
    setup = f"reef setup -s {scenario}"
    free = newest_without(versions, below)
    instead = f"; v{free} is the newest that needs nothing" if free is not None else ""
    if kind == "env":
        named = one_line(variable(need), 100)
        raise Refused(f"{what} needs the variable {named}, which is not set{instead}", f"{setup} --set {named}")
    if kind == "binary":
        raise Refused(f"{what} needs the program {name}, which is not on the PATH{instead}", f"command -v {name}")
    raise Refused(f"{what} needs the {kind} {name}, which nobody has confirmed{instead}", f"{setup} --mark {name}")


def left_to_the_person(
    what: str, unmet: Sequence[Json], scenario: str, versions: Iterable[Json] = (), below: int = 0
) -> list[Json]:
    """Those of `unmet` that only the person's word can settle. Raises Refused, as `refuse`, for any other."""
    rest = only_the_person_knows(unmet)
    refuse(what, [need for need in unmet if need not in rest], scenario, versions, below)
    return rest


def variable(need: Json) -> str:
    """The name of the variable that an `env` need is about."""
    return str(need.get("check") or need.get("name"))
