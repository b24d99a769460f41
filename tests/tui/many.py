"""A store with very many records: made by SQL, because a person's year of calls cannot be made one by one in a test."""

from __future__ import annotations

from reef.paths import Paths
from reef.records import rows
from reef.records.schema import open_store

_INSERT = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
INSERT INTO records (
    id, scenario, session, dialect, route, model, streaming, state, source, adapter, version, engine,
    request_bytes, response_bytes, status, started_at, first_byte_ms, duration_ms, prompt_tokens, completion_tokens,
    finish_reason, preview, answer_preview
)
SELECT randomblob(16), 'default', 'session-' || (n / 20), 'chat', '/v1/chat/completions', 'qwen3:8b', 1, 'complete',
    'agent', 'pi', 1 + n / 10000, 'ollama', 4000, 900, 200,
    strftime('%Y-%m-%dT%H:%M:%SZ', 'now', (n - ?) || ' minutes'), 300, 2500 + n % 700, 900 + n % 5000, 80 + n % 300,
    'stop', 'call number ' || n, 'answer'
FROM numbers
"""


def fill_store(paths: Paths, count: int) -> None:
    """Make the home's store with one scenario and `count` records."""
    store = open_store(paths.database)
    try:
        store.execute("BEGIN")
        rows.add_scenario(store, "default", recipe="basic", adapter="pi", state="ready")
        store.execute(_INSERT, (count, count))
        store.execute("COMMIT")
    finally:
        store.close()
