"""Final selection: the winner among the best few is chosen by examples that none of them was selected by."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from itertools import count
from typing import Any

import anyio
import pytest

import flowevolve as fe
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.calls import CallRecord
from flowevolve.core.fresh_score import FreshScore
from flowevolve.core.graph import NO_EMISSIONS
from flowevolve.core.model import Message, UnreachableError
from flowevolve.core.pool import Add
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.model import Model
from flowevolve.stages import FinalSelection, FinalSettings, Rollouts, committing
from tests.support.interruption import Echo, Fact, events_of, evolve

VALIDATION: Mapping[str, int] = {"seed": 4, "lucky": 16, "good": 15}
"""How many of 20 validation examples each candidate passed."""
WORTH: Mapping[str, float] = {"seed": 0.1, "lucky": 0.4, "good": 0.9}
"""The share of other examples that each passes."""
SPENT = 2000
"""Rollouts before the end, of which final selection takes a twentieth."""


def rows(split: str, number: int) -> list[Example]:
    return [Example(f"{split}{row}", {"question": f"{split}{row}"}) for row in range(number)]


class Guessing:
    """A task whose score depends on the candidate and the example, or, where it ``varies``, on how often it was asked."""

    name = "guessing"

    def __init__(self, train: int = 40, *, varies: bool = False) -> None:
        self.data = Dataset(rows("train", train), rows("val", 20))
        self._asked = count() if varies else None

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "seed"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        name, row = artifact["prompt"], int(example.id.lstrip("trainvl"))
        reply = await llm([Message("user", f"{name} {example.id}")])
        if example.id.startswith("val") and self._asked is None:
            value = float(row * 7 % 20 < VALIDATION[name])
        else:
            luck = row if self._asked is None else next(self._asked)
            value = float((luck * 0.37) % 1 < WORTH[name])
        return Rollout(example.id, reply, Score(value, "", passed=bool(value)))


class Ending(fe.Algorithm):
    """Has three candidates from its start, and then nothing but the final selection."""

    name = "ending"
    roles = ("task",)

    def __init__(self, task: Guessing | None = None, finalists: int = 4, examples: int = 30) -> None:
        super().__init__(task or Guessing(), fe.Settings(), fe.Tuning())
        self.archive = ParetoArchive()
        self.archives = (self.archive,)
        self.final = FinalSelection(FinalSettings(finalists, examples), self.task.data, validating="init")

    def graph(self) -> fe.Graph:
        stages = (fe.Stage("select", self.select, ("update",)), committing("update", _nothing))
        return fe.Graph(stages, entry="select")

    async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
        context.begin(fe.Cost(rollouts=SPENT))
        for name, passed in VALIDATION.items():
            candidate = context.propose(fe.Artifact({"prompt": name}), parents=[], operator="seed")
            scores = {f"val{row}": float(row * 7 % 20 < passed) for row in range(20)}
            context.commit([Add(candidate.scored(scores))])
        for emission in NO_EMISSIONS:
            yield emission

    async def select(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        for emission in NO_EMISSIONS:
            yield emission
        raise fe.Exhausted

    async def finish(self, context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        await self.final.run(Rollouts(self.task), self.archive.best(), context)
        for emission in NO_EMISSIONS:
            yield emission

    def reserve_for_finish(self, share_of: Callable[[fe.Cost], float]) -> fe.Cost:
        return self.final.kept(share_of)

    def apply_event(self, event: fe.Event) -> None:
        self.final.apply_event(event)

    def best(self) -> fe.Candidate | None:
        chosen = self.final.chosen
        return self.archive.best() if chosen is None else self.archive[chosen.candidate]


async def _nothing(item: fe.Item[object], context: fe.UpdateContext) -> None:
    """There is nothing to commit."""


def ended(algorithm: Ending, before: Sequence[Fact] = (), **options: Any) -> tuple[RunReport, list[Fact]]:
    return evolve(algorithm, before, roles=lambda: {"task": Model(Echo(), "echo")}, **{"drain_seconds": 60, **options})


def chosen(algorithm: Ending) -> FreshScore:
    assert algorithm.final.chosen is not None
    return algorithm.final.chosen


def name_of(algorithm: Ending) -> str:
    best = algorithm.best()
    assert best is not None
    return best.artifact["prompt"]


def test_that_there_was_no_time_for_it_is_said() -> None:
    algorithm = Ending()
    _, facts = ended(algorithm, budget=fe.Budget(seconds=0.5), drain_seconds=0)
    assert algorithm.final.chosen is None
    (said,) = events_of(facts, "winner.not_chosen")
    assert "the run ended before the finalists were run" in str(said.data["reason"])
    assert not events_of(ended(Ending())[1], "winner.not_chosen")


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_who_was_lucky_in_validation_loses_to_who_is_better_on_fresh_examples(mode: str) -> None:
    algorithm = Ending()
    report, facts = ended(algorithm, mode=mode)
    assert algorithm.archive.best() != algorithm.best()
    assert name_of(algorithm) == "good"
    found = chosen(algorithm)
    assert found.source == "train"
    assert len(found.finalists) == 2, "the seed is behind for sure"
    low, high = found.interval
    assert low <= found.score <= high
    assert found.score == found.finalists[found.candidate] > 0.6
    asked = {fact.scope.work.part for fact in facts if isinstance(fact, CallRecord)}
    assert asked <= {example.id for example in algorithm.task.data.train}
    assert SPENT < report.spent.rollouts <= SPENT * 1.05
    assert report.spent.evaluations == 2


def test_who_is_behind_for_sure_is_left_out_of_later_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VALIDATION, "lucky", 15)
    monkeypatch.setitem(WORTH, "lucky", 0.0)
    algorithm = Ending()
    report, _ = ended(algorithm)
    assert name_of(algorithm) == "good"
    assert report.spent.rollouts - SPENT < 2 * 30


class Unreachable(Guessing):
    """Gets no answer for one candidate on each ``step``-th training example."""

    def __init__(self, name: str, step: int) -> None:
        super().__init__()
        self._name, self._step = name, step

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        row = int(example.id.lstrip("trainvl"))
        if artifact["prompt"] == self._name and example.id.startswith("train") and row % self._step == 0:
            raise UnreachableError("connection refused")
        return await super().rollout(artifact, example, llm)


def test_an_example_on_which_the_server_did_not_answer_counts_for_nobody() -> None:
    algorithm = Ending(Unreachable("good", 2))
    ended(algorithm)
    found = chosen(algorithm)
    assert name_of(algorithm) == "good"
    assert found.score > 0.6
    assert 0 < found.examples < 30


def test_nothing_is_chosen_where_the_server_did_not_answer_at_all() -> None:
    algorithm = Ending(Unreachable("good", 1))
    ended(algorithm)
    assert algorithm.final.chosen is None
    assert name_of(algorithm) == "lucky", "the best by validation"


class AwayAtFirst(Guessing):
    """Gets no answer to its first ``failures`` rollouts of the candidate "good"."""

    def __init__(self, failures: int, train: int = 40) -> None:
        super().__init__(train)
        self._failures = failures

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        if artifact["prompt"] == "good" and self._failures:
            self._failures -= 1
            raise UnreachableError("connection refused")
        return await super().rollout(artifact, example, llm)


@pytest.mark.parametrize(("failures", "examples"), [(10, [10, 20]), (9, [11, 21]), (1, [19])])
def test_nothing_is_chosen_before_there_are_ten_answered_examples(failures: int, examples: list[int]) -> None:
    algorithm = Ending(AwayAtFirst(failures))
    _, facts = ended(algorithm)
    assert [event.data["examples"] for event in events_of(facts, FreshScore.kind)] == examples
    assert name_of(algorithm) == "good"
    assert not events_of(facts, "winner.not_chosen")


def test_one_answered_example_does_not_show_that_scores_do_not_vary() -> None:
    algorithm = Ending(AwayAtFirst(9, train=3))
    report, _ = ended(algorithm)
    assert algorithm.final.chosen is None
    assert report.spent.rollouts == SPENT + 40, "the second round has shown it"


def test_that_the_server_answered_too_little_is_said() -> None:
    _, facts = ended(Ending(Unreachable("good", 1)))
    (said,) = events_of(facts, "winner.not_chosen")
    assert "the server answered all finalists on 0 of 30 examples" in str(said.data["reason"])


def test_training_examples_that_validation_has_too_are_not_fresh() -> None:
    task = Guessing(varies=True)
    task.data = Dataset(task.data.val, task.data.val)
    algorithm = Ending(task)
    ended(algorithm)
    assert chosen(algorithm).source == "val"


def test_validation_is_not_repeated_where_that_tells_nothing_new() -> None:
    algorithm = Ending(Guessing(train=3))
    report, _ = ended(algorithm)
    assert algorithm.final.chosen is None
    assert name_of(algorithm) == "lucky"
    assert report.spent.rollouts == SPENT + 20, "one round has shown it"


def test_nothing_is_chosen_where_it_is_off() -> None:
    algorithm = Ending(finalists=0)
    report, _ = ended(algorithm)
    assert name_of(algorithm) == "lucky"
    assert report.spent.rollouts == SPENT


@pytest.mark.parametrize("room", [0, 19, 25, 45, 1000])
def test_a_budget_is_kept_and_a_round_without_room_is_not_begun(room: int) -> None:
    algorithm = Ending()
    report, _ = ended(algorithm, budget=fe.Budget(rollouts=SPENT + room))
    assert report.spent.rollouts <= SPENT + room
    assert (algorithm.final.chosen is not None) == (room >= 20)
    assert report.spent.evaluations == (2 if room >= 20 else 0)


@pytest.mark.parametrize(("limit", "kept"), [(200, 0), (790, 0), (800, 40), (1000, 48), (10_000, 120)])
def test_a_twentieth_of_a_limit_is_kept_for_it_at_most(limit: int, kept: int) -> None:
    final = Ending().final
    assert final.kept(lambda cost: cost.rollouts / limit).rollouts == kept


def test_work_that_spends_the_whole_budget_leaves_what_is_kept() -> None:
    class Spending(Ending):
        async def select(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
            context.begin(fe.Cost(rollouts=7))
            for emission in NO_EMISSIONS:
                yield emission

    algorithm, limit = Spending(), SPENT + 400
    report, _ = ended(algorithm, budget=fe.Budget(rollouts=limit))
    assert report.stop_reason == "rollouts"
    assert chosen(algorithm).candidate != "c0-2", "the lucky one"
    assert report.spent.rollouts <= limit


def test_who_asks_a_run_to_stop_gets_it_without_final_selection() -> None:
    async def stop(engine: Engine) -> None:
        engine.stop("interrupted")

    algorithm = Ending()
    report, _ = ended(algorithm, beside=stop)
    assert report.stop_reason == "interrupted"
    assert algorithm.final.chosen is None


def test_what_ends_the_run_before_the_last_round_leaves_a_choice() -> None:
    class Telling(Ending):
        def apply_event(self, event: fe.Event) -> None:
            super().apply_event(event)
            if self.final.chosen is not None:
                first.set()

    async def stop(engine: Engine) -> None:
        await first.wait()
        engine.stop("interrupted")

    first, algorithm = anyio.Event(), Telling()

    report, facts = ended(algorithm, beside=stop)
    assert len(events_of(facts, FreshScore.kind)) == 2, "the round that was under way is paid for"
    assert chosen(algorithm).examples == 20
    assert report.held == 0


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_run_that_is_killed_in_it_goes_on_with_it(mode: str) -> None:
    whole = Ending()
    report, facts = ended(whole, mode=mode)
    begun = next(place for place, fact in enumerate(facts) if isinstance(fact, CallRecord))
    for cut in range(begun, len(facts), 31):
        algorithm = Ending()
        again, told = ended(algorithm, facts[:cut], mode=mode)
        assert chosen(algorithm) == chosen(whole)
        assert again.spent == report.spent
        paid = [(fact.scope.candidate, fact.scope.item) for fact in told if isinstance(fact, CallRecord) and fact.reply]
        assert len(set(paid)) == len(paid)
