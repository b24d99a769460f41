"""`reef import`: records from another home, and the sessions that agents had before reef."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from reef.cli import output
from reef.cli.group import JsonOption, ScenarioOption, command, single
from reef.cli.import_files import Entry, entries
from reef.cli.import_progress import Checkpoint
from reef.cli.look import ERR, OUT, count, size
from reef.cli.scope import daemon, person_only, scenario
from reef.client import Client
from reef.errors import Failed, InvalidInput, NotFound, ReefError, UsageError
from reef.paths import Paths
from reef.transcripts.call import Reading
from reef.transcripts.finding import RECORDS, Found, find

app = single()
BATCH_RECORDS = 128
BATCH_BYTES = 512 * 1024
_BATCH_MOST = 1024 * 1024 - 1024
_BAR = 20
_NAMED = 10
_PLACE = re.compile(r"records\[(\d+)\]: (.*)\Z", re.DOTALL)


@dataclass
class Told:
    """What became of one file."""

    file: Path
    kind: str
    records: int = 0
    reports: int = 0
    new: int = 0
    bytes: int = 0
    resumed_at: int = 0
    """The line that an earlier import had come to."""
    scenarios: dict[str, int] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None
    bad: list[str] = field(default_factory=list)
    reading: Reading = field(default_factory=Reading)

    def take(self, entry: Entry, name: str) -> None:
        self.records += entry.kind == "inference"
        self.reports += entry.kind == "report"
        self.bytes += len(entry.envelope)
        self.scenarios[name] = self.scenarios.get(name, 0) + 1
        if entry.started_at is not None:
            self.first = min(self.first or entry.started_at, entry.started_at)
            self.last = max(self.last or entry.started_at, entry.started_at)

    def to_json(self) -> dict[str, Any]:
        names = ("kind", "records", "reports", "new", "bytes", "resumed_at", "scenarios", "first", "last", "bad")
        more = {"unreadable_lines": self.reading.unreadable, "lacks": sorted(self.reading.lacks)}
        return {"file": str(self.file)} | {name: getattr(self, name) for name in names} | more


@command(
    app,
    examples=(
        "reef import records.jsonl --scenario coding",
        "reef import ~/.claude/projects --scenario earlier --dry-run",
    ),
)
def import_files(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Files of records or sessions, or folders of them.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be imported, and import nothing.")] = False,
    progress: Annotated[
        Path | None,
        typer.Option("--progress", metavar="FILE", help="Where to note how far it has come; FILE.reef-import.json."),
    ] = None,
    scenario_name: ScenarioOption = None,
    json: JsonOption = False,
) -> None:
    """Bring in records, or sessions that an agent had before reef.

    Records: JSON lines as `reef records export` or the public protocol writes them; they go into --scenario, else into
    the one that each line names. Sessions: those of pi, Claude Code, Codex and OpenCode, told by their content, one
    record for each reply; the files are only read. What was imported before is not imported again, and an import that
    was stopped goes on where it was. Imported records say so, have no version, and nothing is made up that was not in
    the file.
    """
    person_only("import records")
    found = _found(files)
    if progress is not None and [one.kind for one in found] != [RECORDS]:
        raise UsageError("--progress is for one file of records", "reef import --help")
    paths = Paths.from_environ()
    chosen = scenario(paths, scenario_name, quiet=json)
    told: list[Told] = []
    bar = _Bar(found)
    try:
        # A dry run asks nothing of the daemon.
        with nullcontext() if dry_run else daemon(paths) as client:
            for one in found:
                told.append(Told(one.path, one.kind))
                _File(one, told[-1], client, scenario_name, chosen, bar).run(paths, progress)
    except ReefError as error:
        bar.clear()
        stored = sum(one.new for one in told)
        kept = f"{count(stored)} that came before are imported" if stored else "nothing was imported"
        raise type(error)(f"{told[-1].file}: {error.message}; {kept}", error.hint) from error
    bar.clear()
    _show(told, dry_run, json)


def _found(files: list[Path]) -> list[Found]:
    found: list[Found] = []
    for file in files:
        if not file.exists():
            raise NotFound(f"there is no file {file}", "ls")
        here = list(find(file))
        if not here and not file.is_dir():
            raise InvalidInput(f"{file} is neither a file of records nor a session of an agent that reef can read")
        found += here
    if not found:
        raise NotFound("these folders hold neither records nor sessions of agents", "reef import --help")
    return found


class _File:
    """The import of one file."""

    def __init__(
        self, found: Found, told: Told, client: Client | None, explicit: str | None, chosen: str, bar: _Bar
    ) -> None:
        self.found, self.told, self.client, self.explicit, self.chosen = found, told, client, explicit, chosen
        self.bar = bar
        self.checkpoint: Checkpoint | None = None

    def run(self, paths: Paths, place: Path | None) -> None:
        """Import it, or only look at it without a daemon. Raises InvalidInput at the first line that is no record."""
        if self.client is None or self.found.kind != RECORDS:
            self._walk()
            return
        into = {"all": self.explicit} if self.explicit else {"as_written_else": self.chosen}
        self.checkpoint = Checkpoint(self.found.path, place, _home(paths, self.client), into)
        with self.checkpoint.held():
            self.told.resumed_at = self.checkpoint.line
            self._walk()
            self.checkpoint.done()

    def _walk(self) -> None:
        start, line = (self.checkpoint.offset, self.checkpoint.line) if self.checkpoint else (0, 0)
        batch: list[Entry] = []
        waiting, name = 0, ""
        for entry in entries(self.found, self.told.reading, start, line):
            if not isinstance(entry, Entry):
                self._refuse(entry)
                continue
            own = self.explicit or entry.scenario or self.chosen
            full = len(batch) == BATCH_RECORDS or waiting + len(entry.envelope) > BATCH_BYTES
            if batch and (full or own != name):
                self._send(batch, name)
                batch, waiting = [], 0
            batch.append(entry)
            waiting += len(entry.envelope) + 1
            name = own
        if batch:
            self._send(batch, name)

    def _refuse(self, error: InvalidInput) -> None:
        if self.client is not None and self.found.kind == RECORDS:
            raise error
        self.told.bad.append(error.message)

    def _send(self, batch: list[Entry], name: str) -> None:
        if self.client is not None:
            alone = len(batch) == 1 and len(batch[0].envelope) > _BATCH_MOST
            joined = b",".join(entry.envelope for entry in batch)
            try:
                self.told.new += self.client.import_records(
                    name, joined if alone else b'{"records":[' + joined + b"]}", alone
                )
            except ReefError as error:
                raise _at_its_line(error, batch) from error
        for entry in batch:
            self.told.take(entry, name)
        if self.checkpoint is not None:
            self.checkpoint.note(batch[-1].end, int(batch[-1].where.removeprefix("line ")))
        self.bar.show(self.told, batch[-1].end)


def _at_its_line(error: ReefError, batch: list[Entry]) -> ReefError:
    """The daemon's error with the entry's own place in the file."""
    match = _PLACE.match(error.message)
    if match is None:
        return error if len(batch) > 1 else type(error)(f"{batch[0].where}: {error.message}", error.hint)
    return type(error)(f"{batch[int(match.group(1))].where}: {match.group(2)}", error.hint)


def _home(paths: Paths, client: Client) -> str:
    """What tells this home, and this beginning of its records, from another."""
    born = min((str(one.get("created_at")) for one in client.scenarios()["scenarios"]), default="")
    return f"{paths.database} {born}".strip()


class _Bar:
    """One line that says how far all files have come."""

    def __init__(self, found: list[Found]) -> None:
        self._sizes = [one.path.stat().st_size for one in found]
        self._progress = output.Progress()
        self._file: Path | None = None
        self._number = -1

    def show(self, told: Told, end: int) -> None:
        if told.file != self._file:
            self._file, self._number = told.file, self._number + 1
        done = sum(self._sizes[: self._number]) + end
        part = min(1.0, done / max(1, sum(self._sizes)))
        full, empty = ("#", ".") if ERR.ascii else ("█", "░")
        bar = full * round(part * _BAR) + empty * (_BAR - round(part * _BAR))
        records = count(told.records + told.reports)
        self._progress.show(ERR.joined(f"{bar} {part:4.0%}", f"{records} records", ERR.line(told.file.name, 40)))

    def clear(self) -> None:
        self._progress.clear()


def _show(told: list[Told], dry_run: bool, json: bool) -> None:
    bad = sum(len(one.bad) for one in told)
    if json:
        output.json_value({"dry_run": dry_run, "files": [one.to_json() for one in told]})
    else:
        for one in told:
            for line in _lines_of(one, dry_run):
                output.data(line)
    if bad:
        raise Failed(f"{count(bad)} lines cannot be imported", "reef import --help")


def _lines_of(told: Told, dry_run: bool) -> Iterator[str]:
    what = OUT.joined(
        f"{count(told.records)} records" if told.records or not told.reports else None,
        f"{count(told.reports)} reports" if told.reports else None,
        size(told.bytes),
        f"{told.first} to {told.last}" if told.first and dry_run else None,
    )
    known = told.records + told.reports - told.new
    verb = "would be imported" if dry_run else "imported"
    into = ", ".join(OUT.line(name) for name in told.scenarios)
    yield f"{OUT.line(str(told.file))}: {what} {verb}" + (f" into {into}" if into else "")
    if known and not dry_run:
        yield f"  {count(known)} of them were there already"
    if told.resumed_at:
        yield f"  went on behind line {told.resumed_at}, where it had been stopped"
    if told.reading.lacks:
        yield f"  {told.kind} does not keep {', '.join(sorted(told.reading.lacks))} in its sessions"
    if told.reading.unreadable:
        yield f"  {count(told.reading.unreadable)} lines cannot be read and are passed over"
    for message in told.bad[:_NAMED]:
        yield f"  {OUT.line(message)}"
    if len(told.bad) > _NAMED:
        yield f"  and {count(len(told.bad) - _NAMED)} more"
