"""final selection: at the end of a run, the best few candidates are run on fresh examples, and the winner is chosen.

The best candidate by validation was also lucky there: of many candidates that are compared on the same examples, the
highest mean is biased upwards. So if the best candidate's lead may be due to chance, the closest candidates are run on
examples on which no candidates were compared as a whole: training examples that are not in the validation set. If there
are too few of those, the candidates are run on validation examples again, if scores vary between repeats. Examples on
which the server did not answer all of them are left out. The test split is not touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from statistics import fmean
from typing import Literal

import anyio

from flowevolve._util.errors import TaskFailedError
from flowevolve._util.intervals import mean_interval
from flowevolve._util.tasks import run_all
from flowevolve.core.budget import Cost, OverBudgetError
from flowevolve.core.context import StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import ItemDone, PoolCommitted
from flowevolve.core.events import Event
from flowevolve.core.fresh_score import FreshScore
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Dataset, Example, Rollout
from flowevolve.stages.rollouts import Rollouts, UnansweredRollout

MOST_SHARE = 0.05
"""The largest share that final selection takes of a limit, and of the rollouts that the run has made."""
ROUND = 10
"""The fewest examples of a round; fewer tell too little."""
LEAST = 2
"""Final selection takes place only if there is room for this many finalists."""
ROUNDS = 3
"""The most rounds in which the finalists are run; after each, candidates that are clearly behind are left out."""
NO_TIME = "the run ended before the finalists were run on fresh examples; a higher drain_seconds leaves more time"
UNANSWERED = (
    "the server answered all finalists on {answered} of {asked} examples, "
    f"which are too few to choose by; at least {ROUND} are needed"
)
Split = Literal["train", "val"]
Scores = dict[str, list[float]]
"""Scores by candidate id, on the fresh examples in the order in which they are run."""


@dataclass(frozen=True)
class FinalSettings:
    """The largest number of ``finalists``, and of ``examples`` on which each is run. With fewer than 2 finalists, none
    is run.
    """

    finalists: int
    examples: int


class FinalSelection:
    """Chooses the winner. The choice and the known cost of rollouts are a function of the log.

    ``validating`` names the stage from whose rollouts the cost of one is estimated.
    """

    def __init__(self, settings: FinalSettings, data: Dataset, validating: str) -> None:
        self._settings = settings
        self._data = data
        self._validating = validating
        self._spent = Cost()
        self._validated = Cost()
        self.chosen: FreshScore | None = None
        """The choice; None until there is one, and again after the next commit."""
        self._chosen_by: str | None = None
        """The item whose work made the choice."""

    def apply_event(self, event: Event) -> None:
        match event.body:
            case ItemDone(stage=stage, cost=cost):
                self._spent += cost
                if stage == self._validating:
                    self._validated += cost
            case PoolCommitted():
                self.chosen = None
            case OwnEvent(kind=FreshScore.kind, data=data, item=item):
                self.chosen, self._chosen_by = FreshScore.from_json(data), item
            case _:
                pass

    def kept(self, share_of: Callable[[Cost], float]) -> Cost:
        """The part of the budget to reserve for final selection. Nothing is reserved if its share of the limits has no
        room for one round of all finalists: in so small a budget the reserve might cost a validation, so final
        selection has to make do with what is left over.
        """
        finalists, most = self._settings.finalists, self._settings.examples
        if finalists < LEAST:
            return Cost()
        taken = share_of(self._price(finalists, most))
        examples = most if taken <= MOST_SHARE else int(most * MOST_SHARE / taken)
        price = self._price(finalists, examples)
        return price if examples >= ROUND and share_of(price) <= MOST_SHARE else Cost()

    def _price(self, finalists: int, examples: int) -> Cost:
        """The estimated cost of running this many finalists, based on earlier validations."""
        rollouts, before = finalists * examples, self._validated
        part = rollouts / before.rollouts if before.rollouts else 0.0
        return Cost(
            rollouts=rollouts,
            tokens=int(part * before.tokens),
            dollars=part * before.dollars,
            evaluations=finalists,
        )

    async def run(self, rollouts: Rollouts, best: Candidate | None, context: StageContext) -> None:
        """Choose the winner among the best confirmed candidates, unless there is no time or budget, or it is chosen
        already.
        """
        if best is None or context.asked_to_stop or (self.chosen and self._chosen_by != context.item_id):
            return
        room = int(self._spent.rollouts * MOST_SHARE)
        most = min(self._settings.finalists, room // ROUND)
        if most < LEAST:
            return
        finalists = _finalists(best, context.pool.snapshot().candidates(), most)
        examples = min(self._settings.examples, room // len(finalists))
        ids, split = self._fresh()
        order = context.random.sample(ids, min(examples, len(ids)))
        if len(order) < ROUND:
            return
        try:
            await self._compare(finalists, order, split, rollouts, context)
        except anyio.get_cancelled_exc_class():
            if self.chosen is None:
                context.log("winner.not_chosen", finalists=[each.id for each in finalists], reason=NO_TIME)
            raise

    def _fresh(self) -> tuple[list[str], Split]:
        """The ids of examples on which no candidates were compared as a whole or, if these are too few, of the
        validation set.
        """
        seen = set(map(_text, self._data.val))
        fresh = [example.id for example in self._data.train if _text(example) not in seen]
        return (fresh, "train") if len(fresh) >= ROUND else ([example.id for example in self._data.val], "val")

    async def _compare(
        self,
        finalists: Sequence[Candidate],
        order: Sequence[str],
        split: Split,
        rollouts: Rollouts,
        context: StageContext,
    ) -> None:
        """Run the finalists round by round, leaving out those that fall behind. Each round makes a new choice, so that
        there is one even if the run ends before the last round. There is none before the server has answered on as
        many examples as the smallest round has.
        """
        scores: Scores = {each.id: [] for each in finalists}
        left = list(finalists)
        asked = 0
        compared: list[str] = []
        size = max(ROUND, -(-len(order) // ROUNDS))
        for start in range(0, len(order), size):
            part = order[start : start + size]
            try:
                evaluations = Cost(evaluations=0 if start else len(left))
                with context.reserved(Cost(rollouts=len(part) * len(left)) + evaluations):
                    context.spend(evaluations)  # there is room for the whole round, or it is not begun
                ran = await run_all([partial(rollouts.run, each, part, split, context) for each in left])
            except (OverBudgetError, TaskFailedError):
                break  # there is no room, or the task fails on all of them, which tells nothing
            asked += len(part)
            answered = _answered(ran)
            for each, done in zip(left, ran, strict=True):
                scores[each.id] += [done[place].score.value for place in answered]
            first = len(compared) < ROUND
            compared += [part[place] for place in answered]
            if len(compared) >= ROUND:
                if first and split == "val" and _as_before(left, scores, compared):
                    return
                context.decide(FreshScore, lambda: _choice(finalists, scores, split))
                left = _still_open(left, scores)
            if context.asked_to_stop or len(left) == 1 < len(finalists):
                break
        if asked and len(compared) < ROUND:
            reason = UNANSWERED.format(answered=len(compared), asked=asked)
            context.log("winner.not_chosen", finalists=[each.id for each in finalists], reason=reason)


def _text(example: Example) -> str:
    return json.dumps(example.data, sort_keys=True, default=str)


def _answered(ran: Sequence[Sequence[Rollout]]) -> list[int]:
    """The places of the examples on which all finalists got an answer. The others count for none of them: a failure of
    the server is no score, and finalists are compared on the same examples.
    """
    together = enumerate(zip(*ran, strict=True))
    return [place for place, each in together if not any(isinstance(done, UnansweredRollout) for done in each)]


def _as_before(candidates: Iterable[Candidate], scores: Scores, examples: Sequence[str]) -> bool:
    """Whether all got the scores with which they entered the pool again, so that repeats tell nothing new."""
    return all(scores[each.id] == [each.scores.get(name) for name in examples] for each in candidates)


def _finalists(best: Candidate, confirmed: Iterable[Candidate], most: int) -> list[Candidate]:
    """The best candidate by validation, and others whose scores on the same examples may be lower by chance alone."""
    others = [each for each in confirmed if each.id != best.id and each.scores.keys() == best.scores.keys()]
    close = (
        each
        for each in sorted(others, key=lambda each: -each.mean_score)
        if mean_interval([score - each.scores[name] for name, score in best.scores.items()])[0] <= 0
    )
    return [best, *islice(close, most - 1)]


def _evidence(candidate: Candidate, scores: Scores) -> list[float]:
    """All scores of a candidate: those with which it entered the pool, and the fresh ones."""
    return [*candidate.scores.values(), *scores[candidate.id]]


def _leader(candidates: Sequence[Candidate], scores: Scores) -> Candidate:
    """Among the candidates that were run on the most examples, the one with the highest mean over all its scores; of
    equal ones the best by validation.
    """
    most = max(len(scores[each.id]) for each in candidates)
    return max(
        (each for each in candidates if len(scores[each.id]) == most), key=lambda each: fmean(_evidence(each, scores))
    )


def _still_open(candidates: Sequence[Candidate], scores: Scores) -> list[Candidate]:
    """The candidates that are not clearly behind the leading one, by paired differences on the same examples."""
    leading = _leader(candidates, scores)
    lead = _evidence(leading, scores)

    def behind(each: Candidate) -> bool:
        fresh = zip(scores[leading.id], scores[each.id], strict=True)
        known = ((score, each.scores[name]) for name, score in leading.scores.items())
        return mean_interval([mine - its for mine, its in (*known, *fresh)])[0] > 0

    return [each for each in candidates if each is leading or not behind(each)] if lead else list(candidates)


def _choice(finalists: Sequence[Candidate], scores: Scores, split: Split) -> FreshScore:
    winner = _leader(finalists, scores)
    its = scores[winner.id]
    return FreshScore(
        candidate=winner.id,
        source=split,
        examples=len(its),
        score=fmean(its),
        interval=mean_interval(its),
        finalists={each.id: fmean(scores[each.id]) for each in finalists},
    )
