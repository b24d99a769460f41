"""The inputs of a step, read from the records: what a recipe may find eligible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reef.learning.job import Job
from reef.learning.manifest import Manifest
from reef.learning.recipe import Input, ReportInput

if TYPE_CHECKING:
    from reef.records.reader import Reader

MAX_REPORTS = 1_000
"""Newest unconsumed reports that one step looks at."""


def gather(job: Job, wanted: Manifest, reader: Reader) -> Iterator[Input]:
    """Everything that the recipe's manifest says it learns from, oldest first; the asks of the job come first."""
    yield from job.asks
    if "reports" in wanted.inputs:
        yield from _reports(job, reader)


def _reports(job: Job, reader: Reader) -> Iterator[ReportInput]:
    for row in reversed(reader.reports(scenario=job.scenario, limit=MAX_REPORTS)):
        if row.get("consumed_by") is None and row.get("withdrawn_at") is None:
            yield ReportInput(
                row["agent_record_id"],
                row.get("score"),
                row.get("feedback"),
                tuple(row.get("references") or ()),
                row.get("metadata") or {},
                row["source"],
            )
