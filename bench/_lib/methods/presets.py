"""The settings that our own engine is measured with, as sections of a configuration."""

from __future__ import annotations

from collections.abc import Mapping

Sections = Mapping[str, Mapping[str, object]]

SYNC: Sections = {"algorithm": {"name": "gepa", "mode": "sync", "width": 1}}
"""Lockstep, one flow at a time: GEPA as published, run by our engine."""

PLAIN: Sections = {
    "algorithm": {"name": "gepa", "mode": "stream", "max_in_flight": 16},
    "stages": {name: {"workers": 16} for name in ("generate", "propose", "screen", "evaluate")},
    "staleness": {"policy": "full"},
    "scheduler": {"order": {"policy": "fifo"}},
}
"""The stream without any mechanism: fixed workers, first come first served, nothing speculative, nothing repaired."""

FULL: Sections = {
    "algorithm": {"name": "gepa", "mode": "stream", "max_in_flight": 64},
    "stages": {name: {"workers": 32, "max_workers": 64} for name in ("generate", "propose", "screen", "evaluate")},
    "staleness": {"policy": "reflective"},
    "speculation": {"alpha": {"evaluate": 0.25}, "hold": True, "reorder": True},
    "racing": {"policy": "prefix"},
    "allocation": {"policy": "pressure"},
    "scheduler": {"order": {"policy": "later_first"}, "admission": {"policy": "server_queue"}},
}
"""The stream with every mechanism that keeps a server full and spends little on a proposal: most validations end after
a quarter of the examples, and only what raises the mean score enters the pool.
"""

CAREFUL: Sections = {
    **{name: section for name, section in FULL.items() if name != "speculation"},
    "algorithm": {**FULL["algorithm"], "validation": "front"},
    "racing": {"policy": "bound"},
}
"""As `FULL`, but a validation ends early only when nothing could change its verdict, and the pool is GEPA's front."""


def combee(batch: int) -> Sections:
    """Combee at a fixed size, as published: lockstep with so many reflections to a proposal."""
    return {"algorithm": {"name": "combee", "mode": "sync", "width": batch, "batch": batch}}


PRESETS: Mapping[str, Sections] = {
    "sync": SYNC,
    "stream_plain": PLAIN,
    "stream": FULL,
    "stream_careful": CAREFUL,
    "combee_10": combee(10),
    "combee_40": combee(40),
}

INTERVALS = {"allocation": 5.0, "admission": 2.0}
"""The policies' default intervals in seconds between two adjustments."""


def hurried(sections: Sections, speed: float) -> dict[str, dict[str, object]]:
    """The sections for a server at so many times its speed: intervals that are set in seconds are as much shorter."""
    made = {name: dict(section) for name, section in sections.items()}
    if "allocation" in made:
        made["allocation"]["interval_seconds"] = INTERVALS["allocation"] / speed
    scheduler = made.get("scheduler", {})
    if isinstance(admission := scheduler.get("admission"), dict):
        scheduler["admission"] = {**admission, "interval_seconds": INTERVALS["admission"] / speed}
    return made
