"""Combee's settings beside GEPA's."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from flowevolve.algorithms.gepa.config import GEPAConfig


class CombeeConfig(GEPAConfig):
    """``batch`` reflections on minibatches of their own make one proposal."""

    batch: int = Field(default=10, ge=2)
    """Reflections per proposal; with ``dynamic`` the most."""
    batch_size: Literal["fixed", "dynamic"] = "fixed"
    """``dynamic``: profile the delay at growing sizes, and settle where larger batches hardly save any."""
    copies: int = Field(default=2, gt=0)
    """In how many groups every reflection is on the first level of the merge."""
    fan_in: int = Field(default=8, ge=2)
    """What one merge call gets at most."""
