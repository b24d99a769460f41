"""What is done with a version beside deciding about it: keep it installed, try it for a session, find a bad one."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Any

from textual.app import SuspendNotSupported

from reef.tui import cells
from reef.tui.lines import Block, Line
from reef.tui.screens.dialogs import Confirm
from reef.tui.screens.of_versions import OfVersions

Json = dict[str, Any]


class Keeping(OfVersions):
    """Adds `P`, `t`, `b` to the place of versions."""

    def do_pin(self) -> None:
        version = self.under_cursor("pin")
        if version is None:
            return
        number, kept = version["version"], bool(version.get("pinned"))
        if kept:
            title, yes = f"let go of v{number}?", "unpin"
            what = ["what is installed follows what is served again, from the next install on"]
        else:
            title, yes = f"pin v{number}?", f"pin v{number}"
            what = [f"v{number} stays installed whatever is served, and no other version is installed until then"]
        lines = [Line.of(cells.line(text, 300), hang=2) for text in what]
        dialog = Confirm([(title, "strong")], [Block("what", None, lines)], yes)
        self.reef.push_screen(dialog, lambda said: self._send_pin(number, kept) if said else None)

    def _send_pin(self, number: int, kept: bool) -> None:
        scenario, source = self.reef.scenario, self.reef.source

        def work() -> Any:
            return source.call("unpin", scenario) if kept else source.call("pin", scenario, number)

        def done(reply: Json) -> None:
            install = f"{self.reef.key('install')} installs it"
            self.reef.say("unpinned" if kept else f"v{number} is pinned · {install}")
            self.reload()
            self.reef.refresh_status()

        self.act("pin", work, done)

    def do_try_version(self) -> None:
        version = self.under_cursor("try")
        if version is not None:
            scenario = self.reef.scenario
            adapter = self.reef.adapter_of(scenario)
            self._in_shell("versions", "try", f"v{version['version']}", "-s", scenario, "--adapter", adapter)

    def do_bisect(self) -> None:
        scenario = self.reef.scenario
        self._in_shell("versions", "bisect", "-s", scenario, "--adapter", self.reef.adapter_of(scenario))

    def _in_shell(self, *words: str) -> None:
        """Give the terminal to a command, which asks the person itself, and take it back."""
        try:
            with self.reef.suspend():
                subprocess.run([sys.executable, "-P", "-m", "reef.cli.app", *words], check=False)
                sys.stderr.write("press enter to go back to reef\n")
                sys.stdin.readline()
        except SuspendNotSupported:
            self.reef.say(f"type it in a shell: {cells.line(shlex.join(['reef', *words]), 200)}", warn=True)
            return
        self.reload()
