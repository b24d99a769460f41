"""`reef records export`: records as lines, for another home or for a training program."""

from __future__ import annotations

import json as json_module
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from reef.cli import child, output
from reef.cli.group import ScenarioOption
from reef.cli.look import ERR, count, size
from reef.cli.scope import person_only
from reef.cli.since import since as moment
from reef.errors import DaemonUnreachable, Failed, UsageError
from reef.paths import Paths

EXAMPLES = (
    "reef records export -o records.jsonl",
    "reef records export -s coding --since 30d --format pairs | head -3",
)
FORMATS = ("jsonl", "chat", "pairs")
_NAMED = 5


def export(
    format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="jsonl, chat or pairs; see above.")
    ] = "jsonl",
    session: Annotated[str | None, typer.Option("--session", metavar="KEY", help="Only calls of this session.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="AGE", help="Only calls since then: 2d, 3h, 2026-01-31.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write into this file, mode 0600.")
    ] = None,
    scenario_name: ScenarioOption = None,
) -> None:
    """Write records out, for another home or for training.

    One JSON object a line. `jsonl`: records and their reports, exact, as `reef import` takes them again. `chat`:
    `{messages, tools}` of every complete call, for fine-tuning; the last message is the answer. `pairs`: `{prompt,
    chosen, rejected, tools}` where one conversation was answered twice and one answer is rated higher, yours before a
    program's. Calls that still run are left out. Of every scenario, or of the one that --scenario names.
    """
    person_only("export records")
    if format not in FORMATS:
        raise UsageError(f"{format!r} is not a format ({', '.join(FORMATS)})", "reef records export --help")
    paths = Paths.from_environ()
    if not paths.database.is_file():
        raise DaemonUnreachable("there is no record store yet", "reef up")
    wanted = {"scenario": scenario_name, "session": session, "since": moment(since)}
    with _writing(out) as write:
        if format == "jsonl":
            _export_lines(paths, wanted, write)
        else:
            _export_rows(paths, wanted, format, write)


class _Output:
    """Writes lines and says how many there were."""

    def __init__(self, stream: BinaryIO | None, place: Path | None) -> None:
        self.lines = self.bytes = 0
        self._stream = stream
        self._place = place
        self._progress = output.Progress()

    def __call__(self, line: bytes) -> None:
        if self._stream is None:
            output.show_bytes(line)
        else:
            self._stream.write(line + b"\n")
        self.lines += 1
        self.bytes += len(line) + 1
        if self._place is not None and self._progress.live and self.lines % 100 == 0:
            self._progress.show(f"{count(self.lines)} lines, {size(self.bytes)}")

    def end(self, what: str) -> None:
        """Say what came of it, as talk."""
        self._progress.clear()
        if not self.lines:
            output.say(f"nothing to export: no {what} with these filters")
        elif self._place is not None:
            output.say(f"{count(self.lines)} {what} in {ERR.line(str(self._place))}, {size(self.bytes)}")


@contextmanager
def _writing(place: Path | None) -> Iterator[_Output]:
    """Lines go to stdout, or into a file that is there only when it is whole."""
    if place is None:
        sys.stdout.flush()
        yield _Output(None if sys.stdout.isatty() else sys.stdout.buffer, None)
        return
    partial = place.with_name(place.name + ".partial")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield _Output(stream, place)
        partial.replace(place)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _export_lines(paths: Paths, wanted: dict[str, Any], write: _Output) -> None:
    from reef.records.reader import Reader

    reader = Reader(paths.database)
    try:
        if wanted["scenario"] is not None:
            reader.scenario(wanted["scenario"])
        export = reader.export(**wanted)
        for line in export:
            write(line)
    finally:
        reader.close()
    write.end("records and reports")
    if export.running:
        output.say(f"{count(export.running)} calls were still running and are left out")
    if export.damaged:
        named = ", ".join(export.damaged[:_NAMED]) + (", …" if len(export.damaged) > _NAMED else "")
        raise Failed(f"{len(export.damaged)} damaged records are left out: {named}", "reef doctor")


def _export_rows(paths: Paths, wanted: dict[str, Any], format: str, write: _Output) -> None:
    asked = {"database": str(paths.database), "format": format} | wanted
    left_out = 0
    for found in child.lines("reef.gateway.training_rows", json_module.dumps(asked)):
        if "row" in found:
            write(json_module.dumps(found["row"], ensure_ascii=False).encode("utf-8", "replace"))
        else:
            left_out = found["done"]["left_out"]
    write.end("rows" if format == "chat" else "pairs")
    if left_out:
        output.say(f"{count(left_out)} complete calls are left out: they cannot be written as one chat")
