"""Running a program of reef's own that works without the daemon, and reading what it says: one JSON object a line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from reef.cli.output import Progress
from reef.errors import Failed, from_json


def lines(module: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """What `python -m MODULE ARGUMENTS` writes, line by line. Raises the ReefError that it ends with."""
    # -P: a folder named `reef` where the person happens to be must not be taken for the package.
    command = [sys.executable, "-P", "-m", module, *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said = False
        for line in child.stdout:
            found = json.loads(line)
            if "error" in found:
                child.wait()
                raise from_json(500, found)
            said = True
            yield found
    if child.returncode and not said:
        raise Failed(f"{module} ended with status {child.returncode}", "set REEF_DEBUG=1 and run it again")


def worked(module: str, *arguments: str) -> dict[str, Any]:
    """The last line of such a program, its progress shown meanwhile. Raises the ReefError that it ends with."""
    progress, found = Progress(), {}
    try:
        for found in lines(module, *arguments):
            if "progress" in found and progress.live:
                told = found["progress"]
                progress.show(f"{told['what']} {told['percent']} %")
    finally:
        progress.clear()
    return found
