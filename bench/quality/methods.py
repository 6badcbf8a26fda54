"""The streams that are compared with lockstep, and the settings that the preset ``careful`` was chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench._lib.algorithm_runs import Settings


def stream(
    flows: int,
    staleness: Settings,
    *,
    evaluating: int | None = None,
    algorithm: Settings | None = None,
    **sections: Settings,
) -> Settings:
    """A configuration of streaming GEPA, as in the preset ``plain`` but for what is given.

    ``evaluating`` is the number of workers of the stage ``evaluate``.
    """
    return {
        "preset": "plain",
        "algorithm": {"name": "gepa", "mode": "stream", "max_in_flight": flows, **(algorithm or {})},
        "staleness": staleness,
        "stages": {} if evaluating is None else {"evaluate": {"workers": evaluating, "max_workers": evaluating}},
        **sections,
    }


def reflective(repairs: int) -> Settings:
    return {"policy": "reflective", "max_repairs": repairs}


GUARDED: Settings = {"policy": "guarded"}
ADMISSION: Settings = {"admission": {"policy": "server_queue"}}
IMPROVEMENT: Settings = {"validation": "improvement"}
RACE: Mapping[str, Settings] = {
    "speculation": {"alpha": {"evaluate": 0.25}, "hold": True},
    "racing": {"policy": "prefix"},
}
CANDIDATES: Mapping[str, Settings] = {
    "plain": stream(16, GUARDED),
    "guarded, 4 flows": stream(4, GUARDED),
    "reflective, 4 flows": stream(4, reflective(1)),
    "reflective, 8 flows": stream(8, reflective(1)),
    "reflective, 8 flows, 2 validations": stream(8, reflective(1), evaluating=2),
    "reflective, 8 flows, 1 validation": stream(8, reflective(1), evaluating=1),
    "3 repairs, 6 flows, 1 validation": stream(6, reflective(3), evaluating=1),
    "3 repairs, 8 flows, 1 validation": stream(8, reflective(3), evaluating=1),
    "3 repairs, 12 flows, 1 validation": stream(12, reflective(3), evaluating=1),
    "3 repairs, 16 flows, 1 validation": stream(16, reflective(3), evaluating=1),
    "8 repairs, 8 flows, 1 validation": stream(8, reflective(8), evaluating=1),
    "3 repairs, 8 flows, 2 validations": stream(8, reflective(3), evaluating=2),
    "3 repairs, 8 flows, 2 validations, racing": stream(8, reflective(3), evaluating=2, **RACE),
    "3 repairs, 8 flows, 1 validation, racing": stream(8, reflective(3), evaluating=1, **RACE),
    "3 repairs, 8 flows, 1 validation, improvement": stream(8, reflective(3), evaluating=1, algorithm=IMPROVEMENT),
    "3 repairs, 8 flows, 1 validation, server_queue": stream(8, reflective(3), evaluating=1, scheduler=ADMISSION),
    "reflective, 32 flows, pressure, server_queue": stream(
        32, reflective(1), scheduler=ADMISSION, allocation={"policy": "pressure"}
    ),
}
"""The settings that the preset ``careful`` was chosen from, which is the one with 3 repairs, 6 flows and 1 validation:
it did best at equal tokens, and was among the first to lockstep's score.
"""

METHODS: Mapping[str, Settings] = {
    "plain": {"preset": "plain"},
    "careful": {"preset": "careful"},
    "default": {},
}
"""The methods that are compared; the last one is reported on top."""
ONLY_IN: Mapping[str, Sequence[str]] = {"plain": ("normal",), "careful": ("normal", "adversarial", "harsh")}
"""The worlds in which a method is run by default, if not in all: these methods take most of the bench's time."""


OTHERS: Mapping[str, Settings] = {
    **{
        f"lockstep, {width} side by side": {"algorithm": {"name": "gepa", "mode": "sync", "width": width}}
        for width in (4, 16)
    },
    **{
        f"combee {batch}": {"algorithm": {"name": "combee", "mode": "sync", "width": batch, "batch": batch}}
        for batch in (10, 40)
    },
    "combee dynamic": {
        "algorithm": {"name": "combee", "mode": "sync", "width": 40, "batch": 40, "batch_size": "dynamic"}
    },
    "combee 10, stream": {"algorithm": {"name": "combee", "max_in_flight": 40, "batch": 10}, "staleness": GUARDED},
    **{f"preset {name}": {"preset": name} for name in ("flashevolve", "plain", "careful")},
    "default": {},
}
"""What users could take instead of the default: several proposals side by side, which gepa calls PxN (4 is 2x2, 16 is
4x4), in lockstep as published; Combee, which makes one proposal of many reflections, in lockstep as published and
inside the stream; and the other presets.
"""
WITHOUT: Mapping[str, Settings] = {
    "one validation for each edit": {
        "algorithm": {"validation": "improvement", "group": False, "prune": True, "remeasure": True, "finalists": 4},
        "racing": {"policy": "confidence"},
        "stages": {"evaluate": {"workers": 4, "max_workers": 4}},
    },
    "no optimistic parents": {"algorithm": {"optimism": 0.0}},
    "no pruning": {"algorithm": {"prune": False}},
    "no repeats of the best": {"algorithm": {"remeasure": False}},
    "winner by validation alone": {"algorithm": {"finalists": 0}},
    "no racing": {"racing": {"policy": "off"}},
    "16 flows": {"algorithm": {"max_in_flight": 16}},
    "default": {},
}
"""The default, and the default without each of its parts."""
