"""Combee's settings beside GEPA's."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from flowevolve.algorithms.gepa.config import GEPAConfig


class CombeeConfig(GEPAConfig):
    """``batch`` reflections on minibatches of their own make one proposal."""

    batch: int = Field(default=10, ge=2)
    """Reflections per proposal; with ``dynamic``, at most this many."""
    batch_size: Literal["fixed", "dynamic"] = "fixed"
    """``dynamic``: measure the delay of growing batches, and settle on a size beyond which larger ones hardly save
    time.
    """
    copies: int = Field(default=2, gt=0)
    """The number of groups that each reflection is put into on the first level of the merge."""
    fan_in: int = Field(default=8, ge=2)
    """One merge call gets at most this many texts."""
