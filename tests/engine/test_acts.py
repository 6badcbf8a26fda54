"""Acts on a run: each is journaled with who and when, done, and held to by a run that goes on after an interruption."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.core.acts import Act
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item, Ticket
from flowevolve.core.pool import Candidate
from flowevolve.engine.engine import Engine
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.tasks.house_style import house_style_task
from tests.support.climbing import Climbing, Plan, climb, steered
from tests.support.depth import cuts
from tests.support.interruption import events_of, evolve


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_what_is_done_is_journaled_with_who_and_when(mode: str) -> None:
    plan: Plan = [
        (1.5, fe.Comment("Go on.", candidate="c0")),
        (3.5, fe.Pause()),
        (9.5, fe.Unpause()),
        (11.5, fe.Stop()),
    ]
    report, facts = climb(*plan, mode=mode)
    assert steered(facts) == [("ada", act.to_json(), None) for _, act in plan]
    assert [event.time for event in events_of(facts, "run.steered")] == [1.5, 3.5, 9.5, 11.5]
    opened = [event.time for event in events_of(facts, "flow.open")]
    assert not [time for time in opened if 3.5 < time < 9.5]
    assert report.stop_reason == "stopped"


def test_edited_texts_go_in_with_what_they_were_edited_from() -> None:
    report, _ = climb((5.5, fe.Inject({"a": "by hand, and longer than all others"}, "c1")), max_in_flight=1)
    (candidate,) = [each for each in report.pool.snapshot().candidates() if each.operator == "injected"]
    assert candidate.parents == ("c1",)
    assert candidate.artifact["a"] == "by hand, and longer than all others"


def test_texts_that_were_edited_from_nothing_go_in_without_a_parent() -> None:
    class OfPrograms(Climbing):
        async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
            yield Emit(context.propose(fe.Artifact({"a": "seed"}, "program"), parents=[], operator="seed"), to="judge")

    texts = {"a": "by hand, and longer than all others"}
    report, facts = climb((5.5, fe.Inject(texts)), algorithm=OfPrograms(), max_in_flight=1)
    assert [refused for _, _, refused in steered(facts)] == [None]
    (candidate,) = [each for each in report.pool.snapshot().candidates() if each.operator == "injected"]
    assert (candidate.artifact, candidate.parents) == (fe.Artifact(texts, "program"), ())


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_raised_budget_lets_the_run_go_on(mode: str) -> None:
    width: dict[str, Any] = {"max_in_flight": 1, "mode": mode}
    budget = fe.Budget(proposals=3, seconds=15)
    report, facts = climb((5.0, fe.RaiseBudget({"proposals": 5})), budget=budget, **width)
    assert (report.spent.proposals, report.stop_reason) == (5, "proposals")
    report, facts = climb((7.0, fe.RaiseBudget({"minutes": 0.5})), budget=fe.Budget(seconds=9), **width)
    assert report.stop_reason == "exhausted"
    assert report.wall_seconds > 20
    assert not events_of(facts, "run.drain_ended")


class Unforeseen(Climbing):
    """Runs more than a flow has reserved; every other ticket takes four seconds longer."""

    async def _make(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        context.begin(fe.Cost(rollouts=3))
        await anyio.sleep(4 * (item.expect(Ticket).ordinal % 2))
        async for emission in super()._make(item, context):
            yield emission


@pytest.mark.parametrize("limit", [11, 20])
def test_a_budget_that_is_raised_while_the_last_flows_end_opens_more_if_it_is_enough(limit: int) -> None:
    options: dict[str, Any] = {"budget": fe.Budget(rollouts=10), "max_in_flight": 2}
    short, facts = climb(algorithm=Unforeseen(), **options)
    (stopping,) = events_of(facts, "run.stopping")
    assert short.stop_reason == "rollouts"
    assert short.wall_seconds > stopping.time + 1
    report, facts = climb((stopping.time + 1, fe.RaiseBudget({"rollouts": limit})), algorithm=Unforeseen(), **options)
    assert steered(facts)[0][2] is None
    assert report.stop_reason == "rollouts"
    assert report.spent.rollouts == (18 if limit == 20 else 9)


def test_work_knows_the_comments_that_were_made_before_it_began() -> None:
    algorithm = Climbing()
    climb(
        (3.0, fe.Comment("Mind the gap.", candidate="c0")),
        (7.0, fe.Comment("Shorter.", candidate="c0")),
        algorithm=algorithm,
        max_in_flight=1,
    )
    assert algorithm.known[0] == algorithm.known[1] == []
    assert algorithm.known[2] == ["Mind the gap."]
    assert algorithm.known[4] == ["Mind the gap.", "Shorter."]


def test_work_knows_the_same_comments_after_an_interruption() -> None:
    whole, resumed = Climbing(), Climbing()
    plan: Plan = [(3.5, fe.Comment("Mind the gap.", candidate="c0")), (6.5, fe.Comment("Shorter.", candidate="c0"))]
    _, facts = climb(*plan, algorithm=whole, max_in_flight=1)
    _, second = events_of(facts, "run.steered")
    evolve(resumed, facts[: facts.index(second) + 1], max_in_flight=1)
    assert resumed.known[3] == ["Mind the gap."], "its work began before the second comment"
    assert resumed.known[4] == ["Mind the gap.", "Shorter."]
    assert resumed.known == {ordinal: texts for ordinal, texts in whole.known.items() if ordinal >= 3}


def test_comments_are_made_on_the_examples_that_candidates_are_made_and_scored_by() -> None:
    algorithm = Climbing()
    algorithm.task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=15, seed=1))
    data = algorithm.task.data
    train, val, test = data.train[1].id, data.val[0].id, data.test[0].id
    plan: Plan = [(second, fe.Comment("Hm.", example=name)) for second, name in enumerate([train, val, test], start=1)]
    _, facts = climb(*plan, algorithm=algorithm, max_in_flight=1)
    refusal = f"comment: the task has no training or validation example {test!r}"
    assert [refused for _, _, refused in steered(facts)] == [None, None, refusal]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (fe.Unpause(), "unpause: the run is not paused"),
        (fe.RaiseBudget({"minutes": 9}), "raise_budget: the run has no limit of time that could be raised"),
        (fe.RaiseBudget({"rollouts": 9}), "raise_budget: the run has no limit of rollouts that could be raised"),
        (fe.RaiseBudget({"proposals": 20}), "raise_budget: proposals is limited to 20; give more than that, not 20"),
        (fe.Comment("Hm.", candidate="c99"), "comment: there is no candidate 'c99'"),
        (fe.Comment("Hm.", candidate="c3"), "comment: c3 was rejected, so nothing is made of it"),
        (fe.Comment("Hm.", example="9"), "comment: the task has no training or validation example '9'"),
        (fe.Veto("c99"), "veto: there is no candidate 'c99'"),
        (fe.Veto("c3"), "veto: c3 was rejected, so nothing is made of it"),
        (fe.Approve("c1"), "approve: c1 is confirmed; nobody has vetoed it, and no stage has turned it down"),
        (fe.Approve("c99"), "approve: there is no candidate 'c99'"),
        (fe.Inject({"a": "seed 0"}, "c1"), "inject: the texts are the same as those of c1; change one of them"),
        (fe.Inject({"a": "x"}, "c3"), "inject: candidate 'c3', which this was edited from, is not in the pool"),
        (fe.Inject({"b": "x"}), "inject: the artifact has components 'b', but needs 'a'"),
    ],
    ids=repr,
)
def test_what_can_not_be_done_is_refused_and_that_is_journaled(act: Act, message: str) -> None:
    async def refused(engine: Engine) -> None:
        await anyio.sleep(8.5)
        with pytest.raises(InputError, match=f"^{message}$") as caught:
            await engine.act(act, "ada")
        said.append(str(caught.value))

    said: list[str] = []
    report, facts = evolve(Climbing(), beside=refused, budget=fe.Budget(proposals=20), max_in_flight=1)
    assert steered(facts) == [("ada", act.to_json(), said[0])]
    untouched, _ = evolve(Climbing(), budget=fe.Budget(proposals=20), max_in_flight=1)
    assert (report.pool.version, report.stop_reason) == (untouched.pool.version, untouched.stop_reason)


@pytest.mark.parametrize(
    ("act", "by", "message"),
    [
        (fe.Inject({"a": 3}, "c1"), "ada", "inject: texts.a is 3, but has to be a text"),  # type: ignore[dict-item]
        (fe.Inject("text", "c1"), "ada", "inject: texts has to be a table"),  # type: ignore[arg-type]
        (fe.Veto(3), "ada", "veto: candidate is 3, but has to be a text"),  # type: ignore[arg-type]
        (fe.Comment(5, candidate="c1"), "ada", "comment: text is 5, but has to be a text"),  # type: ignore[arg-type]
        (fe.Comment("Hm.", candidate="c1"), None, "comment: by is None; say who asks for it, as a text"),
        ("pause", "ada", "act: 'pause' is no act; give one, such as flowevolve.Pause()"),
    ],
    ids=repr,
)
def test_an_act_of_a_wrong_type_is_refused_and_nothing_of_it_is_journaled(act: Any, by: Any, message: str) -> None:
    async def refused(engine: Engine) -> None:
        await anyio.sleep(8.5)
        with pytest.raises(InputError, match=f"^{re.escape(message)}"):
            await engine.act(act, by)

    _, facts = evolve(Climbing(), beside=refused, max_in_flight=1)
    assert not events_of(facts, "run.steered")


def test_a_limit_in_words_is_taken_as_the_number_that_it_says() -> None:
    report, facts = climb((5.0, fe.RaiseBudget({"proposals": "5"})), budget=fe.Budget(proposals=3), max_in_flight=1)  # type: ignore[dict-item]
    assert report.spent.proposals == 5
    assert steered(facts)[0][1] == {"act": "raise_budget", "limits": {"proposals": 5}}


def test_what_the_algorithm_does_not_take_is_refused_by_its_name() -> None:
    plan: Plan = [(8.5, fe.Veto("c1")), (8.5, fe.Approve("c3")), (8.5, fe.Inject({"a": "x"}, "c1"))]
    report, facts = climb(*plan, algorithm=Climbing(steerable=False), max_in_flight=1)
    whys = [str(why) for _, _, why in steered(facts)]
    assert all("algorithm 'climbing' takes no candidate" in why for why in whys)
    assert len(whys) == 3
    assert report.pool.version == 9


def test_texts_for_other_components_are_refused_before_the_algorithm_reads_them() -> None:
    class Reading(Climbing):
        def inject(self, candidate: Candidate) -> Emit:
            assert candidate.artifact["a"]
            return super().inject(candidate)

    _, facts = climb((8.5, fe.Inject({"wrong": "x"})), algorithm=Reading(), max_in_flight=1)
    refusal = "inject: the artifact has components 'wrong', but needs 'a'"
    assert [why for _, _, why in steered(facts)] == [refusal]


@pytest.mark.parametrize("act", [fe.Pause(), fe.Unpause(), fe.Stop(), fe.RaiseBudget({"proposals": 30})], ids=repr)
def test_a_run_that_is_ending_is_neither_paused_nor_stopped_again_nor_given_more(act: Act) -> None:
    async def stop_and_act(engine: Engine) -> None:
        await anyio.sleep(4.5)
        engine.stop()
        with pytest.raises(InputError, match=rf"^{act.act}: the run is ending already \(a call of stop\)"):
            await engine.act(act, "ada")

    report, facts = evolve(Climbing(), beside=stop_and_act, budget=fe.Budget(proposals=20))
    assert report.stop_reason == "stopped"
    assert [refused is not None for _, _, refused in steered(facts)] == [True]


def test_a_run_that_has_ended_takes_no_acts() -> None:
    async def late() -> None:
        client = LLMClient({}, Scheduler(8), RetryPolicy(), 0, lambda fact: None)
        engine = Engine(Climbing(), llm=client, budget=fe.Budget(hours=1))
        await engine.run()
        with pytest.raises(
            InputError, match=r"stop: the run has ended \(the end of the algorithm's work\); to go on with it"
        ):
            await engine.act(fe.Stop(), "ada")

    clock.run(late, clock="virtual")


@pytest.mark.parametrize(("mode", "parent"), [("stream", "c0"), ("stream", None), ("sync", "c0")])
def test_interrupted_after_any_event_what_was_done_holds(mode: str, parent: str | None) -> None:
    plan: Plan = [
        (3.0, fe.Comment("Mind the gap.", candidate="c0")),
        (5.0, fe.RaiseBudget({"proposals": 11, "minutes": 1})),
        (5.0, fe.Veto("c2")),
        (5.5, fe.Inject({"a": "by hand"}, parent)),
        (6.5, fe.Approve("c3")),
        (9.0, fe.Veto("c1")),
        (9.5, fe.Approve("c2")),
    ]
    options: dict[str, Any] = {"budget": fe.Budget(proposals=5, seconds=12), "max_in_flight": 2, "mode": mode}
    whole, facts = climb(*plan, **options)
    assert [why for _, _, why in steered(facts)] == [None] * len(plan)
    for end in cuts(facts):
        algorithm = Climbing()
        report, combined = evolve(algorithm, facts[:end], **options)
        done = [act["act"] for _, act, _ in steered(facts[:end]) if isinstance(act, dict)]
        assert report.pool.vetoed("c1") == (len(done) >= 6)
        assert report.pool.vetoed("c2") == (len(done) in (3, 4, 5, 6))
        given = [each.artifact["a"] for each in report.pool.snapshot().candidates() if each.operator == "injected"]
        assert len(given) == len(set(given)) == (len(done) >= 4) + (len(done) >= 5)
        assert report.spent.proposals <= (5 if len(done) < 2 else 11)
        if len(done) >= 2:
            assert report.stop_reason in ("proposals", "exhausted")
        assert steered(combined) == steered(facts[:end])
    assert whole.pool.vetoed("c1")


def test_what_was_cut_off_on_its_way_and_has_no_place_in_the_resumed_run_is_refused_for_good() -> None:
    inject = fe.Inject({"a": "by hand"}, "c0")
    _, facts = climb((5.5, inject), max_in_flight=1)
    (event,) = events_of(facts, "run.steered")
    cut = facts[: facts.index(event) + 1]
    _, late = evolve(Climbing(), cut, budget=fe.Budget(seconds=5), max_in_flight=1)
    refusal = "inject: the run takes nothing more (the time limit); resume it, or start a new one"
    assert steered(late) == [("ada", inject.to_json(), None), ("ada", inject.to_json(), refusal)]
    report, again = evolve(Climbing(), late, max_in_flight=1)
    assert steered(again) == steered(late)
    assert report.stop_reason == "exhausted"
    assert not [each for each in report.pool.snapshot().candidates() if each.operator == "injected"]
