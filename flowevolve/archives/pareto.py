"""GEPA's archive: for every validation example, who does best on it (arXiv 2507.19457, algorithm 2).

A front holds the candidates that reach the best score seen on its example. A speculative candidate stands on the
fronts of the examples it has scores for until it is confirmed, with all its scores, or revoked, as if it had never been
there; it is never the best and sets no standard. The archive is a function of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowevolve.policies.acceptance import Standing
from flowevolve.pool import Add, Candidate, Move, Update

Fronts = dict[str, tuple[float, list[str]]]


class ParetoArchive:
    """Per-example fronts over confirmed candidates, and speculative ones for as long as they are."""

    def __init__(self) -> None:
        self._candidates: dict[str, Candidate] = {}
        self._places: dict[str, int] = {}
        self._speculative: dict[str, Candidate] = {}
        self._fronts: Fronts = {}
        self._weights: dict[str, int] | None = None
        self._best: Candidate | None = None
        self._standing: Standing | None = None

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status="confirmed"):
                    self._enter(candidate)
                case Add(candidate=candidate, status="speculative"):
                    self._speculative[candidate.id] = candidate
                case Move(candidate_id=name, status=status, scores=scores):
                    candidate = self._speculative.pop(name)
                    if status == "confirmed":
                        self._enter(candidate if scores is None else candidate.scored(scores))
                case _:
                    continue
            self._weights = self._standing = None

    def __len__(self) -> int:
        return len(self._candidates)

    def __getitem__(self, candidate_id: str) -> Candidate:
        speculative = self._speculative.get(candidate_id)
        return self._candidates[candidate_id] if speculative is None else speculative

    @property
    def candidates(self) -> Sequence[Candidate]:
        """All candidates, confirmed ones first, oldest first."""
        return (*self._candidates.values(), *self._speculative.values())

    @property
    def confirmed(self) -> Sequence[Candidate]:
        """The confirmed candidates that no others of them dominate, oldest first."""
        kept = self.weights() if not self._speculative else self._in_order(_undominated(self._fronts, self))
        return tuple(self._candidates[name] for name in kept)

    def standing(self) -> Standing | None:
        """What a candidate has to be measured against; None while nothing is confirmed."""
        if self._standing is None and self._best is not None:
            self._standing = Standing(self._best.scores, {name: best for name, (best, _) in self._fronts.items()})
        return self._standing

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
            self._weights = self._in_order(_undominated(self._all_fronts(), self))
        return self._weights

    def _in_order(self, kept: Mapping[str, int]) -> dict[str, int]:
        """Confirmed ones first, oldest first; at the cost of those that are kept, not of all there ever were."""
        confirmed = sorted(kept.keys() & self._places.keys(), key=self._places.__getitem__)
        speculative = [name for name in self._speculative if name in kept]
        return {name: kept[name] for name in (*confirmed, *speculative)}

    def _enter(self, candidate: Candidate) -> None:
        self._places[candidate.id] = len(self._candidates)
        self._candidates[candidate.id] = candidate
        _stand(candidate, self._fronts)
        if self._best is None or _rank(candidate) > _rank(self._best):
            self._best = candidate

    def _all_fronts(self) -> Fronts:
        if not self._speculative:
            return self._fronts
        fronts = {name: (best, list(members)) for name, (best, members) in self._fronts.items()}
        for candidate in self._speculative.values():
            _stand(candidate, fronts)
        return fronts


def _undominated(fronts: Fronts, archive: ParetoArchive) -> dict[str, int]:
    """Ids of the candidates on these fronts that are not dominated, and on how many fronts each is."""
    fronts_of: dict[str, list[str]] = {}
    for example_id, (_, members) in fronts.items():
        for member in members:
            fronts_of.setdefault(member, []).append(example_id)
    left = {example_id: len(members) for example_id, (_, members) in fronts.items()}
    kept: dict[str, int] = {}
    for member in sorted(fronts_of, key=lambda name: archive[name].mean_score):
        own = fronts_of[member]
        if all(left[example_id] > 1 for example_id in own):
            for example_id in own:
                left[example_id] -= 1
        else:
            kept[member] = len(own)
    return kept


def _stand(candidate: Candidate, fronts: Fronts) -> None:
    for example_id, score in candidate.scores.items():
        best, members = fronts.get(example_id, (float("-inf"), []))
        if score > best:
            fronts[example_id] = (score, [candidate.id])
        elif score == best:
            members.append(candidate.id)


def _rank(candidate: Candidate) -> tuple[float, int]:
    return candidate.mean_score, len(candidate.scores)
