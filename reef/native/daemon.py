"""What a session may ask of the daemon with its token: file an ask, follow it, list versions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx

from reef.errors import DaemonUnreachable, Failed, ReefError, from_json
from reef.native.deciding import may_ask
from reef.native.home import Home

Json = dict[str, Any]
_TIMEOUT_S = 15.0
_NOTICE_S = 2.0


class Daemon:
    """The daemon of this session."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def scenario(self) -> str:
        return self._home.scenario

    def ask(self, text: str) -> Json:
        """File an ask. Returns `{"number", "scenario", "agent_record_id", …}`."""
        body = {"text": text, "session": self._home.session, "release_id": self.installed()[1]}
        return self._call("POST", "/reef/train", body)

    def progress(self, ask_id: str) -> Json:
        """How an ask stands."""
        return self._call("GET", f"/reef/harness/requests/{ask_id}/progress")

    def releases(self, quick: bool = False) -> tuple[str, list[Json]]:
        """The scenario and its versions."""
        found = self._call("GET", "/reef/harness/releases", timeout=_NOTICE_S if quick else _TIMEOUT_S)
        return str(found["scenario"]), list(found["releases"])

    def installed(self) -> tuple[int, str | None]:
        """Number and release of the installed version, read anew: an install may have happened meanwhile."""
        try:
            tree = Path(os.environ["REEF_TREE"])
            facts = json.loads((tree.parent / "install.json").read_text(encoding="utf-8"))
            return int(facts["version"]), str(facts["release_id"])
        except (KeyError, OSError, ValueError, TypeError):
            number = os.environ.get("REEF_VERSION", "").removeprefix("v")
            return int(number) if number.isdigit() else 0, os.environ.get("REEF_RELEASE")

    def notice(self) -> str | None:
        """One line when a newer version is served than the installed one; None otherwise, and without a daemon."""
        try:
            scenario, releases = self.releases(quick=True)
        except ReefError:
            # The first model call says that the daemon is not there; a session starts without its help.
            return None
        head = next((row for row in releases if row.get("current")), None)
        here = self.installed()[0]
        if head is None or head["version"] <= here:
            return None
        served = f"reef: v{head['version']} of scenario {scenario} is served, v{here} is installed here"
        if any(row["version"] == here and row.get("pinned") for row in releases):
            return f"{served}; pinned, so it stays: reef versions unpin"
        take = f"/versions v{head['version']} install" if may_ask() else "`reef-native update` in another terminal"
        return f"{served}; install it with {take}"

    def _call(self, method: str, path: str, body: Json | None = None, timeout: float = _TIMEOUT_S) -> Json:
        if self._home.url is None:
            raise DaemonUnreachable("this run has no daemon", "reef-native")
        headers = {"authorization": f"Bearer {self._home.model.key}"}
        try:
            with httpx.Client(trust_env=False, timeout=timeout) as client:
                reply = client.request(method, self._home.url + path, headers=headers, json=body)
        except httpx.HTTPError:
            raise DaemonUnreachable("the daemon is not running", "reef up") from None
        try:
            value = reply.json()
        except ValueError:
            value = None
        if reply.status_code >= 400:
            raise from_json(reply.status_code, value)
        if not isinstance(value, dict):
            raise Failed("the daemon answered with something that is no object", "reef logs")
        return value
