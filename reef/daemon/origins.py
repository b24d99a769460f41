"""What stands behind a version, link by link: its step, the asks and reports that the step took, the calls of those.

A link is *recorded* when something stored names it, and *inferred* when it only follows from time and session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reef.errors import NotFound
from reef.records.reader import Reader

Json = dict[str, Any]
RECORDED = "recorded"
INFERRED = "inferred"
_CALLS = 5
"""Calls that are named behind one ask or report."""
_LOOKED_AT = 200
_NO_STEP = {
    "base": "reef ships it",
    "upgrade": "reef ships it, and brought it up to date",
    "import": "it was imported",
}


def link(kind: str, how: str, why: str, **facts: Any) -> Json:
    """One link: what it leads to, whether that is recorded, and by what."""
    return {"kind": kind, "how": how, "why": why, **facts}


def behind(reader: Reader, version: Mapping[str, Any], entry: str | None) -> list[Json]:
    """Every link behind a version; `entry` is the id whose change is looked for in the step."""
    step = version["step"]
    if step is None:
        why = _NO_STEP.get(version["operation"], f"no step made it: {version['operation']}")
        return [link("origin", RECORDED, why, operation=version["operation"])]
    try:
        row = reader.step(version["scenario"], step)
    except NotFound as error:
        return [link("step", INFERRED, f"the version names step {step}, and {error.message}", step=step)]
    names = {item.get("id") for item in row["mutations"] if isinstance(item, dict)}
    if entry is None or entry in names:
        how, why = RECORDED, "the version names its step" + (f", and the step changed {entry}" if entry else "")
    else:
        how, why = INFERRED, f"the version names its step, whose changes do not name {entry}"
    found = [
        link(
            "step", how, why, step=step, recipe=row["recipe"], proposer=row["proposer"], summary=row["summary"],
            reason=row["reason"], ended_at=row["ended_at"],
        )
    ]  # fmt: skip
    for ask in row["asks"]:
        found += _ask(reader, str(ask))
    for used in row["consumed"]:
        if used not in row["asks"]:
            found += _report(reader, str(used))
    return found


def _ask(reader: Reader, id: str) -> list[Json]:
    try:
        ask = reader.ask(id)
    except NotFound:
        return [link("ask", RECORDED, "the step took it, and it was forgotten since", id=id)]
    found = [
        link(
            "ask", RECORDED, "the step took it", id=id, number=ask["number"], text=ask["text"], source=ask["source"],
            created_at=ask["created_at"],
        )
    ]  # fmt: skip
    if ask["session"]:
        calls = reader.records(session=ask["session"], scenario=ask["scenario"], limit=_LOOKED_AT)
        before = [call for call in calls if call["started_at"] <= ask["created_at"]][:_CALLS]
        found += [_call(call, INFERRED, "it came before the ask in its session") for call in before]
    return found


def _report(reader: Reader, id: str) -> list[Json]:
    try:
        report = reader.report(id)
    except NotFound:
        # What a step used up may be no report: a recipe names its inputs itself.
        return []
    found = [
        link(
            "report", RECORDED, "the step used it", id=id, source=report["source"], score=report["score"],
            feedback=report["feedback"], created_at=report["created_at"],
        )
    ]  # fmt: skip
    for receipt in report["references"][:_CALLS]:
        try:
            found.append(_call(reader.record(receipt), RECORDED, "the report names it"))
        except NotFound:
            found.append(link("call", RECORDED, "the report names it, and it was forgotten since", receipt=receipt))
    return found


def _call(call: Mapping[str, Any], how: str, why: str) -> Json:
    return link(
        "call", how, why, receipt=call["agent_record_id"], session=call["session"], model=call["model"],
        started_at=call["started_at"], preview=call["preview"],
    )  # fmt: skip
