"""What a wrapper does with a decision that its session asked for: show the change, have the person's yes, install.

The answer is bound to the release that was shown: a version that takes its place meanwhile is not installed by it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from reef import needs
from reef.client import Client
from reef.errors import Conflict, Failed, NotFound, Refused
from reef.harness.adapter_file import Adapter
from reef.harness.confirming import Json, Say
from reef.harness.install import installed
from reef.harness.launch import Agent
from reef.harness.question import Question
from reef.paths import Paths
from reef.pinned import pinned
from reef.provided import Provided, provided
from reef.text import one_line


class Deciding:
    """Answers the questions of one session, `Confirming.decide`."""

    def __init__(self, paths: Paths, adapter: Adapter, scenario: str, agent: Agent) -> None:
        self._paths = paths
        self._adapter = adapter
        self._scenario = scenario
        self._agent = agent
        self._question = Question()
        self._declined: set[str] = set()

    def close(self) -> None:
        """End an open question with no."""
        self._question.close()

    def decide(self, version: int | None, screen: str, say: Say) -> Json:
        """Ask the person about a version (None: the pinned one, else the newest) and do what they say."""
        with Client.connect(self._paths, start=False) as client:
            rows = client.releases(self._scenario)["releases"]
            stays = pinned(client.pins(self._scenario)["pins"], self._adapter.name)
            row = _wanted(rows, version or stays, self._scenario)
            here = installed(self._paths, self._scenario, self._adapter.name)
            number, release = int(row["version"]), str(row["release_id"])
            if release == here.release_id:
                return {"installed": {"version": number, "release_id": release, "changed": False}}
            self._refuse_pinned(stays, number)
            if release in self._declined:
                raise Refused(f"the person has said no to v{number} in this session", self._paste(number))
            there = provided(self._paths, self._scenario, self._adapter.name)
            rest = self._needs(row, rows, there)
            files = client.diff(self._scenario, f"v{here.version}", f"v{number}")["files"]
            say({"asking": {"version": number}})
            if not self._asked(row, here.version, files, screen):
                self._declined.add(release)
                return {"declined": {"version": number}}
            there.agree(rest)
            head = next((found["version"] for found in rows if found.get("current")), None)
            return self._install(client, release, number, head, say)

    def _refuse_pinned(self, stays: int | None, number: int) -> None:
        """Raises Refused, before anybody is asked, for another version than the one that is pinned for this agent."""
        if stays not in (None, number):
            told = f"scenario {self._scenario} is pinned to v{stays} for {self._adapter.name}"
            raise Refused(f"{told}, so v{number} is not installed", f"reef versions unpin -s {self._scenario}")

    def _needs(self, row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], there: Provided) -> list[needs.Json]:
        """What only the person's yes can settle. Raises Refused for a variable or a program that is not there."""
        unmet, number = there.unmet(needs.of(row), os.environ), int(row["version"])
        return needs.left_to_the_person(f"v{number}", unmet, self._scenario, rows, number)

    def _asked(self, row: Mapping[str, Any], here: int, files: Sequence[Json], screen: str) -> bool:
        number = int(row["version"])
        title = f"An agent's session asks reef to install v{number} of scenario {self._scenario}. v{here} is installed."
        lines = [f"what   {one_line(str(row.get('summary') or row.get('operation')), 300)}"]
        if row.get("pending"):
            lines.append("code   it adds or changes what runs with your rights: read it before you say yes")
        lines += [f"needs  {needs.shown(need)}" for need in needs.of(row)]
        lines += ["", f"v{here} -> v{number}", *_changed(files)]
        own = screen == "alternate"
        with self._agent.still(redraw=own):
            question = f"Install v{number} for {self._adapter.title}?"
            return self._question.ask(title, lines, question, own, self._paste(number))

    def _install(self, client: Client, release: str, number: int, head: int | None, say: Say) -> Json:
        for line in client.install_harness(self._scenario, self._adapter.name, release, head):
            if "installed" in line:
                return {"installed": line["installed"]}
            say({name: line[name] for name in ("progress", "seconds") if name in line})
        raise Failed(f"the daemon ended the install of v{number} without an answer", "reef logs")

    def _paste(self, number: int) -> str:
        return f"reef versions install v{number} --adapter {self._adapter.name} -s {self._scenario}"


def _wanted(rows: Sequence[Mapping[str, Any]], version: int | None, scenario: str) -> Mapping[str, Any]:
    """The row of a version; without one the newest that is served or waits for the person."""
    listed = f"reef versions list -s {scenario}"
    can = [row for row in rows if row.get("current") or row.get("pending")]
    if version is None:
        if not can:
            raise NotFound(f"scenario {scenario} has no version yet", listed)
        return max(can, key=lambda row: int(row["version"]))
    for row in rows:
        if row["version"] == version:
            if row.get("state") not in ("published", "pending"):
                raise Conflict(f"v{version} is {row.get('state')} and cannot be installed", listed)
            return row
    newest = max((int(row["version"]) for row in rows), default=0)
    raise NotFound(f"scenario {scenario} has no version v{version} (newest: v{newest})", listed)


def _changed(files: Sequence[Json]) -> list[str]:
    lines: list[str] = []
    for file in files:
        lines += ["", f"{file.get('path')}  {file.get('status')}"]
        body = str(file.get("hunks") or "").splitlines()
        lines += [f"  {line}" for line in body if not line.startswith(("--- ", "+++ ", "\\"))]
    return lines or ["  no file differs"]
