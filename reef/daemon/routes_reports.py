"""Reports: store one, show them, revise one, withdraw one."""

from __future__ import annotations

from aiohttp import web

from reef.daemon.access import Access, Caller
from reef.daemon.house import house_of
from reef.daemon.naming import asked_scenario, caller_of, scenario_filter
from reef.daemon.replies import exact_json_body, json_reply, whole_number
from reef.daemon.table import Route
from reef.errors import InvalidInput, NotFound
from reef.ids import to_blob
from reef.records import reports, revisions

_MOST = 1000
_SOURCES = ("person", "program", "agent")


async def store_report(request: web.Request) -> web.Response:
    """`POST /reef/report`: stored whole or not at all; the same id with the same content answers the same."""
    house, scenario, caller = house_of(request), asked_scenario(request), caller_of(request)
    body = await exact_json_body(request)
    source, session = _speaker(caller)
    row, _ = await house.writer.write(
        lambda conn: reports.store_report(conn, scenario.name, body, source, session=session)
    )
    return json_reply({"agent_record_id": row["agent_record_id"], "scenario": scenario.name, "request_type": "report"})


async def list_reports(request: web.Request) -> web.Response:
    """`GET /reef/reports?scenario&receipt&source&before&limit`: newest first. A session sees its own and no other."""
    house, query = house_of(request), request.query
    limit = whole_number(query.get("limit"), "limit", 100, 1, _MOST) or 100
    before = whole_number(query.get("before"), "before")
    scenario = scenario_filter(request)
    receipt, source = query.get("receipt") or None, query.get("source") or None
    if receipt is not None:
        to_blob(receipt)
    if source is not None and source not in _SOURCES:
        raise InvalidInput(f"'source' is one of {', '.join(_SOURCES)}", "reef reports list --source person")
    _, session = _speaker(caller_of(request))
    found = await house.reading(
        lambda reader: reader.reports(scenario, limit, record=receipt, source=source, session=session, before=before)
    )
    return json_reply({"reports": found})


async def show_report(request: web.Request) -> web.Response:
    """`GET /reef/reports/{id}`: one report; for a session only its own."""
    report = _report(request)
    _, session = _speaker(caller_of(request))
    row = await house_of(request).reading(lambda reader: reader.report(report))
    if session is not None and row["session"] != session:
        raise NotFound(f"there is no report {report}", "reef reports list")
    return json_reply(row)


async def revise_report(request: web.Request) -> web.Response:
    """`PATCH /reef/reports/{id}`: a change of mind; a session only of its own report, a program only of a program's."""
    report = _report(request)
    body = await exact_json_body(request)
    source, session = _speaker(caller_of(request))
    row, number = await house_of(request).writer.write(
        lambda conn: revisions.revise_report(conn, report, body, source, session)
    )
    return json_reply(
        {"agent_record_id": report, "scenario": row["scenario"], "request_type": "report", "revision": number}
    )


async def undo_revision(request: web.Request) -> web.Response:
    """`DELETE /reef/reports/{id}/revisions/{number}`: the value before the last revision counts again."""
    report = _report(request)
    number = whole_number(request.match_info["number"], "the number of a revision") or 0
    source, session = _speaker(caller_of(request))
    row = await house_of(request).writer.write(
        lambda conn: revisions.undo_revision(conn, report, number, source, session)
    )
    return json_reply({"agent_record_id": report, "undone": number, "references": row["references"]})


async def withdraw_report(request: web.Request) -> web.Response:
    """`DELETE /reef/reports/{id}`: takes a report back; a session only its own, a program only a program's."""
    report = _report(request)
    source, session = _speaker(caller_of(request))
    row = await house_of(request).writer.write(lambda conn: reports.withdraw_report(conn, report, source, session))
    return json_reply({"agent_record_id": report, "withdrawn": True, "references": row["references"]})


def _speaker(caller: Caller) -> tuple[reports.Source, str | None]:
    """Whose report it is, and the session that it is of."""
    # What a step thinks of itself is a program's measurement.
    source = "program" if caller.source == "step" else caller.source
    return source, caller.session.id if caller.session is not None else None


def _report(request: web.Request) -> str:
    report = request.match_info["id"]
    to_blob(report)
    return report


ROUTES = [
    Route("POST", "/reef/report", store_report, Access.OPEN, session=True, in_path=True),
    Route("GET", "/reef/reports", list_reports, session=True),
    Route("GET", "/reef/reports/{id}", show_report, session=True),
    Route("PATCH", "/reef/reports/{id}", revise_report, session=True),
    Route("DELETE", "/reef/reports/{id}", withdraw_report, session=True),
    Route("DELETE", "/reef/reports/{id}/revisions/{number}", undo_revision, session=True),
]
