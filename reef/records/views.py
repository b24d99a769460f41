"""Views for people who open the store with SQLite's own tools: ids in hex, times as text that sorts, no bodies.

They are part of migration 6 and therefore never edited; a later migration drops and makes them anew. A table is called
`sessions` already, so its view is `sessions_view`.
"""

from __future__ import annotations


def _time(column: str) -> str:
    return f"replace(substr({column}, 1, 19), 'T', ' ')"


M006_VIEWS = (
    f"""CREATE VIEW calls AS SELECT
        records.sequence AS sequence,
        lower(hex(records.id)) AS receipt,
        {_time("records.started_at")} AS started_at,
        records.scenario AS scenario,
        records.session AS session,
        records.state AS state,
        records.source AS source,
        records.adapter AS adapter,
        records.version AS version,
        records.dialect AS dialect,
        records.engine AS engine,
        records.model AS model,
        records.status AS status,
        records.prompt_tokens AS prompt_tokens,
        records.cached_tokens AS cached_tokens,
        records.completion_tokens AS completion_tokens,
        records.first_byte_ms AS first_byte_ms,
        records.duration_ms AS duration_ms,
        records.finish_reason AS finish_reason,
        records.prompt_cut AS prompt_cut,
        records.side_call AS side_call,
        records.redactions AS redactions,
        records.trainable AS trainable,
        records.request_bytes AS request_bytes,
        records.response_bytes AS response_bytes,
        (SELECT reports.score FROM report_references
            JOIN reports ON reports.sequence = report_references.report
            WHERE report_references.record = records.sequence AND reports.source = 'person'
            AND reports.withdrawn_at IS NULL AND reports.score IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM report_references AS other
                WHERE other.report = reports.sequence AND other.record != records.sequence)
            ORDER BY coalesce(reports.revised_at, reports.created_at) DESC, reports.sequence DESC LIMIT 1) AS score,
        records.error AS error,
        records.preview AS question,
        records.answer_preview AS answer
        FROM records""",
    f"""CREATE VIEW sessions_view AS SELECT
        sessions.sequence AS sequence,
        lower(hex(sessions.id)) AS id,
        {_time("sessions.opened_at")} AS opened_at,
        {_time("sessions.closed_at")} AS closed_at,
        sessions.scenario AS scenario,
        sessions.kind AS kind,
        sessions.adapter AS adapter,
        sessions.version AS version,
        sessions.key AS key,
        sessions.cwd AS cwd,
        sessions.title AS title,
        (SELECT count(*) FROM records
            WHERE records.session = sessions.key AND records.scenario = sessions.scenario) AS calls,
        (SELECT sum(records.prompt_tokens) FROM records
            WHERE records.session = sessions.key AND records.scenario = sessions.scenario) AS prompt_tokens,
        (SELECT sum(records.completion_tokens) FROM records
            WHERE records.session = sessions.key AND records.scenario = sessions.scenario) AS completion_tokens
        FROM sessions""",
    f"""CREATE VIEW scores AS SELECT
        reports.sequence AS sequence,
        lower(hex(reports.id)) AS report,
        lower(hex(records.id)) AS receipt,
        {_time("reports.created_at")} AS created_at,
        {_time("reports.withdrawn_at")} AS withdrawn_at,
        reports.scenario AS scenario,
        reports.session AS session,
        reports.source AS source,
        reports.score AS score,
        reports.feedback_json AS feedback_json,
        records.model AS model,
        records.preview AS question,
        records.answer_preview AS answer
        FROM reports
        LEFT JOIN report_references ON report_references.report = reports.sequence
        LEFT JOIN records ON records.sequence = report_references.record""",
)
