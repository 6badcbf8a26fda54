"""Scores that can be compared with those of the best candidate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from flowevolve.page.tables.candidates import ScoreRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow


def validation_scores(tables: Tables) -> Mapping[str, Mapping[str, float]]:
    """The scores by example, of the candidates that have scores on an example that the best one has.

    The other candidates are of another kind, such as the prompts that evolve beside programs.
    """
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for row in tables.of(ScoreRow):
        if row.source == "validation":
            scores[row.candidate][row.example] = row.value
    (run,) = tables.of(RunRow)
    common = scores.get(run.best or "")
    return scores if common is None else {name: each for name, each in scores.items() if common.keys() & each.keys()}
