"""The install script that `curl … | bash` runs, and the program it calls: `python -m reef.harness.script NAME ADAPTER`.

The script holds no address and no key: it starts this reef's own interpreter, which finds the daemon of this home, has
it prove itself, and asks it to install. A script that is cut off anywhere does nothing, since its last line is the only
one that calls anything, and it stands in braces: without the closing one, a shell runs nothing of it.

`--uninstall` takes the install away again.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping

from reef.errors import Failed, ReefError, Refused, UsageError
from reef.harness.install import home_variables
from reef.paths import Paths
from reef.text import one_line, told

_USAGE = "python -m reef.harness.script SCENARIO ADAPTER [--uninstall]"
_UNINSTALL = "--uninstall"


def install_script(
    paths: Paths, scenario: str, adapter: str, python: str, environ: Mapping[str, str] | None = None
) -> str:
    """A POSIX shell script that installs the head of `scenario` for `adapter` on this machine.

    `python` is the interpreter of this reef. Nothing of the request that fetched the script is in it but names that
    were checked.
    """
    places = home_variables(paths, os.environ if environ is None else environ) | {"REEF_BIN_DIR": str(paths.bin)}
    exported = "\n".join(f"    {name}={shlex.quote(value)}; export {name}" for name, value in sorted(places.items()))
    return f"""#!/bin/sh
# Installs the harness of scenario {scenario} for {adapter}: asks this machine's reef daemon, which does it.
set -eu

reef_install() {{
    python={shlex.quote(python)}
    if [ ! -x "$python" ]; then
        printf 'error: the Python of this reef is gone: %s\\nhint: ./install.sh\\n' "$python" >&2
        exit 1
    fi
{exported}
    exec "$python" -P -m reef.harness.script {shlex.quote(scenario)} {shlex.quote(adapter)} "$@" </dev/null
}}

{{ reef_install "$@"; }}
"""


def main(argv: list[str]) -> int:
    """Ask the daemon to install, or to take it away, and tell what it does. Returns the exit status."""
    try:
        if len(argv) < 2:
            raise UsageError("the install needs a scenario and an adapter", _USAGE)
        scenario, adapter, *more = argv
        unused = " ".join(word for word in more if word != _UNINSTALL)
        if unused:
            where = "everything goes into reef's own folders"
            sys.stderr.write(f"note: {one_line(unused, 120)} is not used: {where}\n")
        if _UNINSTALL in more:
            for place in _remove(scenario, adapter):
                sys.stdout.write(f"removed {one_line(place, 4096)}\n")
            return 0
        done = _install(scenario, adapter)
    except ReefError as error:
        sys.stderr.write(told(error.message, error.hint))
        return error.exit_code
    what = "installed" if done["changed"] else "already installed"
    name, version = one_line(str(done["scenario"])), done["version"]
    sys.stdout.write(f"{what}: v{version} of scenario {name} for {adapter} in {done['path']}\n")
    sys.stdout.write(f"start it with {done['wrapper']}\n")
    return 0


def _install(scenario: str, adapter: str) -> dict[str, object]:
    # The daemon makes the script and must not load what only the program behind it needs.
    from reef.client import Client, in_session

    if in_session():
        raise Refused("an agent's session cannot install", f"reef versions install -s {scenario}, outside the agent")
    with Client.connect(Paths.from_environ(), start=False) as client:
        for line in client.install_harness(scenario, adapter):
            if "installed" in line:
                return dict(line["installed"])
            sys.stderr.write(f"  {one_line(str(line.get('progress', '')), 120)}\n")
            sys.stderr.flush()
    raise Failed("the daemon ended the install without an answer", "reef logs")


def _remove(scenario: str, adapter: str) -> list[str]:
    from reef.client import Client, in_session

    if in_session():
        raise Refused(
            "an agent's session cannot remove", f"reef agents remove {adapter} -s {scenario}, outside the agent"
        )
    with Client.connect(Paths.from_environ(), start=False) as client:
        return [str(place) for place in client.remove_harness(scenario, adapter)["removed"]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
