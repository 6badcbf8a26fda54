"""One published program run and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.published.families import Family, Published
from flowevolve.core.artifact import Artifact
from flowevolve.programs import Problem, Verdict
from flowevolve.programs.problem import PROGRAM
from flowevolve.sandbox import Sandbox

Outcome = Literal["agrees", "better", "worse", "failed"]


@dataclass(frozen=True, slots=True)
class Checked:
    """The published figure of a program, and ours."""

    id: str
    problem: str
    theirs: float
    ours: float | None
    """None if the program failed."""
    outcome: Outcome
    """``better`` and ``worse`` say how ours differs by more than the tolerance."""
    seconds: float
    failure: str | None = None

    def figures(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        ours = "–" if self.ours is None else f"{self.ours:.6g}"
        why = "" if self.failure is None else f"  {self.failure[:100]}"
        return f"{self.problem} {self.id[:12]}: {self.theirs:.6g} published, {ours} ours, {self.outcome}{why}"


async def check(family: Family, problem: Problem, published: Published, sandbox: Sandbox) -> Checked:
    """Run a program on all cases of the problem. It has failed if it fails in one of them."""
    program = Artifact({PROGRAM: family.source(published.program)}, kind="program")
    verdicts: list[Verdict] = []
    for case in problem.cases:
        verdicts.append(await problem.judge(program, case, sandbox))
        if verdicts[-1].failure is not None:
            break
    seconds = sum(verdict.metrics["seconds"] for verdict in verdicts)
    theirs, failure = family.theirs(published), verdicts[-1].failure
    if failure is not None:
        return Checked(published.id, family.problem, theirs, None, "failed", seconds, failure)
    ours = family.value(verdicts)
    return Checked(published.id, family.problem, theirs, ours, compared(family, theirs, ours), seconds)


def compared(family: Family, theirs: float, ours: float) -> Outcome:
    """How our figure differs from the published one."""
    if abs(ours - theirs) <= family.tolerance * max(abs(theirs), abs(ours)):
        return "agrees"
    return "better" if (ours > theirs) == family.higher_is_better else "worse"


def summary(family: Family, checked: Sequence[Checked]) -> str:
    """A row of a table: how many programs had each outcome, and the best figure of both."""
    counts = [sum(each.outcome == outcome for each in checked) for outcome in ("agrees", "better", "worse", "failed")]
    choose = max if family.higher_is_better else min
    best = choose((each.theirs for each in checked), default=None)
    ours = choose((each.ours for each in checked if each.ours is not None), default=None)
    shown = ["–" if figure is None else f"{figure:.6g}" for figure in (best, ours)]
    return (
        f"| {family.problem} | `{family.ours}` | {len(checked)} | {' | '.join(map(str, counts))} | "
        f"{family.tolerance:g} | {' | '.join(shown)} |"
    )
