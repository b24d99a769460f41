"""B60: a scenario of an older package gets what reef ships now; evolved entries and a person's edits stay."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reef.paths import bundled
from reef.records import rows
from reef.records.writer import Writer
from reef.versions.publish import Proposal, Publisher
from reef.versions.repository import Repository
from tests.http.running import Home, wait_for

EVOLVED = {"harness/rules/evolved.md": b"Evolved.\n"}


def ship(home: Home, words: str) -> None:
    """What the package ships for the agent `tried`: an extension and a rule of these words."""
    folder = home.paths.config / "adapters" / "tried"
    if not folder.is_dir():
        shutil.copytree(Path(bundled("adapters")) / "pi", folder, ignore=shutil.ignore_patterns("base"))
        toml = folder / "adapter.toml"
        toml.write_text(toml.read_text().replace('name = "pi"', 'name = "tried"', 1))
    for place, text in {"extensions/reef-tried.ts": f"// {words}\n", "rules/reef-tried-said.md": f"{words}\n"}.items():
        file = folder / "base" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def publish(home: Home, changed: dict[str, bytes]) -> None:
    async def work() -> None:
        writer, repository = Writer(home.paths.database), Repository(home.paths.versions_git)
        publisher = Publisher(writer, repository, rows)
        head = await publisher.head("default")
        files = dict(repository.files(head.release_id)) | changed
        await publisher.publish(Proposal("default", files, head.release_id, "a change"))
        writer.close()

    asyncio.run(work())


def releases(home: Home) -> list[dict[str, Any]]:
    return list(home.nobody.get("/reef/harness/releases").json()["releases"])


def test_old_entries_become_those_of_the_package_and_what_others_made_stays(new_home: Callable[..., Home]) -> None:
    home = new_home()
    ship(home, "words A")
    home.start().stop()
    publish(home, EVOLVED | {"harness/rules/reef-tried-said.md": b"edited by hand\n"})
    ship(home, "words B")
    home.start()
    wait_for(lambda: len(releases(home)) == 3)
    head = releases(home)[-1]
    assert (head["operation"], head["state"], head["current"]) == ("upgrade", "published", True)
    assert head["summary"].endswith("changed: reef-tried; edited and kept: reef-tried-said")
    files = home.person.get("/reef/scenarios/default/versions/3").json()["files"]
    assert files["harness/extensions/reef-tried.ts"] == "// words B\n"
    assert files["harness/rules/reef-tried-said.md"] == "edited by hand\n"
    assert files["harness/rules/evolved.md"] == "Evolved.\n"
    assert "edited are kept: reef-tried-said" in home.paths.daemon_log.read_text()
    # Killed and started again there is nothing left to do.
    home.stop(signal.SIGKILL)
    home.start()
    wait_for(lambda: home.paths.daemon_log.read_text().count("edited are kept") == 2)
    assert [row["version"] for row in releases(home)] == [1, 2, 3]
