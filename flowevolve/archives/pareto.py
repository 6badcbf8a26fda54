"""GEPA's archive: for every validation example, the candidates that do best on it (arXiv 2507.19457, algorithm 2).

There can also be fronts for objectives: further metrics of a task's scores, and the length of the texts.

The front of an example is made of the candidates that reach the best score seen on it. A candidate is dominated if
every front that it is on holds another candidate that is not dominated. GEPA looks at candidates from the lowest mean
score up; if scores are equal, this archive takes the oldest first. A candidate that is dropped leaves another one on
each of its fronts, so only the last one of a front, in this order, may have to stay because of that front. Therefore
the archive keeps only the last one of each front. It does not keep all members, whose number grows with the run where
scores tie.

A speculative candidate is on the fronts of the examples that it has scores for. When it is confirmed, it has all its
scores; when it is revoked, it is as if it had never been there. It is never the best and sets no standard. A candidate
that was made from a revoked one, directly or through speculative ones, is set aside until its verdict, because anything
made from it would be stale from the start. A candidate is left out for as long as it is vetoed. The archive is a
function of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flowevolve.archives.objectives import FrontKind, FrontScores
from flowevolve.core.policies import Standing
from flowevolve.core.pool import Add, Annotate, Candidate, Move, Update, Vetoed

Rank = tuple[float, int]
"""Mean score, and place in order of age: 0 for the oldest. Speculative candidates come after all others."""


@dataclass(frozen=True, slots=True)
class Front:
    """The best score on one example, and the candidate of the highest rank that reaches it."""

    best: float
    rank: Rank
    last: Candidate


Fronts = dict[str, Front]


class ParetoArchive:
    """Pareto fronts over confirmed candidates, and over speculative ones as long as they are speculative.

    ``fronts`` says what there is a front for, and ``objectives`` names metrics of the task's scores, or ``length``. A
    minus before a name says that less of it is better.

    Raises:
        InputError: if objectives are missing where they are needed, or are given where they are not.
    """

    def __init__(self, fronts: FrontKind = "instance", objectives: Sequence[str] = ()) -> None:
        self._scores = FrontScores(fronts, objectives)
        self._best_scores: dict[str, float] = {}
        """The best score of the confirmed candidates on each example."""
        self._candidates: dict[str, Candidate] = {}
        self._confirmed: list[Candidate] = []
        self._entered: list[Candidate] = []
        """All confirmed candidates, including vetoed ones, oldest first."""
        self._vetoed: set[str] = set()
        self._speculative: dict[str, Candidate] = {}
        self._revoked: set[str] = set()
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
                    else:
                        self._revoked.add(name)
                case Annotate(candidate_id=name, attributes=noted, scores=scores) if (
                    scores and (known := self._known(name)) is not None
                ):
                    self._rescore(replace(known, attributes={**known.attributes, **noted}).scored(scores))
                case Vetoed(candidate_id=name, stands=stands):
                    (self._vetoed.add if stands else self._vetoed.discard)(name)
                    self._stand_anew()
                case _:
                    continue
            self._weights = self._standing = None

    def __len__(self) -> int:
        return len(self._candidates)

    def __getitem__(self, candidate_id: str) -> Candidate:
        speculative = self._speculative.get(candidate_id)
        return self._candidates[candidate_id] if speculative is None else speculative

    def _known(self, candidate_id: str) -> Candidate | None:
        """A confirmed candidate, whether it is vetoed or not."""
        return next((each for each in self._entered if each.id == candidate_id), None)

    @property
    def candidates(self) -> Sequence[Candidate]:
        """All candidates but those set aside or vetoed: first the confirmed, then the speculative ones, each oldest
        first.
        """
        return (*self._confirmed, *self._upheld()) if self._speculative else self._confirmed

    @property
    def confirmed(self) -> Sequence[Candidate]:
        """The confirmed candidates that are not dominated by other confirmed ones, oldest first."""
        return tuple(self._candidates[name] for name in self._undominated(self._fronts))

    def standing(self) -> Standing | None:
        """What a candidate has to be measured against; None while nothing is confirmed."""
        if self._standing is None and self._best is not None:
            self._standing = Standing(self._best.scores, dict(self._best_scores))
        return self._standing

    def best(self) -> Candidate | None:
        """The candidate with the highest mean score. A tie goes to the one with the most examples scored, then to the
        oldest.
        """
        return self._best

    def weights(self) -> Mapping[str, int]:
        """Ids of the non-dominated candidates, oldest first, each with the number of fronts that it is on."""
        if self._weights is None:
            self._weights = self._undominated(self._all_fronts())
        return self._weights

    def _enter(self, candidate: Candidate) -> None:
        if not self._entered:
            self._scores.check(candidate)
        self._entered.append(candidate)
        if candidate.id not in self._vetoed:
            self._take_up(candidate)

    def _take_up(self, candidate: Candidate) -> None:
        rank = (candidate.mean_score, len(self._confirmed))
        self._candidates[candidate.id] = candidate
        self._confirmed.append(candidate)
        self._stand(candidate, rank, self._fronts)
        for name, score in candidate.scores.items():
            self._best_scores[name] = max(score, self._best_scores.get(name, score))
        if self._best is None or _standard(candidate) > _standard(self._best):
            self._best = candidate

    def _rescore(self, candidate: Candidate) -> None:
        """Take in that a confirmed candidate has new scores."""
        self._scores.forget(candidate)
        self._entered = [candidate if each.id == candidate.id else each for each in self._entered]
        self._stand_anew()

    def _stand_anew(self) -> None:
        """Compute all fronts anew."""
        self._candidates, self._confirmed, self._fronts, self._best_scores, self._best = {}, [], {}, {}, None
        for each in self._entered:
            if each.id not in self._vetoed:
                self._take_up(each)

    def _upheld(self) -> Sequence[Candidate]:
        """The speculative candidates that are not set aside, oldest first: parents before what is made from them."""
        aside: set[str] = set()
        for candidate in self._speculative.values():
            if any(parent in self._revoked or parent in aside for parent in candidate.parents):
                aside.add(candidate.id)
        return [each for each in self._speculative.values() if each.id not in aside and each.id not in self._vetoed]

    def _all_fronts(self) -> Fronts:
        if not self._speculative:
            return self._fronts
        fronts = dict(self._fronts)
        for place, candidate in enumerate(self._upheld(), len(self._candidates)):
            self._stand(candidate, (candidate.mean_score, place), fronts)
        return fronts

    def _undominated(self, fronts: Fronts) -> dict[str, int]:
        """Ids of the candidates on these fronts that are not dominated, oldest first, with their numbers of fronts."""
        ends: dict[str, list[str]] = {}
        for example_id, front in fronts.items():
            ends.setdefault(front.last.id, []).append(example_id)
        served: set[str] = set()
        kept: dict[Rank, tuple[str, int]] = {}
        for name, last_of in sorted(ends.items(), key=lambda item: fronts[item[1][0]].rank):
            if served.issuperset(last_of):
                continue
            front = fronts[last_of[0]]
            reached = self._scores(front.last)
            own = [name for name, score in reached.items() if score == fronts[name].best]
            served.update(own)
            kept[front.rank] = name, len(own)
        return dict(kept[rank] for rank in sorted(kept, key=lambda rank: rank[1]))

    def _stand(self, candidate: Candidate, rank: Rank, fronts: Fronts) -> None:
        for example_id, score in self._scores(candidate).items():
            front = fronts.get(example_id)
            if front is None or (score, rank) > (front.best, front.rank):
                fronts[example_id] = Front(score, rank, candidate)


def _standard(candidate: Candidate) -> tuple[float, int]:
    return candidate.mean_score, len(candidate.scores)
