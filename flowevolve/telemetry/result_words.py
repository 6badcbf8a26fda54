"""What is said of a result in more than one place, from its ``result.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def unanswered(result: Mapping[str, Any]) -> str:
    """Words for a run that asked its models and never had an answer; empty for any other."""
    llm = result["llm"]
    asked = llm["requests"] or llm.get("cancelled") or llm["mean_in_flight"]
    if not asked or llm["requests"] > llm["failed"] or llm.get("cached_calls"):
        return ""
    return "no call of a model was answered"
