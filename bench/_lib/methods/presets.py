"""The settings that our own engine is measured with, as sections of a configuration."""

from __future__ import annotations

from collections.abc import Mapping

Sections = Mapping[str, object]

DEFAULTS: Sections = {"preset": "default"}
"""What runs if nothing is set: ``default`` is the preset of a configuration that names none."""


def combee(batch: int) -> Sections:
    """Combee at a fixed size, as published: lockstep with ``batch`` reflections per proposal."""
    return {"preset": "plain", "algorithm": {"name": "combee", "mode": "sync", "width": batch, "batch": batch}}


PRESETS: Mapping[str, Sections] = {
    "stream": DEFAULTS,
    "stream_time": {**DEFAULTS, "algorithm": {"aim": "time"}},
    "plain": {"preset": "plain"},
    "careful": {"preset": "careful"},
    "flashevolve": {"preset": "flashevolve"},
    "lockstep": {"preset": "lockstep"},
    "combee_10": combee(10),
    "combee_40": combee(40),
}
"""The settings of our methods by name. ``stream`` has the defaults and ``stream_time`` those with the aim ``time``.
The others are presets, and Combee at two sizes.
"""
ON_REAL_TIME: Mapping[str, str] = {
    "stream_real": "stream",
    "stream_time_real": "stream_time",
    "lockstep_real": "lockstep",
}
"""Methods with the settings of the methods they map to, but run against the server's process instead of on the virtual
clock, so that the two can be compared. None of them has a policy with an interval in seconds, which a sped-up server
would stretch.
"""


def sections(method: str) -> Sections:
    """The settings of one of our methods."""
    return PRESETS[ON_REAL_TIME.get(method, method)]
