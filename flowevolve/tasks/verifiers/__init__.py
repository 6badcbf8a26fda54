"""Verifiers of the instruction-following constraints of IFEval and IFBench, by constraint id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from flowevolve._util.errors import InputError
from flowevolve.tasks.verifiers.base import Kwargs, Verifier
from flowevolve.tasks.verifiers.ifbench_counts import COUNTS
from flowevolve.tasks.verifiers.ifbench_format import LAYOUT
from flowevolve.tasks.verifiers.ifbench_words import SEQUENCES
from flowevolve.tasks.verifiers.ifeval_format import FORMAT
from flowevolve.tasks.verifiers.ifeval_text import TEXT

VERIFIERS: Mapping[str, Verifier] = MappingProxyType(
    {verifier.id: verifier for verifier in (*TEXT, *FORMAT, *COUNTS, *SEQUENCES, *LAYOUT)}
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint on a response.

    Raises:
        InputError: if there is no verifier for the id.
    """

    id: str
    kwargs: Kwargs = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.id not in VERIFIERS:
            raise InputError(f"there is no verifier for constraint {self.id!r}")

    def met_by(self, response: str) -> bool:
        """Whether the response meets the constraint. An empty response meets none."""
        return bool(response.strip()) and VERIFIERS[self.id].check(response, self.kwargs)

    def describe(self) -> str:
        """State the constraint as an instruction."""
        return VERIFIERS[self.id].describe(self.kwargs)
