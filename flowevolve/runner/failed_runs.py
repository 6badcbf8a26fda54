"""What a run that has failed had found. If it left no directory, it is found through the error alone."""

from __future__ import annotations

from flowevolve._util.errors import FlowevolveError
from flowevolve.runner import result_view as view
from flowevolve.runner.result import Result


def result_of(error: FlowevolveError) -> Result | None:
    """What a run had found when it failed with this error; None if it failed before it began or in its held-out test,
    or if the error has nothing to do with a run.
    """
    return error.of_run if isinstance(error.of_run, Result) else None


def note_what_was_found(error: FlowevolveError) -> None:
    """Add notes on what would be lost with the error, which Python prints after its message: the best texts, and how to
    lose nothing the next time.

    There are none if the run has a directory, or has proposed nothing yet.
    """
    result = result_of(error)
    if result is None or result.directory is not None or result.best is None or not result.proposals:
        return
    best = result.best
    error.add_note(
        f"What the run had found, {view.scores(result.seed_score, best.score, best.interval)}, is what "
        "flowevolve.result_of returns for this error. With out= a run like this can be resumed, and nothing is paid "
        "for twice."
    )
    if not best.as_seed:
        for name, text in best.components.items():
            error.add_note(f"The best {name} so far:\n{text}")
