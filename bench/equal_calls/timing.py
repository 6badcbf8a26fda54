"""How long an adapter takes, and how many of its calls are made at a time."""

from __future__ import annotations

CONCURRENCY = 8
"""How many calls of the adapter the drop-in makes at a time."""
CALL_SECONDS = ROW_SECONDS = 0.004
"""Seconds for each call, and for each of its rows, which are answered one after the other."""
AT_ONCE = "rows at once"
"""The world whose adapter answers all rows of a call at once."""
AT_ONCE_SECONDS = 0.032
"""Seconds for a call there, however many rows it has."""
