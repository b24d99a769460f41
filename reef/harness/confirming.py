"""A decision that is asked for inside a session and taken outside of it: the wrapper's socket.

The wrapper is the agent's parent and holds the person key; the agent does not. `REEF_CONFIRM` names a Unix socket of
the wrapper (0600, gone with the session) that knows one verb: ask the person to install a version. Whoever is in the
session writes one line of JSON and reads lines of JSON until the end:

    → {"install": 3}                          a version of the session's scenario; null: the newest
    ← {"asking": {"version": 3}}              the person sees the change now; the agent stands still meanwhile
    ← {"progress": "…", "seconds": 1.2}       the person said yes; any number of these
    ← {"installed": {"version": 3, "changed": true, …}}     or
    ← {"declined": {"version": 3}}                           or
    ← {"error": {"code", "message", "hint"}}

The last of these three is always the last line. `"screen": "alternate"` beside `install` says that the agent draws on
the terminal's other screen, so that it is made to draw itself anew. The question may stay open for as long as the
person likes: a caller sets no limit of time.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reef.errors import Failed, InvalidInput, ReefError, Refused
from reef.paths import Paths, ensure_private

Json = dict[str, Any]
Say = Callable[[Json], None]
CONFIRM_VARIABLE = "REEF_CONFIRM"
SCREENS = ("main", "alternate")
_LONGEST_LINE = 4096
_LONGEST_PATH = 100
"""Bytes of a socket's path; systems end at 104 to 108."""
_READ_S = 5.0


class Confirming:
    """The socket of one session. `decide` gets a version (None: the newest), a screen and where to tell progress, and
    returns the last line; it runs in the socket's own thread, one question after the other."""

    def __init__(self, paths: Paths, decide: Callable[[int | None, str, Say], Json]) -> None:
        self._decide = decide
        self._folder: Path | None = None
        self.path = ensure_private(paths.state / "confirm") / f"{secrets.token_hex(8)}.sock"
        _sweep(self.path.parent)
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            # Where the person's folder for temporary files is itself too long for a socket, the system's is not.
            too_deep = len(os.fsencode(tempfile.gettempdir())) > _LONGEST_PATH - len("/reef-12345678/confirm.sock")
            self._folder = Path(tempfile.mkdtemp(prefix="reef-", dir="/tmp" if too_deep else None))
            self.path = self._folder / "confirm.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self.path))
        self.path.chmod(0o600)
        self._socket.listen(4)
        self._thread = threading.Thread(target=self._serve, name="confirm", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take the socket away. A question that is open is the caller's to end first."""
        self.path.unlink(missing_ok=True)
        # Closing alone does not wake a thread that waits in `accept`.
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            # Some systems do not know this for a socket that listens, and wake the thread by the closing below.
            pass
        self._socket.close()
        self._thread.join(timeout=2)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        def say(line: Json) -> None:
            try:
                connection.sendall(json.dumps(line).encode() + b"\n")
            except OSError:
                # Whoever asked has gone; what the person decided is done all the same.
                return

        try:
            connection.settimeout(_READ_S)
            _same_user(connection)
            version, screen = _request(connection)
            connection.settimeout(None)
            say(self._decide(version, screen, say))
        except ReefError as error:
            say(error.to_json())
        except OSError as error:
            say(Failed(f"the question broke off: {error.strerror or error}").to_json())


def _sweep(folder: Path) -> None:
    """Remove the sockets of wrappers that were killed."""
    for place in folder.glob("*.sock"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(str(place))
            except ConnectionRefusedError:
                place.unlink(missing_ok=True)
            except OSError:
                # Gone meanwhile, or too busy to answer: its own wrapper takes it away.
                continue


def _same_user(connection: socket.socket) -> None:
    """Raises Refused for another user's process. The folder keeps them out too, where the file system knows users."""
    if not sys.platform.startswith("linux"):
        return
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    if struct.unpack("3i", found)[1] != os.getuid():
        raise Refused("only the user of this session may ask here")


def _request(connection: socket.socket) -> tuple[int | None, str]:
    got = b""
    while b"\n" not in got and len(got) <= _LONGEST_LINE:
        block = connection.recv(_LONGEST_LINE)
        if not block:
            break
        got += block
    try:
        body = json.loads(got[:_LONGEST_LINE].partition(b"\n")[0])
    except (ValueError, RecursionError):
        raise InvalidInput("the line is not JSON", 'use {"install": 3}') from None
    if not isinstance(body, dict) or "install" not in body or set(body) - {"install", "screen"}:
        raise InvalidInput("this socket installs a version and nothing else", 'use {"install": 3}')
    version, screen = body["install"], body.get("screen", "main")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 1):
        raise InvalidInput("'install' is neither a version's number nor null", 'use {"install": 3}')
    if screen not in SCREENS:
        raise InvalidInput(f"'screen' is none of {', '.join(SCREENS)}", 'use {"install": 3, "screen": "main"}')
    return version, screen


def ask_person(place: str, version: int | None, screen: str = "main") -> Iterator[Json]:
    """The lines of one question, asked from inside a session. Raises Refused when no wrapper answers at `place`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(place)
            connection.sendall(json.dumps({"install": version, "screen": screen}).encode() + b"\n")
            with connection.makefile("rb") as lines:
                for line in lines:
                    yield json.loads(line)
        except OSError:
            raise Refused("the wrapper of this session does not answer", "reef versions install") from None
