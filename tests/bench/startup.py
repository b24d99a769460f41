"""How long commands take to start, printed as multiples of an empty interpreter: `python -m tests.bench.startup`.

`status` needs a running daemon (`reef up`); without one it is left out.
"""

from __future__ import annotations

import subprocess
import sys

from tests.bench.test_start import REEF, ratio

COMMANDS = (("--help",), ("--version",), ("help", "words"), ("paths",), ("versions", "--help"), ("config", "show"))


def main() -> None:
    """Measure each command by the median of seven runs, taking turns with the empty interpreter."""
    for command in COMMANDS:
        ratio(REEF, *command)
    if subprocess.run([REEF, "status"], capture_output=True, check=False).returncode == 0:
        ratio(REEF, "status")
    else:
        print("status: no daemon runs in this home", file=sys.stderr)


if __name__ == "__main__":
    main()
