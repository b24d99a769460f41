"""Reports: store one, withdraw one."""

from __future__ import annotations

from aiohttp import web

from reef.daemon.access import Access
from reef.daemon.house import house_of
from reef.daemon.naming import asked_scenario, caller_of
from reef.daemon.replies import json_body, json_reply
from reef.daemon.table import Route
from reef.ids import to_blob
from reef.records import reports


async def store_report(request: web.Request) -> web.Response:
    """`POST /reef/report`: stored whole or not at all; the same id with the same content answers the same."""
    house, scenario, caller = house_of(request), asked_scenario(request), caller_of(request)
    body = await json_body(request)
    session = caller.session.id if caller.session is not None else None
    # What a step thinks of itself is a program's measurement.
    source = "program" if caller.source == "step" else caller.source
    row, _ = await house.writer.write(
        lambda conn: reports.store_report(conn, scenario.name, body, source, session=session)
    )
    return json_reply({"agent_record_id": row["agent_record_id"], "scenario": scenario.name, "request_type": "report"})


async def withdraw_report(request: web.Request) -> web.Response:
    """`DELETE /reef/reports/{id}`: takes a report back; a session only its own."""
    house, caller = house_of(request), caller_of(request)
    report = request.match_info["id"]
    to_blob(report)
    session = caller.session.id if caller.session is not None else None
    row = await house.writer.write(lambda conn: reports.withdraw_report(conn, report, session=session))
    return json_reply({"agent_record_id": report, "withdrawn": True, "references": row["references"]})


ROUTES = [
    Route("POST", "/reef/report", store_report, Access.OPEN, session=True, in_path=True),
    Route("DELETE", "/reef/reports/{id}", withdraw_report, session=True),
]
