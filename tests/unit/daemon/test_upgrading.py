"""B60: built-in entries of an older package become those of this one; what a person or a step made stays."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reef.config import load
from reef.daemon.scenarios import Scenarios
from reef.daemon.served import ServedVersions
from reef.daemon.upgrading import Upgrading
from reef.errors import Conflict
from reef.harness.adapter import base_of_all
from reef.paths import Paths, bundled
from reef.records import rows
from reef.records.reader import Reader
from reef.records.writer import Writer
from reef.versions.catalog import Version
from reef.versions.publish import Proposal
from reef.versions.repository import Repository

EXTENSION = "harness/extensions/reef-tried.ts"
RULE = "harness/rules/reef-tried-words.md"
EVOLVED = {"harness/rules/evolved.md": b"Evolved.\n"}


@dataclass
class House:
    """What a start opens of a home, with the package's adapters of that day."""

    paths: Paths
    writer: Writer
    repository: Repository
    publisher: ServedVersions
    scenarios: Scenarios
    upgrading: Upgrading
    running: int | None = None

    @classmethod
    async def open(cls, paths: Paths) -> House:
        writer, repository = Writer(paths.database), Repository(paths.versions_git)
        repository.ensure()
        publisher = ServedVersions(writer, repository, rows)
        await publisher.load()
        scenarios = Scenarios(writer, publisher, load(paths=paths).settings, paths, lambda spec: None)
        await scenarios.load()
        upgrading = Upgrading(paths, writer, repository, publisher, scenarios, lambda name: house.running)
        house = cls(paths, writer, repository, publisher, scenarios, upgrading)
        await publisher.recover()
        return house

    async def again(self) -> House:
        """The next start, with what the package ships by then."""
        self.writer.close()
        found = await House.open(self.paths)
        await found.upgrading.all()
        return found

    def head(self) -> Version:
        found = self.publisher.head_now("s")
        assert found is not None
        return found

    def files(self) -> dict[str, bytes]:
        return self.repository.files(self.head().release_id)

    async def publish(self, changed: dict[str, bytes], pending: bool = False, without: str = "") -> Version:
        files = {path: text for path, text in (self.files() | changed).items() if path != without}
        return await self.publisher.publish(
            Proposal("s", dict(files), self.head().release_id, "a change", pending=pending)
        )

    def ship(self, path: str, text: str | None) -> None:
        """The next package has this text of a built-in entry."""
        file = self.paths.config / "adapters" / "tried" / "base" / path.removeprefix("harness/")
        if text is None:
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
async def house(paths: Paths) -> AsyncIterator[House]:
    """A home with an adapter of the person's own, which ships an extension and a rule, and the scenario `s`."""
    folder = paths.config / "adapters" / "tried"
    shutil.copytree(bundled("adapters") / "pi", folder, ignore=shutil.ignore_patterns("base"))
    toml = folder / "adapter.toml"
    toml.write_text(toml.read_text().replace('name = "pi"', 'name = "tried"', 1))
    found = await House.open(paths)
    found.ship(EXTENSION, "// text A\n")
    found.ship(RULE, "Words A.\n")
    await found.scenarios.create("s")
    yield found
    found.writer.close()


def told(paths: Paths) -> list[tuple[int, str, str]]:
    return [(row["version"], row["operation"], row["state"]) for row in reversed(Reader(paths.database).versions("s"))]


async def test_built_in_entries_become_those_of_the_package_as_a_version_with_a_reason_and_evolved_ones_stay(
    house: House,
) -> None:
    assert house.files() == base_of_all(house.paths).to_files()
    await house.publish(EVOLVED)
    house.ship(EXTENSION, "// text B\n")
    house.ship("harness/rules/reef-tried-more.md", "More.\n")
    house.ship(RULE, None)
    after = await house.again()
    head = after.head()
    assert (head.number, head.operation, head.state) == (3, "upgrade", "published")
    assert head.summary.endswith("new: reef-tried-more; changed: reef-tried; gone: reef-tried-words")
    assert after.files() == base_of_all(house.paths).to_files() | EVOLVED
    # The code that reef ships needs nobody's yes, and a second start finds nothing to do.
    assert told(house.paths) == [(1, "base", "published"), (2, "training", "published"), (3, "upgrade", "published")]
    later = await after.again()
    assert later.head() == head
    later.writer.close()


async def test_a_start_with_the_same_package_publishes_nothing(house: House) -> None:
    await house.publish(EVOLVED)
    after = await house.again()
    assert after.head().number == 2
    after.writer.close()


