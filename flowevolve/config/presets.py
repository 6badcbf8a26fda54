"""Presets: named settings that together decide what a configuration leaves open. See docs/how-to/presets.md."""

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
"""Edits are merged and validated together, evaluations of losing candidates are stopped, lines that don't help are
taken out again, and the winner is chosen on fresh examples. The best preset for GEPA.
"""
FLASHEVOLVE: Table = {
    "algorithm": {"max_in_flight": 32},
    "staleness": {"policy": "reflective"},
    "speculation": {"alpha": {"generate": 0.5, "evaluate": 0.5}},
    "allocation": {"policy": "pressure"},
}
"""GEPA as in FlashEvolve: speculation, repair of stale edits, and workers that move to where work waits."""
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
"""The presets of each algorithm, in addition to ``plain``, which changes nothing, and ``lockstep``, which all have."""


def with_preset(table: Table, preset: Preset) -> Table:
    """The table of a configuration, with what it leaves open filled in from the preset.

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
        raise InputError(f"preset: algorithm {algorithm.get('name')!r} has no preset {preset!r}; it has {known}")
    return _over(own.get(preset, {}), table)


def _decides_otherwise(algorithm: Table) -> bool:
    """Whether the user has chosen a setting of GEPA that can't be combined with groups."""
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
    """Merge two tables. In each section, the settings of ``above`` take precedence. A table within a section counts as
    one setting and is not merged, so that a number of workers never meets the bounds of another one.
    """
    sections = {name: {**_section(below, name), **_section(above, name)} for name in below}
    others = {name: value for name, value in above.items() if not isinstance(value, Mapping) or name not in below}
    return {**sections, **others}
