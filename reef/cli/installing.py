"""Installing on this machine: the daemon's progress lines on stderr, and what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reef.cli import output
from reef.cli.look import ERR, OUT
from reef.client import Client
from reef.errors import Failed
from reef.text import one_line


def run(lines: Iterable[dict[str, Any]], what: str) -> dict[str, Any]:
    """Show the progress of an installation. Returns its `installed` object; raises the error that it ended with."""
    progress = output.Progress()
    try:
        for line in lines:
            if "installed" in line:
                progress.clear()
                return dict(line["installed"])
            if "progress" not in line:
                continue
            progress.show(f"  {one_line(str(line['progress']), 200)}")
    finally:
        progress.clear()
    raise Failed(f"the daemon ended the installation of {what} without an answer", "reef logs")


def tell(installed: dict[str, Any]) -> None:
    """Say where a harness was put and how to start the agent."""
    done = "installed" if installed.get("changed") else "already installed"
    where = f"of scenario {OUT.line(installed['scenario'])} for {OUT.line(installed['adapter'])}"
    named = f"{done} v{installed['version']} {where}"
    output.data(OUT.joined(named, OUT.line(str(installed.get("path") or ""))))
    place = str(installed.get("wrapper") or f"reef-{installed['adapter']}")
    # As people type it, where the shell finds it.
    typed = Path(place).name if shutil.which(Path(place).name) == place else place
    output.say(f"{ERR.paint('next', 'dim')}   {OUT.line(typed)}")


def adapter_of(client: Client, scenario: str, explicit: str | None) -> str:
    """The agent that an installation is for: as typed, else the scenario's own."""
    if explicit is not None:
        return explicit
    for row in client.scenarios()["scenarios"]:
        if str(row["name"]).lower() == scenario.lower() and row.get("adapter"):
            return str(row["adapter"])
    return "pi"
