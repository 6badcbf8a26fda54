"""The settings that our own engine is measured with, as sections of a configuration."""

from __future__ import annotations

from collections.abc import Mapping

Sections = Mapping[str, object]

DEFAULTS: Sections = {"preset": "default"}
"""What runs when nothing is set; ``default`` is the preset of a configuration that names none."""


def combee(batch: int) -> Sections:
    """Combee at a fixed size, as published: lockstep with so many reflections to a proposal."""
    return {"preset": "plain", "algorithm": {"name": "combee", "mode": "sync", "width": batch, "batch": batch}}


PRESETS: Mapping[str, Sections] = {
    "stream": DEFAULTS,
    "plain": {"preset": "plain"},
    "careful": {"preset": "careful"},
    "flashevolve": {"preset": "flashevolve"},
    "lockstep": {"preset": "lockstep"},
    "combee_10": combee(10),
    "combee_40": combee(40),
}
"""By the name of the method. ``stream`` is the defaults; the others are named presets, and Combee at two sizes."""
ON_REAL_TIME: Mapping[str, str] = {"stream_real": "stream", "lockstep_real": "lockstep"}
"""Methods that run as others do, but against the server's process and not on the virtual clock, so that both can be
compared. None of them has a policy with an interval in seconds, which a server that is sped up would stretch.
"""


def sections(method: str) -> Sections:
    """The settings of one of our methods."""
    return PRESETS[ON_REAL_TIME.get(method, method)]
