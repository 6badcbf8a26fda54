"""Whether a program could forge its own score, and how this is found out for a given evaluator.

A program can forge the scores of an evaluator that shares its sandbox, but not those of an evaluator in a sandbox of
its own. Whether an evaluator works in a sandbox of its own is tried on the seed: its score has to be the same with one
sandbox and with two, within its variation from run to run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.programs.evaluator import EvaluatorProblem, Judged
from flowevolve.programs.problem import Problem, Verdict
from flowevolve.sandbox import Sandbox, SandboxPair
from flowevolve.sandbox.isolation import package_folders

ISOLATED = ScoreTrust("isolated")
_REPEATS = 3
"""The most runs of the seed with an evaluator that shares its sandbox."""
_EQUAL = 1e-9
"""The relative difference up to which two scores are the same."""
_EQUAL_IN_NOISE = 1e-3
"""The same for an evaluator whose scores of one program vary, perhaps because they depend on measured times."""


def trust_by_settings(problem: Problem, settings: SandboxSettings) -> ScoreTrust | None:
    """Return the trust that the problem and the settings determine; None if it has to be tried on the seed.

    Raises:
        InputError: if the settings ask for an evaluator in a sandbox of its own where that is not possible.
    """
    why = _why_shared(problem, settings)
    if not isinstance(problem, EvaluatorProblem):
        return ISOLATED if why is None else ScoreTrust("shared", why)
    if settings.evaluator == "isolated":
        if why is not None:
            raise InputError(f'sandbox.evaluator: "isolated" is not possible for {problem.name!r}: {why}')
        return ISOLATED
    if settings.evaluator == "shared":
        return ScoreTrust("shared", 'sandbox.evaluator is "shared"')
    return None if why is None else ScoreTrust("shared", why)


def _why_shared(problem: Problem, settings: SandboxSettings) -> str | None:
    """Why a program can't be isolated from what scores it; None if nothing known before a trial prevents it."""
    if settings.isolation == "limits":
        return 'sandbox.isolation is "limits": programs can read and write what flowevolve can'
    if not isinstance(problem, EvaluatorProblem):
        return None
    if Path(problem.file).suffix != ".py":
        return f"{problem.file} is not Python, and only Python programs can be held apart from their evaluator"
    seen = [Path("/usr"), Path(sys.base_prefix), *package_folders()]
    seen += [folder.resolve() for folder in settings.readable if folder.resolve() != problem.folder]
    where = next((folder for folder in seen if problem.folder.is_relative_to(folder.resolve())), None)
    return None if where is None else f"its folder is in {where}, which programs can read"


@dataclass(frozen=True, slots=True)
class Trial:
    """Runs the seed with its evaluator, in one shared sandbox and in two, and compares the scores."""

    problem: EvaluatorProblem
    evaluators: Sandbox
    """A sandbox in which the evaluator's folder can be read."""
    programs: Sandbox
    """A sandbox in which it can't."""

    async def run(self) -> ScoreTrust:
        first = await self._isolated()
        if first.notes:
            return _shared(*first.notes)
        beside = [await self._shared()]
        if beside[0].failure is not None:
            return _shared("the seed fails, so whether it works apart from its evaluator can't be tried")
        if first.verdict.failure is not None:
            return _shared(
                f"the seed fails apart from its evaluator: {self.evaluators.with_own_paths(first.verdict.failure)}"
            )
        if first.verdict.metrics.keys() != beside[0].metrics.keys():
            return _shared("the seed has other metrics apart from its evaluator")
        apart = [first.verdict.value]
        scores = [beside[0].value]
        if not _alike(apart, scores):  # perhaps only by chance: how far apart are scores from the same kind of run?
            scores += [(await self._shared()).value for _ in range(_REPEATS - 1)]
            apart.append((await self._isolated()).verdict.value)
        if _alike(apart, scores):
            return ISOLATED
        return _shared(f"the seed scores {_several(apart)} apart from its evaluator, but {_several(scores)} beside it")

    async def _isolated(self) -> Judged:
        return await self.problem.judged(self._seed(), SandboxPair(self.evaluators, self.programs))

    async def _shared(self) -> Verdict:
        return (await self.problem.judged(self._seed(), self.evaluators)).verdict

    def _seed(self) -> str:
        return self.problem.source


def _alike(apart: Sequence[float], beside: Sequence[float]) -> bool:
    """Whether an isolated program's score is as near to the scores beside the evaluator as these are to one another."""
    low, high = min(beside), max(beside)
    room = high - low + (_EQUAL_IN_NOISE if high > low else _EQUAL) * max(abs(low), abs(high))
    return any(low - room <= score <= high + room for score in apart)


def _shared(*why: str) -> ScoreTrust:
    return ScoreTrust("shared", "; ".join(" ".join(each.split()) for each in why)[:500])


def _several(scores: Sequence[float]) -> str:
    return ", ".join(f"{score:.6g}" for score in scores)
