"""`python -m reef.daemon`: settings in, a daemon out.

The settings come as JSON in `REEF_SERVE`: `{"flags": [[key, text]], "deployment": path|null, "foreground": bool}`, or
`{"again": true}` for a start that nobody typed. It and the secrets of the environment are taken out at once, so that no
child inherits them.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any

from reef.errors import ReefError, UsageError
from reef.paths import Paths, unusable

_TAKEN = ("REEF_TOKEN", "REEF_UPSTREAM_API_KEY", "REEF_MULTIMODAL_API_KEY", "REEF_SESSION", "REEF_SESSION_ID")


def main() -> int:
    """Run the daemon; returns the exit status."""
    foreground = True
    try:
        wanted = _wanted()
        foreground = bool(wanted.get("foreground", True))
        return _serve(wanted, foreground)
    except ReefError as error:
        return _end(error, foreground)
    except OSError as error:
        # Any file of the home may be the first one that a full disk or a closed folder refuses.
        problem = unusable(error, "the daemon cannot go on")
        if problem is None:
            raise
        return _end(problem, foreground)


def _serve(wanted: dict[str, Any], foreground: bool) -> int:
    # Every file that the daemon or a child of it makes is the person's own.
    os.umask(0o077)
    paths = Paths.from_environ()
    from reef.daemon.starting import understand

    start = understand(wanted, os.environ, paths)
    for name in _TAKEN:
        os.environ.pop(name, None)
    paths.make()
    from reef.daemon.lifecycle import serve
    from reef.daemon.logs import log_to

    log_to(paths.daemon_log, foreground)
    try:
        return serve(start, paths)
    except ReefError as error:
        # Not louder: the person reads it as the error that the command ends with.
        logging.getLogger("reef.daemon").info("not started: %s", error.message)
        raise


def _wanted() -> dict[str, Any]:
    try:
        found = json.loads(os.environ.pop("REEF_SERVE", "{}"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError("REEF_SERVE does not hold a JSON object", "reef serve")
    return found


def _end(error: ReefError, foreground: bool) -> int:
    sys.stderr.write(_told(error, foreground) + "\n")
    sys.stderr.flush()
    return error.exit_code


def _told(error: ReefError, foreground: bool) -> str:
    if not foreground:
        return json.dumps(error.to_json())
    return f"error: {error.message}" + (f"\n\nhint: {error.hint}" if error.hint else "")


if __name__ == "__main__":
    status = main()
    logging.shutdown()
    sys.stdout.flush()
    # A thread may still wait for an install; it must not keep a stopped daemon alive.
    os._exit(status)
