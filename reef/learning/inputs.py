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
"""Newest reports that one step looks at."""


def gather(job: Job, wanted: Manifest, reader: Reader) -> Iterator[Input]:
    """Everything that the recipe's manifest says it learns from, oldest first; the asks and proposals of the job come
    first.

    What an agent reports is no feedback unless the settings say so: it would grade itself.
    """
    yield from job.asks
    if "proposals" in wanted.inputs:
        yield from job.proposals
    if "reports" in wanted.inputs:
        yield from _reports(job, reader)


def _reports(job: Job, reader: Reader) -> Iterator[ReportInput]:
    left_out = None if job.count_agent_reports else "agent"
    found = reader.reports(job.scenario, MAX_REPORTS, withdrawn=False, consumed=False, left_out=left_out)
    for row in reversed(found):
        yield ReportInput(
            row["id"], row["score"], row["feedback"], tuple(row["references"]), row["metadata"] or {}, row["source"]
        )
