"""What LEVI tells candidates apart by: features of their texts, and what came of running them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from statistics import fmean

from flowevolve.artifact import Artifact
from flowevolve.errors import InputError
from flowevolve.programs.features import FEATURES, program_features

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
"""Of more cases than this, scores are told apart by means over as many groups of neighbours."""


class Describe:
    """Measures candidates; ``cases`` are those they are scored on, which may be others during a run.

    Raises:
        InputError: if there is no feature of a name.
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
            raise InputError(f"algorithm.features: no feature {', '.join(unknown)}; there are {', '.join(known)}")
        if not self._features and not self._outputs:
            raise InputError(
                "algorithm: features and outputs are both empty; candidates are told apart by at least one"
            )

    def names(self) -> Sequence[str]:
        """Of all that a descriptor may have, for the cases as they are now."""
        cases = self._cases()
        scores = _grouped(cases, dict.fromkeys(cases, 0.0))
        outputs = [name for each in self._outputs for name in (scores if each == SCORES else [each])]
        return (*self._features, *outputs)

    def __call__(
        self, artifact: Artifact, scores: Mapping[str, float], metrics: Mapping[str, float]
    ) -> dict[str, float]:
        """The features that can be told: of a program that does not parse only those of its text."""
        found = self._of_text(artifact)
        for name in self._outputs:
            if name == SCORES:
                found.update(_grouped(self._cases(), scores))
            elif name in metrics:
                found[name] = metrics[name]
        return {name: value for name, value in found.items() if isfinite(value)}

    def missing(self, names: Sequence[str]) -> str:
        """What to say where no candidate has these."""
        syntax = [name for name in names if name in self._features]
        if not syntax:
            return f"algorithm.outputs: no candidate has a metric {', '.join(names)}"
        return (
            f"algorithm.features: no candidate that works parses as Python, so none has {', '.join(syntax)}; "
            f"name features of any text: {', '.join(TEXT)}"
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
