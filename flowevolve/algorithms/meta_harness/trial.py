"""Trying a harness before it is proposed, on training examples that it does not learn from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig
from flowevolve.algorithms.meta_harness.evaluator import Benchmark, Evaluator, HarnessError
from flowevolve.core.budget import Cost, OverBudgetError
from flowevolve.core.context import StageContext
from flowevolve.core.pool import Candidate
from flowevolve.core.record import Record
from flowevolve.core.task import Dataset
from flowevolve.core.templates import shortener
from flowevolve.tasks.labelling import HarnessTask, LabelledSet, harness

_MISTAKES = 5
_CHARACTERS = 400
"""A trial's report has at most this many mistakes, and at most this many characters of each text in them."""
_NO_ROOM = "The budget has no room for a trial."


class Room(Record, kind="harness.room"):
    """Whether the budget had room for a trial."""

    room: bool


class Trials:
    """Tries out harnesses with the evaluator that scores them, at most ``config.tries`` for one proposer.

    A trial's rollouts and calls count towards the budget. After an interruption it is repeated in the same way.
    """

    def __init__(self, task: HarnessTask, config: MetaHarnessConfig, evaluator: Evaluator) -> None:
        self._task = task
        self._config = config
        self._evaluator = evaluator

    async def run(self, source: str, name: str, number: int, context: StageContext) -> str:
        """Try a harness on the data set of this name, or else on the first one; returns the outcome in words for its
        author.

        ``number`` counts the proposer's trials from 0.

        Raises:
            LLMError: if a call fails for good.
        """
        if number >= self._config.tries:
            return f"You have had your {self._config.tries} trials. Write your harnesses without another one."
        sets = self._task.sets
        held_out = self._held_out(sets.get(name) or next(iter(sets.values())), context)
        if held_out is None:
            return "There are too few examples to try a harness."
        cost = Cost(rollouts=len(held_out.data.val))
        if not context.decide(Room, lambda: Room(room=_has_room(cost, context)), key=str(number)).room:
            return _NO_ROOM
        candidate = Candidate("harness@trial", harness(source))
        benchmark = Benchmark(candidate, held_out, self._config, held_out.data.val, f"{held_out.name}/try {number}")
        with context.reserved(cost):
            try:
                scored = await benchmark.score(self._evaluator, context)
            except HarnessError as error:
                return f"The harness can't be used: {error}"
            context.spend(cost)
        accuracy = fmean(scored.scores.values())
        context.log("harness.tried", set=held_out.name, accuracy=accuracy)
        told = f"Accuracy {accuracy:.3f} on {len(scored.scores)} texts of {held_out.name}"
        mistakes = [_mistake(each) for each in scored.mistakes[:_MISTAKES]]
        return "\n".join([f"{told}, with {scored.context_chars:.0f} characters of prompts a text.", *mistakes])

    def _held_out(self, each: LabelledSet, context: StageContext) -> LabelledSet | None:
        """The data set with some training examples to predict in place of the validation examples, and the rest to
        learn from. They are the same for all trials of a proposer. None if there are too few.
        """
        rows = each.data.train
        count = min(self._config.try_rows, len(rows) // 2)
        if not count:
            return None
        drawn = set(context.derive_random("harness.trial", context.item_id, each.name).sample(range(len(rows)), count))
        learnt = [row for place, row in enumerate(rows) if place not in drawn]
        return replace(each, data=Dataset(learnt, [rows[place] for place in sorted(drawn)]))


def _has_room(cost: Cost, context: StageContext) -> bool:
    try:
        with context.reserved(cost):
            return True
    except OverBudgetError:
        return False


def _mistake(mistake: Mapping[str, object]) -> str:
    cut = shortener(_CHARACTERS)
    return json.dumps({name: cut(str(value)) for name, value in mistake.items()}, ensure_ascii=False)
