"""What the person has provided for the versions of one agent, beside its install and in none of them.

    harness/<scenario>/<adapter>/env.json      values of variables, 0600
    harness/<scenario>/<adapter>/agreed.json   what the person has confirmed, with the time

A value goes from here into the environment of the agent and nowhere else; one that the person's shell sets wins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef import needs
from reef.errors import Failed
from reef.ids import scenario_name, utc_now
from reef.paths import Paths, unusable, write_atomic

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Provided:
    """What there is for one scenario and one agent."""

    folder: Path
    values: dict[str, str]
    agreed: dict[str, str]
    """Key of a need to when it was confirmed."""

    def environ(self, around: Mapping[str, str], wanted: Iterable[Json]) -> dict[str, str]:
        """`around` with the kept values of the variables that `wanted` names, where it does not set them itself."""
        names = {needs.variable(need) for need in wanted if need.get("kind") == "env"}
        kept = {name: value for name, value in self.values.items() if name in names and not around.get(name)}
        return {**around, **kept}

    def unmet(self, wanted: Sequence[Json], around: Mapping[str, str]) -> list[Json]:
        """What is missing of `wanted` for somebody whose shell is `around`."""
        return needs.open_needs(wanted, self.environ(around, wanted), self.agreed)

    def keep(self, name: str, value: str) -> None:
        """Keep the value of a variable."""
        self.values[name] = value
        _write(self.folder / "env.json", self.values)

    def agree(self, wanted: Iterable[Json]) -> None:
        """Keep that the person has confirmed these needs."""
        fresh = {needs.key(need): utc_now() for need in wanted}
        if fresh.keys() - self.agreed.keys():
            self.agreed.update(fresh)
            _write(self.folder / "agreed.json", self.agreed)


def provided(paths: Paths, scenario: str, adapter: str) -> Provided:
    """What the person has provided. Raises Failed for a file that cannot be read: without it nothing could be told."""
    folder = paths.harness / scenario_name(scenario) / adapter
    return Provided(folder, _read(folder / "env.json"), _read(folder / "agreed.json"))


def _read(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    except OSError as error:
        raise unusable(error, "what was provided cannot be read") or error from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise Failed(f"{file} holds no names with values", f"mv {file} {file}.old && reef setup")
    return found


def _write(file: Path, values: Mapping[str, str]) -> None:
    write_atomic(file, (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())
