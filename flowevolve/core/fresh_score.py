"""What the winner scored on fresh examples at the end of the run. No earlier choice used these scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from flowevolve._util.intervals import Interval, in_brackets
from flowevolve.core.record import Record


class FreshScore(Record, kind="winner.chosen"):
    """The candidate that was chosen at the end of a run, and its score on the fresh examples run for that choice."""

    candidate: str
    source: Literal["train", "val"]
    """``train``: training examples that are not used for validation; ``val``: validation examples, run again."""
    examples: int
    score: float
    """The mean over these examples alone."""
    interval: Interval
    """Its 95 % interval, by resampling examples."""
    finalists: Mapping[str, float]
    """The mean score of each candidate compared, the best by validation first. Those that fell behind were run on fewer
    examples.
    """

    def __str__(self) -> str:
        examples = "validation examples run again" if self.source == "val" else "fresh examples"
        others = f"; chosen among {len(self.finalists)} finalists" if len(self.finalists) > 1 else ""
        return f"{self.score:.4f}{in_brackets(self.interval)} on {self.examples} {examples}{others}"
