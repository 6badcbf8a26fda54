"""What a winner scored on examples that it was not selected by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from flowevolve._util.intervals import Interval, in_brackets
from flowevolve.core.record import Record


class FreshScore(Record, kind="winner.chosen"):
    """The candidate that was chosen at the end of a run, and how it did on the examples that it was chosen by."""

    candidate: str
    source: Literal["train", "val"]
    """Training examples that are not among those of validation, or validation examples that were run again."""
    examples: int
    score: float
    """The mean over these examples alone."""
    interval: Interval
    """Its 95 % interval, by resampling examples."""
    finalists: Mapping[str, float]
    """The means of all that were compared, the best by validation first; those that fell behind had fewer examples."""

    def __str__(self) -> str:
        examples = "validation examples run again" if self.source == "val" else "fresh examples"
        others = f"; chosen among {len(self.finalists)} finalists" if len(self.finalists) > 1 else ""
        return f"{self.score:.4f}{in_brackets(self.interval)} on {self.examples} {examples}{others}"
