"""What algorithms that evolve a set of scored candidates need of their archive, and the archives that have names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flowevolve._util.registry import Registry
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.algorithm import Archive
from flowevolve.core.policies import Standing
from flowevolve.core.pool import Candidate
from flowevolve.policies.selection import Ranked


class CandidateArchive(Archive, Ranked, Protocol):
    """An archive from which parents are selected, and against which candidates are measured."""

    @property
    def confirmed(self) -> Sequence[Candidate]:
        """The confirmed candidates worth selecting from, oldest first; merges join two of them."""
        ...

    def standing(self) -> Standing | None:
        """What a validated candidate is measured against; None while nothing is confirmed."""
        ...


ARCHIVES: Registry[CandidateArchive] = Registry(
    "archive", "flowevolve.archives", {"pareto": ParetoArchive}, CandidateArchive
)
"""Archives that can be named in a configuration."""
