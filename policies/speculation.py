"""Speculation: what a stage releases before all of its requests have ended (FlashEvolve §3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean


def beats(scores: Mapping[str, float], incumbent: Mapping[str, float], prefix: Sequence[str]) -> bool:
    """Whether the mean over these examples is higher than the incumbent's on the same ones."""
    return fmean(scores[name] for name in prefix) > fmean(incumbent[name] for name in prefix)
