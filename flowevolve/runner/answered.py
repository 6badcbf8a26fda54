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
    if result.stop_reason.leaves_work or not (what := unanswered(result.to_json())):
        return None
    error = BackendUnreachableError(
        f"{what} in {result.wall_seconds:.0f} s, until the run was stopped by {result.stop_reason.said}. If the model "
        "is slow, raise the budget, or llm.timeout_seconds, which is "
        f"{config.llm.timeout_seconds:g} s; otherwise look at the server's log"
    )
    error.of_run = result
    return error
