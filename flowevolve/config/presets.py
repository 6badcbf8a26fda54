"""Presets: what a configuration leaves open is decided together, under a name. docs/how-to/presets.md compares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from flowevolve._util.errors import InputError

Preset = Literal["default", "flashevolve", "plain", "careful", "lockstep"]
Table = Mapping[str, object]

GROUPS: Table = {
    "algorithm": {"group": True, "validation": "improvement", "prune": True, "remeasure": True, "finalists": 4},
    "racing": {"policy": "confidence"},
    "stages": {"evaluate": {"workers": 4, "max_workers": 4}},
}
"""Edits are merged and validated together, what is losing is stopped, passengers are taken out again, and the winner is
chosen on fresh examples. The best that there is for GEPA.
"""
FLASHEVOLVE: Table = {
    "algorithm": {"max_in_flight": 32},
    "staleness": {"policy": "reflective"},
    "speculation": {"alpha": {"generate": 0.5, "evaluate": 0.5}},
    "allocation": {"policy": "pressure"},
}
"""GEPA as in FlashEvolve: speculation, repair of what is stale, workers that go where work waits."""
CAREFUL: Table = {
    "algorithm": {"max_in_flight": 6},
    "staleness": {"policy": "reflective", "max_repairs": 3},
    "stages": {"evaluate": {"workers": 1, "max_workers": 1}},
}
"""Six flows, one validation at a time, and up to three repairs of an edit whose parent is no longer the best."""
LOCKSTEP: Table = {"algorithm": {"mode": "sync"}}
"""The published loop, with a barrier after every stage."""
PRESETS: Mapping[str, Mapping[Preset, Table]] = {
    "gepa": {"default": GROUPS, "flashevolve": FLASHEVOLVE, "careful": CAREFUL},
}
"""Those of each algorithm, beside ``plain``, which is nothing but its own rules, and ``lockstep``."""


def with_preset(table: Table, preset: Preset) -> Table:
    """A configuration's table with what the preset says where the table says nothing.

    Raises:
        InputError: if the algorithm does not have the preset.
    """
    algorithm = _section(table, "algorithm")
    own = PRESETS.get(str(algorithm.get("name", "gepa")), {})
    if preset == "lockstep":
        return _over(LOCKSTEP, table)
    if preset == "default":
        return table if _decides_otherwise(algorithm) else _over(own.get(preset, {}), table)
    if preset != "plain" and preset not in own:
        known = ", ".join(("default", *(name for name in own if name != "default"), "plain", "lockstep"))
        raise InputError(f"preset: algorithm {algorithm.get('name')!r} has no {preset!r}; it has {known}")
    return _over(own.get(preset, {}), table)


def _decides_otherwise(algorithm: Table) -> bool:
    """Whether somebody has chosen a setting of GEPA's that groups don't go together with."""
    return (
        algorithm.get("mode") == "sync"
        or algorithm.get("merge") is True
        or algorithm.get("group") is False
        or algorithm.get("validation") in ("everything", "front")
        or _section(algorithm, "archive").get("fronts", "instance") != "instance"
    )


def _section(table: Table, name: str) -> Table:
    section = table.get(name)
    return section if isinstance(section, Mapping) else {}


def _over(below: Table, above: Table) -> Table:
    """Both tables in one. What a section of ``above`` sets comes from there; a table in a section is one setting, so
    that a number of workers does not meet the bounds of another.
    """
    sections = {name: {**_section(below, name), **_section(above, name)} for name in below}
    others = {name: value for name, value in above.items() if not isinstance(value, Mapping) or name not in below}
    return {**sections, **others}
