"""What flows between Meta-Harness's stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.json_types import JSON
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate


@payload("meta_harness.Checked")
@dataclass(frozen=True, slots=True)
class Checked:
    """A harness that can be imported, to be scored on a split."""

    candidate: Candidate
    split: Literal["val", "test"] = "val"


@payload("meta_harness.Invalid")
@dataclass(frozen=True, slots=True)
class Invalid:
    """A harness that can't be used, and a report of why, for the next proposers."""

    candidate: Candidate
    report: str


@payload("meta_harness.Benchmarked")
@dataclass(frozen=True, slots=True)
class Benchmarked:
    """A harness with its scores by example id, and its other results as attributes."""

    candidate: Candidate
    scores: Mapping[str, float]
    attributes: Mapping[str, JSON]
    split: Literal["val", "test"] = "val"
