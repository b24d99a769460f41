"""Decisions on versions: install, promote, roll back. Each says first what will change, and names the head it saw."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from reef import needs
from reef.errors import ReefError
from reef.provided import provided
from reef.tui import cells
from reef.tui.lines import Block, Line
from reef.tui.screens.dialogs import Confirm
from reef.tui.screens.of_versions import OfVersions
from reef.tui.views import changes, versions, words

Json = dict[str, Any]


class Deciding(OfVersions):
    """Adds `i`, `p`, `R` to the place of versions."""

    def do_promote(self) -> None:
        version = self.under_cursor("promote")
        if version is None:
            return
        number = version["version"]
        if version.get("current"):
            self.reef.say(f"v{number} is served already", warn=True)
            return
        if not versions.is_pending(version):
            back = f"{self.reef.key('rollback')} rolls back to it"
            self.reef.say(f"v{number} is not pending, and only a pending version is promoted · {back}", warn=True)
            return
        what = [f"v{number} is served from now on; the next session gets it"]
        self._decide("promote", f"serve v{number}?", f"serve v{number}", version, what, self._promoted)

    def do_rollback(self) -> None:
        version = self.under_cursor("roll back to")
        head = versions.head_of(self.chain)
        if version is None:
            return
        if version.get("current"):
            self.reef.say(f"v{version['version']} is served already; put the cursor on an older one", warn=True)
            return
        if versions.is_pending(version):
            serve = f"{self.reef.key('promote')} serves it"
            self.reef.say(f"v{version['version']} is pending and was never served · {serve}", warn=True)
            return
        newest = max((int(found["version"]) for found in self.chain), default=0)
        number = version["version"]
        what = [
            f"a new version v{newest + 1} with the content of v{number} is served from now on",
            f"v{head['version']} stays in the chain" if head else "nothing is lost",
        ]
        self._decide("rollback", f"roll back to v{number}?", "roll back", version, what, self._rolled_back)

    def do_install(self) -> None:
        version = self.under_cursor("install")
        if version is None:
            return
        scenario, number = self.reef.scenario, version["version"]
        adapter = self.reef.adapter_of(scenario)
        try:
            unmet = provided(self.reef.source.paths, scenario, adapter).unmet(needs.of(version), os.environ)
            needs.left_to_the_person(f"v{number}", unmet, scenario, self.chain, number)
        except ReefError as error:
            self.reef.show_error(error)
            return
        what = [f"{adapter} started as reef-{adapter} uses v{number} of {scenario} from its next session on"]
        if versions.state(version)[0].startswith("▲"):
            what.append(f"v{number} waits for you: installing it is your yes, and it is served from then on")
        what.append("your own configuration of the agent is not touched")
        self._decide("install", f"install v{number} for {adapter}?", f"install v{number}", version, what, self._install)

    def _decide(
        self, name: str, title: str, yes: str, version: Json, what: list[str], then: Callable[[Json, Json | None], None]
    ) -> None:
        """Show what changes against the head, and call `then(version, head)` on yes."""
        scenario, number, head = self.reef.scenario, version["version"], versions.head_of(self.chain)
        lines = [Line.of(cells.line(text, 300), hang=2) for text in what]
        lines += words.need_lines(version.get("requires"))

        def ask(files: list[Json]) -> None:
            blocks = [Block("what", None, [*lines, Line()])]
            if any(changes.is_code(str(file.get("path"))) for file in files):
                text = "it adds or changes code that runs with your rights: read it before you say yes"
                blocks.append(Block("code", None, [Line.of(("▲ ", "accent"), (text, "accent")), Line()]))
            if head is not None and head["version"] != number:
                blocks.append(Block("against", None, [Line.of((f"v{head['version']} → v{number}", "heading"))]))
                blocks += changes.blocks(files)
            dialog = Confirm([(cells.line(title, 80), "strong")], blocks, yes)
            self.reef.push_screen(dialog, lambda said: then(version, head) if said else None)

        def compare() -> list[Json]:
            if head is None or head["version"] == number:
                return []
            files: list[Json] = self.reef.source.diff(scenario, f"v{head['version']}", f"v{number}")
            return files

        self.act(f"{name}-change", compare, ask)

    def _promoted(self, version: Json, head: Json | None) -> None:
        self._send("promote", version, head, "serves")

    def _rolled_back(self, version: Json, head: Json | None) -> None:
        self._send("rollback", version, head, "rolled back:")

    def _send(self, method: str, version: Json, head: Json | None, verb: str) -> None:
        scenario = self.reef.scenario
        seen = head["version"] if head is not None else None

        def done(reply: Json) -> None:
            undo = f" · {self.reef.key('rollback')} on v{seen} undoes it" if seen is not None else ""
            self.reef.say(f"{cells.line(scenario, 40)} {verb} v{reply['version']}{undo}")
            self.reload()
            self.reef.refresh_status()

        self.act(method, lambda: self.reef.source.call(method, scenario, version["version"], expected_head=seen), done)

    def _install(self, version: Json, head: Json | None) -> None:
        scenario, adapter = self.reef.scenario, self.reef.adapter_of(self.reef.scenario)
        seen = head["version"] if head is not None else None
        number = version["version"]
        source, tell = self.reef.source, self.reef.tell

        def work() -> Json:
            installed: Json = {}
            # The dialog has shown what only the person can know, and the yes was for that too.
            provided(source.paths, scenario, adapter).agree(needs.only_the_person_knows(needs.of(version)))
            for item in source.call("install_harness", scenario, adapter, number, expected_head=seen):
                if "installed" in item:
                    installed = item["installed"]
                elif "progress" in item:
                    tell(str(item["progress"]))
            return installed

        def done(installed: Json) -> None:
            self.reef.tell("")
            if installed.get("changed"):
                before = (
                    f" · {self.reef.key('install')} on v{seen} undoes it"
                    if seen not in (None, installed.get("version"))
                    else ""
                )
                self.reef.say(f"installed v{installed.get('version')} for {adapter} · start it: reef-{adapter}{before}")
            else:
                self.reef.say(f"v{installed.get('version')} was installed for {adapter} already; nothing changed")
            self.reload()
            self.reef.refresh_status()

        def failed(error: Exception) -> None:
            self.reef.tell("")
            self.reef.show_error(error)

        self.reef.tell(f"installing v{number} for {adapter}")
        self.reef.background.submit("install", work, done, failed, own_thread=True)
