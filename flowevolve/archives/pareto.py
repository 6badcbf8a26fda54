"""GEPA's archive: for every validation example, who does best on it (arXiv 2507.19457, algorithm 2).

A front holds the candidates that reach the best score seen on its example. The archive is a function of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowevolve.pool import Add, Candidate, Update


class ParetoArchive:
    """Per-example fronts over confirmed candidates."""

    def __init__(self) -> None:
        self._candidates: dict[str, Candidate] = {}
        self._fronts: dict[str, tuple[float, list[str]]] = {}
        self._weights: dict[str, int] | None = None
        self._best: Candidate | None = None

    def apply(self, update: Update) -> None:
        for change in update.changes:
            if isinstance(change, Add) and change.status == "confirmed":
                self._enter(change.candidate)

    def __len__(self) -> int:
        return len(self._candidates)

    def __getitem__(self, candidate_id: str) -> Candidate:
        return self._candidates[candidate_id]

    @property
    def candidates(self) -> Sequence[Candidate]:
        """All candidates, oldest first."""
        return tuple(self._candidates.values())

    def best(self) -> Candidate | None:
        """The highest mean score, then the most examples scored, then the oldest."""
        return self._best

    def front(self, example_id: str) -> Sequence[str]:
        """Ids of the candidates that do best on one example, oldest first."""
        return tuple(self._fronts[example_id][1])

    def weights(self) -> Mapping[str, int]:
        """Non-dominated candidates and on how many fronts each is.

        Walking from the lowest mean score up, a candidate is dominated if every front it is on also holds another that
        has not been dropped.
        """
        if self._weights is None:
            self._weights = self._undominated()
        return self._weights

    def _enter(self, candidate: Candidate) -> None:
        self._candidates[candidate.id] = candidate
        for example_id, score in candidate.scores.items():
            best, members = self._fronts.get(example_id, (float("-inf"), []))
            if score > best:
                self._fronts[example_id] = (score, [candidate.id])
            elif score == best:
                members.append(candidate.id)
        self._weights = None
        if self._best is None or _rank(candidate) > _rank(self._best):
            self._best = candidate

    def _undominated(self) -> dict[str, int]:
        fronts_of: dict[str, list[str]] = {}
        for example_id, (_, members) in self._fronts.items():
            for member in members:
                fronts_of.setdefault(member, []).append(example_id)
        left = {example_id: len(members) for example_id, (_, members) in self._fronts.items()}
        kept: dict[str, int] = {}
        for member in sorted(fronts_of, key=lambda name: self._candidates[name].mean_score):
            fronts = fronts_of[member]
            if all(left[example_id] > 1 for example_id in fronts):
                for example_id in fronts:
                    left[example_id] -= 1
            else:
                kept[member] = len(fronts)
        return {name: kept[name] for name in self._candidates if name in kept}


def _rank(candidate: Candidate) -> tuple[float, int]:
    return candidate.mean_score, len(candidate.scores)
