"""How often methods lose a score of synchronous gepa's again, and from when on they keep it."""

from __future__ import annotations

from bench._lib.methods.process import CEILING
from bench._lib.text import Content, table
from bench._lib.time_to_score import Rows, Spent, afterwards, workloads
from bench.throughput.goals import by_workload, range_of_medians, with_held_out
from bench.throughput.labels import LABELS
from bench.throughput.rows import BASE

ABOUT = """\
A method's best prompt is the one with the best score on the rows for validation, so a prompt that is chosen later may
be worth less on rows held out. *First* is when a run first has the last score of synchronous gepa's run, *kept* is when
it has this score and keeps it to the end of its windows. Times and tokens are over gepa's own, by the same rule, and
each is the range of the workloads' medians over all pairs of runs; *never* is where half of a workload's pairs or more
don't have the score. A run of ours that ends by itself chooses the winner on fresh examples; these runs are cut off
before that. Beside synchronous gepa's runs stand these runs themselves, each also beside itself."""


def losses(content: Content) -> str:
    """A table of all methods; empty if held-out scores are not known."""
    lines = [
        (suffix, label, *_losses(rows, method))
        for suffix, rows in with_held_out(content).items()
        for method, label in LABELS.items()
        if method != CEILING and workloads(rows, method, BASE)
    ]
    if not lines:
        return ""
    header = (
        "server",
        "method",
        "time over gepa's, first",
        "time, kept",
        "tokens over gepa's, first",
        "tokens, kept",
        "pairs that have the score, of all",
        "of these, lose it later",
        "of these, below it at the end",
    )
    return f"{ABOUT}\n\n{table(header, lines)}"


def _losses(rows: Rows, method: str) -> tuple[str, ...]:
    left = afterwards(rows, method, BASE)
    return (
        _medians(rows, method, "seconds", kept=False),
        _medians(rows, method, "seconds", kept=True),
        _medians(rows, method, "tokens", kept=False),
        _medians(rows, method, "tokens", kept=True),
        f"{left.reached} of {left.pairs}",
        f"{left.later}",
        f"{left.last}",
    )


def _medians(rows: Rows, method: str, spent: Spent, *, kept: bool) -> str:
    return range_of_medians(by_workload(rows, method, spent=spent, kept=kept).values())
