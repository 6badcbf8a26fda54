"""Figures as text, and Markdown tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

Content = Mapping[str, Any]
"""The content of a bench's result file."""
WIDTH = 120


def wrapped(text: str, indent: str = "") -> str:
    """Wrap a text at `WIDTH`. ``indent`` goes before all lines but the first."""
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)


def ranged(spread: Mapping[str, float], digits: int | None = None) -> str:
    """``median (low–high)``, or the median alone if all three are equal; by default with two decimals, without any from
    a median of 10 on.
    """
    places = digits if digits is not None else 0 if spread["median"] >= 10 else 2
    median, low, high = (f"{spread[name]:.{places}f}" for name in ("median", "low", "high"))
    return median if spread["low"] == spread["high"] else f"{median} ({low}–{high})"


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def between(low: object, high: object) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, without a line end after its last row."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|" for cells in lines)


Verdicts = Mapping[str, bool]
"""Whether each goal of a bench is met, by a few words that say what the goal is about."""


def verdict(met: bool) -> str:
    return "met" if met else "missed"


def provenance(content: Content) -> str:
    """Where, when and with what a file was measured, and the file's note if it has one."""
    machine: Mapping[str, Any] = content["machine"]
    parts = [f"{machine['system']}, {machine.get('model') or machine['processor']}"]
    if "gpu" in machine:
        parts.append(str(machine["gpu"]))
    if "cores" in machine:
        parts.append(f"{machine['cores']} cores, {machine['memory_gb']} GB")
    parts += [f"Python {machine['python']}", *(f"{name} {found}" for name, found in content["versions"].items())]
    note = f" {content['note']}" if content.get("note") else ""
    return f"Measured with: {', '.join(parts)}; commit {commit(content)}.{note}"


def commit(content: Content) -> str:
    """The commit that a result was measured at, and the date if the file has it."""
    changed = " with changes that are in no commit" if content.get("uncommitted_changes") else ""
    when = f", {content['date']}" if "date" in content else ""
    return f"{content['commit']}{changed}{when}"


def number(value: float, *, signed: bool = False, digits: int = 5) -> str:
    """A score, by default with five decimals: best known packings differ from good ones in the third."""
    return f"{value:{'+' if signed else ''}.{digits}f}"


def with_interval(value: object, *, signed: bool = False, digits: int = 5) -> str:
    """A score and its interval as ``value (low to high)``."""
    assert isinstance(value, Mapping)
    return around(value, lambda each: number(each, signed=signed, digits=digits))


def around(each: Content, said: Callable[[float], str], joined: str = " to ") -> str:
    """``value (low to high)``, or the value alone if there were too few values for an interval."""
    if each["ci95"] is None:
        return said(each["value"])
    low, high = map(said, each["ci95"])
    return f"{said(each['value'])} ({low}{joined}{high})"


def bounds(each: Content) -> tuple[float, float]:
    """The ends of an interval; infinite if there were too few values for one."""
    low, high = each["ci95"] or (-math.inf, math.inf)
    return low, high


def direction(each: Content) -> str:
    """Whether an interval of differences says that something helps or harms."""
    low, high = bounds(each)
    return "helps" if low > 0 else "harms" if high < 0 else "not found"
