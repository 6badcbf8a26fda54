"""Checks whether a case keeps all rules, and shrinks one that does not."""

from __future__ import annotations

from bench.simtest.case import Case
from bench.simtest.drawing import may_be_run
from bench.simtest.rules import Fault
from bench.simtest.shrinking import shrink
from bench.simtest.trial import Trial, run_case


def check(case: Case, *, twice: bool = True) -> list[Fault]:
    """The rules that a case breaks. With ``twice`` it is run again, and has to go the same way."""
    first = run_case(case)
    if first.faults or not twice:
        return first.faults
    again = run_case(case)
    return again.faults or [Fault("repeatable", each) for each in _differences(first, again)]


def shrunk(case: Case, found: Fault) -> Case:
    """The smallest case found that breaks the same rule in the same way."""
    twice = found.rule == "repeatable"
    return shrink(
        case,
        lambda smaller: may_be_run(smaller) and any(fault.like(found) for fault in check(smaller, twice=twice)),
    )


def _differences(first: Trial, again: Trial) -> list[str]:
    """The first line in which two trials differ."""
    pairs = zip([*first.log().split("\n"), "its end"], [*again.log().split("\n"), "its end"], strict=False)
    return next(
        (
            [f"line {number} is {one:.200} and then {other:.200}"]
            for number, (one, other) in enumerate(pairs)
            if one != other
        ),
        [],
    )
