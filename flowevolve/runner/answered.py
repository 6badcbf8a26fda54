"""Whether any model call of a run was answered. A run that goes to its end without an answer has failed, whatever ended
it.
"""

from __future__ import annotations

from flowevolve._util.errors import BackendUnreachableError
from flowevolve.config.run import Config
from flowevolve.runner.result import Result
from flowevolve.telemetry.result_words import unanswered


def unanswered_error(result: Result, config: Config) -> BackendUnreachableError | None:
    """The error to raise for a run that went to its end without an answer to any call; None for any other run."""
    if result.stop_reason.leaves_work or not (said := unanswered(result.to_json())):
        return None
    error = BackendUnreachableError(
        f"{said} in {result.wall_seconds:.0f} s, until the run was stopped by {result.stop_reason.said}. An answer may "
        f"take llm.timeout_seconds = {config.llm.timeout_seconds:g} s: raise that, or the budget, if the model is "
        "slow; else look at what its server says"
    )
    error.result = result
    return error
