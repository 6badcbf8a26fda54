"""How LEVI evaluates a candidate: its scores, level by level, and the descriptor that says which cell it falls into."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import fmean

from flowevolve._util.errors import InputError
from flowevolve.algorithms.levi.commit import EvaluationCost, in_full
from flowevolve.algorithms.levi.map_elites import Described, MapElites
from flowevolve.algorithms.levi.payloads import Finalist
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import Candidate
from flowevolve.programs.features import FEATURES, program_features
from flowevolve.stages import Assess, Level, Written

SYNTAX = (
    "cyclomatic_complexity",
    "comparison_count",
    "math_operators",
    "branch_count",
    "loop_nesting",
    "comprehension_count",
)
"""The features of programs in LEVI's ablation (table 9)."""
TEXT: Mapping[str, Callable[[str], float]] = {
    "length": lambda text: float(len(text)),
    "lines": lambda text: float(text.count("\n") + 1),
}
"""Features of any text; ``length`` is in characters."""
SCORES = "scores"
_MOST_SCORES = 8
"""If there are more cases than this, they form this many groups of neighbours, and mean scores of groups are compared.
"""


class Describe:
    """Measures the features by which candidates are told apart. ``cases`` returns the cases that they are scored on,
    which change during a run.

    Raises:
        InputError: if no feature has one of the names, or nothing is to be measured.
    """

    def __init__(
        self,
        seed: Artifact,
        cases: Callable[[], Sequence[str]],
        wanted: Sequence[str] | None,
        outputs: Sequence[str] | None,
    ) -> None:
        self._python = all(name.endswith(".py") for name in seed)
        known = dict.fromkeys([*TEXT, *(FEATURES if self._python else ())])
        self._features = tuple((SYNTAX if self._python else ("length",)) if wanted is None else wanted)
        self._outputs = tuple(((SCORES,) if len(cases()) > 1 else ()) if outputs is None else outputs)
        self._cases = cases
        unknown = [name for name in self._features if name not in known]
        if unknown:
            raise InputError(
                f"algorithm.features: there is no feature {', '.join(unknown)}; there are {', '.join(known)}"
            )
        if not self._features and not self._outputs:
            raise InputError(
                "algorithm: features and outputs are both empty; name one at least, to tell candidates apart"
            )

    def names(self) -> Sequence[str]:
        """The names of all features that a descriptor may have, for the cases as they are now."""
        cases = self._cases()
        scores = _grouped(cases, dict.fromkeys(cases, 0.0))
        outputs = [name for each in self._outputs for name in (scores if each == SCORES else [each])]
        return (*self._features, *outputs)

    def __call__(
        self, artifact: Artifact, scores: Mapping[str, float], metrics: Mapping[str, float]
    ) -> dict[str, float]:
        """The features that are known. A program that does not parse lacks those of its syntax."""
        found = self._of_text(artifact)
        for name in self._outputs:
            if name == SCORES:
                found.update(_grouped(self._cases(), scores))
            elif name in metrics:
                found[name] = metrics[name]
        return {name: value for name, value in found.items() if isfinite(value)}

    def missing(self, names: Sequence[str]) -> str:
        """The error message for the case that no candidate has these features."""
        syntax = [name for name in names if name in self._features]
        if not syntax:
            return f"algorithm.outputs: no candidate has a metric {', '.join(names)}; name some that scores have"
        return (
            "algorithm.features: no candidate that works can be read as Python, so none has "
            f"{', '.join(syntax)}; name features that every text has: {', '.join(TEXT)}"
        )

    def _of_text(self, artifact: Artifact) -> dict[str, float]:
        text = "\n".join(artifact.values())
        plain = {name: TEXT[name](text) for name in self._features if name in TEXT}
        syntax = [name for name in self._features if name not in TEXT]
        return plain | ((program_features(artifact, syntax) or {}) if syntax else {})


def _grouped(cases: Sequence[str], scores: Mapping[str, float]) -> dict[str, float]:
    """The score on each case, or mean scores of groups of neighbours, by name."""
    count = min(len(cases), _MOST_SCORES)
    groups = [cases[len(cases) * place // count : len(cases) * (place + 1) // count] for place in range(count)]
    known = [[scores[case] for case in group if case in scores] for group in groups]
    return {f"score {group[0]}": fmean(values) for group, values in zip(groups, known, strict=True) if values}


@dataclass(frozen=True)
class Evaluate:
    """``narrow`` runs a candidate on what candidates are scored on now, and ``full`` a finalist on all examples."""

    narrow: Assess
    full: Assess
    describe: Describe
    costs: bool
    """Whether the cost of its evaluation is noted on a candidate."""

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Finalist):
            yield Emit(await self._in_full(item.payload.candidate, context))
            return
        assessed = await self.narrow.assess(item.expect(Written).candidate, context)
        candidate = described(assessed.candidate, self.describe)
        if self.costs:
            candidate = EvaluationCost(cost=context.cost).on(candidate)
        yield Emit(replace(assessed, candidate=candidate))

    async def _in_full(self, candidate: Candidate, context: StageContext) -> Finalist:
        known = in_full(candidate)
        if known is not None:
            return Finalist(known, scored=True)
        scored = await self.full.assess(candidate, context)
        if scored.failure is not None:
            raise Discard(f"failed on all examples: {scored.failure}")
        return Finalist(scored.candidate, scored=True)


def described(candidate: Candidate, describe: Describe) -> Candidate:
    """The candidate with its descriptor noted."""
    metrics = Assessment.of(candidate).metrics
    return Described(descriptor=describe(candidate.artifact, candidate.scores, metrics)).on(candidate)


@dataclass(frozen=True)
class Cascade:
    """Once the archive is fitted, a candidate has to come near the best one on the first ``count`` cases."""

    archive: MapElites
    cases: Callable[[], Sequence[str]]
    count: int
    fraction: float

    def __call__(self) -> Sequence[Level]:
        best, cases = self.archive.best(), tuple(self.cases())
        if self.archive.space is None or best is None or not 0 < self.count < len(cases):
            return ()
        first = cases[: self.count]
        reference = fmean(best.scores[case] for case in first)
        return (Level(first, bar(reference, self.fraction)),)


def bar(reference: float, fraction: float) -> float:
    """The score that is this fraction as good as the reference. It lies below the reference by the rest of the
    reference's absolute value, so that it is worse for negative scores, too.
    """
    return reference - (1 - fraction) * abs(reference)