async def test_a_built_in_entry_that_was_edited_or_removed_is_kept_and_told_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.publish({EXTENSION: b"// edited by hand\n"}, without=RULE)
    house.ship(EXTENSION, "// text B\n")
    house.ship(RULE, "Words B.\n")
    house.ship("harness/rules/reef-tried-more.md", "More.\n")
    after = await house.again()
    head = after.head()
    assert head.summary.endswith("new: reef-tried-more; edited and kept: reef-tried, reef-tried-words")
    assert after.files()[EXTENSION] == b"// edited by hand\n" and RULE not in after.files()
    await after.upgrading.one("s")
    told_kept = [line for line in caplog.messages if "edited are kept: reef-tried, reef-tried-words" in line]
    assert len(told_kept) == 1 and after.head() == head
    # What was kept through an upgrade is still known as the person's own afterwards.
    house.ship(EXTENSION, "// text C\n")
    later = await after.again()
    assert later.files()[EXTENSION] == b"// edited by hand\n" and later.head() == head
    later.writer.close()


async def test_going_back_past_an_upgrade_is_brought_up_to_date_at_the_next_start(house: House) -> None:
    house.ship(EXTENSION, "// text B\n")
    after = await house.again()
    await after.publisher.rollback("s", 1)
    assert after.files()[EXTENSION] == b"// text A\n"
    later = await after.again()
    assert (later.head().number, later.files()[EXTENSION]) == (4, b"// text B\n")
    later.writer.close()


async def test_a_pending_version_is_promoted_after_an_upgrade_and_has_its_entries(house: House) -> None:
    await house.publish({"harness/extensions/evolved.ts": b"// waits\n"}, pending=True)
    house.ship(EXTENSION, "// text B\n")
    after = await house.again()
    assert told(house.paths)[1:] == [(2, "training", "pending"), (3, "upgrade", "published")]
    served = await after.upgrading.promote("s", "v2", None)
    assert (served.number, served.operation, after.head()) == (5, "upgrade", served)
    assert after.files()[EXTENSION] == b"// text B\n"
    assert after.files()["harness/extensions/evolved.ts"] == b"// waits\n"
    assert told(house.paths)[1:] == [
        (2, "training", "published"), (3, "upgrade", "published"), (4, "promote", "published"),
        (5, "upgrade", "published"),
    ]  # fmt: skip
    after.writer.close()


async def test_a_pending_version_still_needs_a_look_when_more_than_an_upgrade_came_between(house: House) -> None:
    await house.publish({"harness/extensions/evolved.ts": b"// waits\n"}, pending=True)
    await house.publish(EVOLVED)
    house.ship(EXTENSION, "// text B\n")
    after = await house.again()
    with pytest.raises(Conflict, match="v4 is served now"):
        await after.upgrading.promote("s", "v2", None)
    after.writer.close()


async def test_entries_of_an_agent_whose_adapter_is_away_are_left_alone(house: House) -> None:
    shutil.move(house.paths.config / "adapters" / "tried", house.paths.config / "away")
    after = await house.again()
    assert after.head().number == 1 and after.files()[EXTENSION] == b"// text A\n"
    after.writer.close()


async def test_nothing_is_upgraded_under_a_running_step_or_in_an_archived_scenario(house: House) -> None:
    house.ship(EXTENSION, "// text B\n")
    house.running = 7
    assert await house.upgrading.one("s") is None
    house.running = None
    await house.scenarios.archive("s")
    await house.upgrading.all()
    assert house.head().number == 1
    await house.scenarios.restore("s")
    await house.upgrading.all()
    assert house.head().number == 2


async def test_one_scenario_that_cannot_be_upgraded_keeps_no_other_from_it(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.scenarios.create("broken")
    other = house.publisher.head_now("broken")
    assert other is not None
    moved = house.repository.commit({"harness/rules/x.md": b"x"}, {"number": 9}, other.release_id, "by hand")
    house.repository.advance("broken", moved, other.release_id)
    house.ship(EXTENSION, "// text B\n")
    await house.upgrading.all()
    assert any("scenario broken stay as they are" in line for line in caplog.messages)
    assert (house.head().number, house.head().operation) == (2, "upgrade")


async def test_an_adapter_whose_base_cannot_be_read_keeps_nothing_from_being_made_or_upgraded(house: House) -> None:
    house.ship("harness/rules/no/such/place.md", "x\n")
    await house.scenarios.create("other")
    after = await house.again()
    assert after.head().number == 1 and EXTENSION in after.files()
    after.writer.close()


def test_the_built_in_entries_of_every_bundled_adapter_have_ids_of_its_own(paths: Paths) -> None:
    names = sorted(folder.name for folder in Path(bundled("adapters")).iterdir() if (folder / "adapter.toml").is_file())
    for entry in base_of_all(paths).entries:
        assert any(entry.id == f"reef-{name}" or entry.id.startswith(f"reef-{name}-") for name in names), entry.id
