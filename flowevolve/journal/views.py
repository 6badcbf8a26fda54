"""The views ``recorded_events`` and ``recorded_calls``, which show the journal of any schema in the current form."""

from __future__ import annotations

_EVENTS = "CREATE TEMP VIEW recorded_events AS SELECT * FROM main.events;"
_EVENTS_5 = """
CREATE TEMP VIEW recorded_events AS
SELECT seq, t, kind, data, NULL AS calls, NULL AS payload, NULL AS checksum FROM main.events;
"""
_CALLS = "CREATE TEMP VIEW recorded_calls AS SELECT * FROM main.calls;"
_CALLS_5 = "CREATE TEMP VIEW recorded_calls AS SELECT *, NULL AS checksum FROM main.calls;"
_CALLS_4 = "CREATE TEMP VIEW recorded_calls AS SELECT *, NULL AS template, NULL AS checksum FROM main.calls;"
_CALLS_3 = """
CREATE TEMP VIEW recorded_calls AS
SELECT id, seq, role, model, stage, item, idx, candidate, messages, temperature, max_tokens, seed, reply, error,
    finish_reason, prompt_tokens, completion_tokens, cached_tokens, attempts, queued, started, finished, cached,
    NULL AS thinking, NULL AS template, NULL AS checksum
FROM main.calls;
"""
_CALLS_2 = """
CREATE TEMP VIEW recorded_calls AS
SELECT id, -1 AS seq, role, model, stage, item, idx, candidate, json_extract(request, '$.messages') AS messages,
    json_extract(request, '$.temperature') AS temperature, json_extract(request, '$.max_tokens') AS max_tokens,
    json_extract(request, '$.seed') AS seed, reply, error, finish_reason, prompt_tokens, completion_tokens,
    cached_tokens, attempts, queued, started, finished, cached, NULL AS thinking, NULL AS template, NULL AS checksum
FROM main.calls;
"""
VIEWS = {
    1: _EVENTS_5 + _CALLS_2.replace(", cached,", ", 0 AS cached,"),
    2: _EVENTS_5 + _CALLS_2,
    3: _EVENTS_5 + _CALLS_3,
    4: _EVENTS_5 + _CALLS_4,
    5: _EVENTS_5 + _CALLS_5,
    6: _EVENTS + _CALLS,
}
"""The statements that create the views, by schema."""
