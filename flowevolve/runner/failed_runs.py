"""What is said of a run that has failed and left no directory: only its error still has what it found."""

from __future__ import annotations

from flowevolve._util.errors import FlowevolveError
from flowevolve.runner import result_view as view


def note_what_was_found(error: FlowevolveError) -> None:
    """Add notes on what would be lost with the error, which Python prints after its message: the best texts, and how to
    lose nothing the next time.

    There are none if the run has a directory, or has proposed nothing yet.
    """
    result = error.result
    if result is None or result.directory is not None or result.best is None or not result.proposals:
        return
    best = result.best
    error.add_note(
        f"What the run had found, {view.scores(result.seed_score, best.score, best.interval)}, is in this error's "
        "result. With out= a run like this can be resumed, and nothing is paid for twice."
    )
    if not best.as_seed:
        for name, text in best.components.items():
            error.add_note(f"The best {name} so far:\n{text}")
