"""`python -m reef.doctor`: one JSON object a line as each check ends; exit 5 when a check says no.

`--network` names addresses instead of checking, `--own` the folders that plain agents have without reef. The command
line shows these lines to people; this module writes them so that a check of a large store is seen while the next runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from reef.doctor import agents, calls, home, network, own, serving, store, versions
from reef.doctor.check import Check
from reef.errors import ReefError, Refused
from reef.paths import Paths


def checks(paths: Paths) -> Iterator[Check]:
    """Every check, the quick ones first."""
    yield from home.check(paths)
    yield from serving.check(paths)
    yield from store.check(paths.database)
    yield from calls.check(paths.database)
    yield from versions.check(paths)
    yield from agents.check(paths)


def main(arguments: list[str]) -> int:
    """Write the findings; returns the exit status."""
    paths = Paths.from_environ()
    try:
        if "--network" in arguments:
            for address in network.addresses(paths):
                _line({"address": asdict(address)})
            return 0
        if "--own" in arguments:
            for row in own.rows(paths):
                _line({"place": row})
            return 0
        bad = 0
        for found in checks(paths):
            bad += found.state == "bad"
            _line({"check": asdict(found)})
    except ReefError as error:
        _line(error.to_json())
        return error.exit_code
    return Refused.exit_code if bad else 0


def _line(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
