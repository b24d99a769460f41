"""`python -m reef.learning.check`: whether a recipe loads with its own keys, found out in a process of its own.

Reads `{"recipe", "config"}` on its standard input and writes `{}`, or an error as routes answer it. What the recipe's
code prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from reef.errors import ConfigError, ReefError, from_json
from reef.learning.loader import load_recipe
from reef.learning.running import child_environment
from reef.paths import Paths

_WAIT_S = 30.0


def check_keys(recipe: str, config: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Raises the error of a recipe that does not load with `config`. Its code runs in a child, which has no secret."""
    asked = json.dumps({"recipe": recipe, "config": dict(config)})
    hint = "reef recipes list"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "reef.learning.check"],
            env=child_environment(environ),
            input=asked,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"recipe {recipe} did not load within {_WAIT_S:.0f} s", hint) from None
    if done.returncode == 0 and done.stdout:
        answer = json.loads(done.stdout)
        if answer:
            raise from_json(400, answer)
        return
    why = [line for line in done.stderr.splitlines() if line.strip()]
    raise ConfigError(f"recipe {recipe} cannot be loaded: {why[-1].strip() if why else done.returncode}", hint)


def main() -> int:
    """Load what is asked for on standard input."""
    asked = json.loads(sys.stdin.read())
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Unbuffered, so that the last line there is the error that ended this process.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    told: dict[str, Any] = {}
    try:
        load_recipe(asked["recipe"], asked["config"], Paths.from_environ())
    except ReefError as error:
        told = error.to_json()
    with answer:
        answer.write(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
