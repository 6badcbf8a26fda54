"""Selection policies: from which candidate the next proposal starts, and which of its components are rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from flowevolve.core.pool import Candidate


class Ranked(Protocol):
    """What selection needs of an archive, such as `flowevolve.archives.pareto.ParetoArchive`."""

    @property
    def candidates(self) -> Sequence[Candidate]: ...
    def __getitem__(self, candidate_id: str) -> Candidate: ...
    def best(self) -> Candidate | None: ...
    def weights(self) -> Mapping[str, int]: ...


class Selection(Protocol):
    def select(self, archive: Ranked, random: Random) -> Candidate:
        """Select a parent from a non-empty archive."""
        ...


@dataclass(frozen=True, slots=True)
class Pareto:
    """A non-dominated candidate, weighted by the number of examples on which it is best (GEPA's default)."""

    def select(self, archive: Ranked, random: Random) -> Candidate:
        weights = archive.weights()
        return archive[random.choices(list(weights), list(weights.values()))[0]]


@dataclass(frozen=True, slots=True)
class CurrentBest:
    """Always the candidate with the highest mean score."""

    def select(self, archive: Ranked, random: Random) -> Candidate:
        best = archive.best()
        if best is None:
            raise LookupError("nothing to select from: the archive is empty")
        return best


@dataclass(frozen=True, slots=True)
class EpsilonGreedy:
    """Any candidate with probability ``epsilon``, else the best."""

    epsilon: float = 0.1

    def select(self, archive: Ranked, random: Random) -> Candidate:
        if random.random() < self.epsilon:
            return random.choice(archive.candidates)
        return CurrentBest().select(archive, random)


@dataclass(frozen=True, slots=True)
class TopKPareto:
    """Like ``pareto``, among the ``k`` non-dominated candidates with the highest mean score."""

    k: int = 5

    def select(self, archive: Ranked, random: Random) -> Candidate:
        weights = archive.weights()
        top = sorted(weights, key=lambda name: archive[name].mean_score, reverse=True)[: self.k]
        return archive[random.choices(top, [weights[name] for name in top])[0]]


class ComponentSelection(Protocol):
    def select(self, components: Sequence[str], cursor: int) -> tuple[tuple[str, ...], int]:
        """Return the components to rewrite, and the candidate's new cursor."""
        ...


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """One component at a time, in turn (GEPA's default)."""

    def select(self, components: Sequence[str], cursor: int) -> tuple[tuple[str, ...], int]:
        return (components[cursor % len(components)],), (cursor + 1) % len(components)


@dataclass(frozen=True, slots=True)
class AllComponents:
    """All components at once."""

    def select(self, components: Sequence[str], cursor: int) -> tuple[tuple[str, ...], int]:
        return tuple(components), cursor
