"""The paired screen: a proposal and its parent are run again on the minibatch only where that can decide something."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from itertools import count

import anyio
import pytest

import flowevolve as fe
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.budget import Cost
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS
from flowevolve.core.model import Message
from flowevolve.core.pool import Add
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.model import Model
from flowevolve.policies.acceptance import Paired
from flowevolve.stages import Noise, PairedScreen, Proposed, Rollouts, committing
from flowevolve.stages.paired_screen import KNOWN, Compared
from tests.support.interruption import Echo, Fact, events_of, evolve

BATCH = ("t0", "t1", "t2")


class Wavering:
    """A task whose score is the candidate's worth and, by ``noise``, now more and now less."""

    name = "wavering"

    def __init__(self, noise: float) -> None:
        self.data = Dataset([Example(name, {}) for name in BATCH], [Example("v0", {})])
        self._noise = noise
        self._asked = count()

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"worth": "0.5"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        reply = await llm([Message("user", artifact["worth"])])
        turn = (next(self._asked) * 0.618) % 1 - 0.5
        return Rollout(example.id, reply, Score(float(artifact["worth"]) + self._noise * turn, "", passed=False))


class Screening(fe.Algorithm):
    """Screens proposals of such worth, one after the other."""

    name = "screening"
    roles = ("task",)

    def __init__(self, noise: float, worths: Sequence[float], repeats: int = 3) -> None:
        super().__init__(Wavering(noise), fe.Settings(), fe.Tuning())
        self.archive = ParetoArchive()
        self.archives = (self.archive,)
        self.noise = Noise()
        self.worths = worths
        self.repeats = repeats

    def graph(self) -> fe.Graph:
        screen = PairedScreen(rollouts=Rollouts(self.task), acceptance=Paired(repeats=self.repeats), noise=self.noise)
        stages = (
            fe.Stage("select", self.select, ("screen",)),
            fe.Stage("screen", screen, ("update",)),
            committing("update", _confirm),
        )
        return fe.Graph(stages, entry="select")

    async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
        seed = context.propose(self.task.seed(), parents=[], operator="seed")
        context.commit([Add(seed.scored({"v0": 0.5}))])
        for emission in NO_EMISSIONS:
            yield emission

    async def select(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        number = item.expect(fe.Ticket).ordinal
        if number >= len(self.worths):
            raise fe.Exhausted
        context.begin(Cost(proposals=1))
        parent = context.pool["c0"]
        child = context.propose(fe.Artifact({"worth": str(self.worths[number])}), parents=[parent], operator="edit")
        yield fe.Emit(Proposed(child, BATCH, (0.5,) * len(BATCH)))

    def apply_event(self, event: fe.Event) -> None:
        self.noise.apply_event(event)

    def best(self) -> fe.Candidate | None:
        return self.archive.best()


async def _confirm(item: fe.Item[object], context: fe.UpdateContext) -> None:
    candidate = item.expect(Proposed).candidate
    context.commit([Add(candidate.scored({"v0": float(candidate.artifact["worth"])}))])


class ParentFails(Screening):
    """Screens one proposal, whose parent fails while both are run again."""

    async def select(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        number = item.expect(fe.Ticket).ordinal
        if number == 0:
            parent = context.propose(fe.Artifact({"worth": "0.5"}), parents=[context.pool["c0"]], operator="edit")
            child = context.propose(fe.Artifact({"worth": "0.6"}), parents=[parent], operator="edit")
            yield fe.Emit(Proposed(child, BATCH, (0.5,) * len(BATCH)))
        elif number == 1:
            await anyio.sleep(3)  # a run takes two seconds
            context.reject(context.pool["c1"], "not better")
        else:
            raise fe.Exhausted


def screened(
    algorithm: Screening, before: Sequence[Fact] = (), budget: fe.Budget | None = None, flows: int = 1
) -> tuple[RunReport, list[Fact]]:
    limits = budget or fe.Budget(hours=1)
    return evolve(algorithm, before, roles=lambda: {"task": Model(Echo(), "echo")}, budget=limits, max_in_flight=flows)


def passed(facts: Sequence[Fact]) -> list[bool]:
    return [bool(event.data["accepted"]) for event in events_of(facts, "candidate.screened")]


def repeats_of(facts: Sequence[Fact]) -> list[tuple[str, int]]:
    """The candidate of each repeat, and how many there had been by then."""
    compared = [Compared.from_json(event.data) for event in events_of(facts, Compared.kind)]
    return [(each.candidate, len(each.scores) - 1) for each in compared if len(each.scores) > 1]


def test_scores_that_do_not_vary_are_repeated_only_until_that_is_known() -> None:
    report, facts = screened(Screening(0.0, [0.6, 0.4] * 10))
    assert passed(facts) == [True, False] * 10
    assert len(repeats_of(facts)) == KNOWN / (2 * len(BATCH))
    assert report.spent.rollouts == 20 * len(BATCH) + KNOWN


def test_repeats_go_where_they_decide_something() -> None:
    worths = [0.5 + lead for lead in (0.02, -0.02)] * 8 + [0.8, 0.2] * 8
    _, facts = screened(Screening(0.4, worths))
    close = {name for name, _ in repeats_of(facts)}
    names = [str(event.data["candidate"]) for event in events_of(facts, "candidate.screened")]
    assert close & set(names[:16])
    assert not close & set(names[16:])
    assert passed(facts)[16:] == [True, False] * 8


@pytest.mark.parametrize("repeats", [1, 3])
def test_repeats_are_bounded(repeats: int) -> None:
    report, facts = screened(Screening(0.5, [0.5] * 10, repeats))
    assert max(number for _, number in repeats_of(facts)) == repeats
    assert report.spent.rollouts <= 10 * len(BATCH) * (1 + 2 * repeats)


def test_a_repeat_without_room_in_the_budget_is_not_begun() -> None:
    report, facts = screened(Screening(0.5, [0.51] * 10), budget=fe.Budget(rollouts=len(BATCH) + 5))
    assert report.spent.rollouts == 2 * len(BATCH)
    assert passed(facts)
    assert not repeats_of(facts)


def test_a_run_that_is_killed_in_a_repeat_pays_for_no_call_twice() -> None:
    worths = [0.52, 0.48, 0.51]
    report, facts = screened(Screening(0.0, worths))
    for cut in range(2, len(facts), 23):
        again, told = screened(Screening(0.0, worths), facts[:cut])
        assert passed(told) == passed(facts)
        assert again.spent == report.spent
        paid = [(fact.scope.candidate, fact.scope.item) for fact in told if isinstance(fact, CallRecord) and fact.reply]
        assert len(set(paid)) == len(paid)


def test_where_the_parent_failed_before_the_run_goes_on_what_is_known_decides() -> None:
    _, facts = screened(ParentFails(0.0, []), flows=2)
    failed = next(
        place for place, fact in enumerate(facts) if isinstance(fact, Event) and fact.kind == "candidate.rejected"
    )
    assert Compared.from_json(events_of(facts[:failed], Compared.kind)[-1].data).open
    again, told = screened(ParentFails(0.0, []), facts[: failed + 2], flows=2)
    assert again.stop_reason == "exhausted"
    assert passed(told) == passed(facts) == [True]


def test_a_difference_far_from_chance_is_not_open() -> None:
    paired = Paired(z=1.0, repeats=3)
    assert paired.is_open([(0.5, 0.5)], [(0.4, 0.4)], noise=0.04)
    assert not paired.is_open([(1.0, 1.0)], [(0.0, 0.0)], noise=0.04)
    assert paired.is_open([(0.65, 0.65)], [(0.5, 0.5)], noise=0.04)
    assert not paired.is_open([(0.65, 0.65)] * 3, [(0.5, 0.5)] * 3, noise=0.04), "more runs tell more"
    assert not paired.is_open([(0.5, 0.5)] * 4, [(0.5, 0.5)] * 4, noise=0.04)
    assert not paired.is_open([(0.5, 0.5)], [(0.4, 0.4)], noise=0.0)


@pytest.mark.parametrize(("settings", "named"), [({"z": 0.0}, "acceptance_z"), ({"repeats": 0}, "acceptance_repeats")])
def test_settings_out_of_range_are_named(settings: dict[str, float], named: str) -> None:
    with pytest.raises(fe.InputError, match=named):
        Paired(**settings)  # type: ignore[arg-type]
