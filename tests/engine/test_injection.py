"""Candidates that a caller gives to a run: how they go on, and which are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator

import anyio
import pytest
from structlog.contextvars import get_contextvars

import flowevolve as fe
from flowevolve._util.errors import EngineError, InputError
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import INJECTION, Item, Ticket
from flowevolve.core.pool import DEFAULT_POOL, Add, Candidate
from flowevolve.engine.engine import Engine
from flowevolve.engine.injection import OPERATOR
from flowevolve.policies.staleness import Guarded
from tests.support.depth import cuts
from tests.support.growing import Growing
from tests.support.interruption import events_of, evolve


async def give(engine: Engine) -> None:
    """Two at once, while the run is in init and its evaluate stage has a queue of one; and a paused one later."""
    first = await engine.inject(fe.Artifact({"a": "x"}), attributes={"by": "hand"})
    await engine.inject(fe.Artifact({"a": "y"}), parents=[first.id])
    engine.pause()
    await engine.inject(fe.Artifact({"a": "z"}))
    engine.unpause()


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_what_is_injected_is_evaluated_and_counts(mode: str) -> None:
    report, facts = evolve(
        Growing(), mode=mode, beside=give, staleness=Guarded(max_gap=0), budget=fe.Budget(proposals=20)
    )
    injected = {c.artifact["a"]: c for c in report.pool.snapshot().candidates() if c.operator == "injected"}
    assert set(injected) == {"x", "y", "z"}
    assert injected["y"].parents == (injected["x"].id,)
    assert dict(injected["x"].attributes) == {"by": "hand"}
    assert injected["x"].scores == {"x": 1.0}
    assert report.spent.proposals == 9
    ended = next(event for event in events_of(facts, "phase.ended") if event.data["phase"] == "init")
    assert all(event.seq > ended.seq for event in events_of(facts, "flow.open") if event.data["trigger"] == "inject")
    ordinary = [event.data["ordinal"] for event in events_of(facts, "flow.open") if event.data["trigger"] is None]
    assert [ordinary.count(n) for n in range(6)] == [3 if not n else 1 for n in range(6)]  # init and finish have 0, too


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_interrupted_after_any_event_what_was_injected_goes_on(mode: str) -> None:
    _, facts = evolve(Growing(3), mode=mode, beside=give)
    for end in cuts(facts):
        report, combined = evolve(Growing(3), facts[:end], mode=mode)
        begun = [event.data["item"] for event in events_of(combined, "item.sent")]
        begun += [str(event.data["flow"]) for event in events_of(combined, "flow.open")]
        assert Counter(begun) == Counter(event.data["item"] for event in events_of(combined, "item.done"))
        opened, closed = events_of(combined, "flow.open"), events_of(combined, "flow.close")
        assert sorted(e.data["flow"] for e in opened) == sorted(e.data["flow"] for e in closed)  # type: ignore[type-var]
        proposed = [str(event.data["candidate"]) for event in events_of(combined, "candidate.proposed")]
        assert not [name for name in proposed if report.pool.status(name) == "proposed"]
        sent = [e for e in events_of(facts[:end], "item.sent") if e.data["source"] == "inject"]
        there = [c for c in report.pool.snapshot().candidates() if c.operator == "injected"]
        assert len(there) == len(sent)
        assert report.spent.proposals == 3 + len(sent)


class Dismissive(Growing):
    """Thinks nothing of what it makes first."""

    async def _make(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if not item.expect(Ticket).ordinal:
            context.propose(fe.Artifact({"a": "worse"}), parents=[], operator="new")
            raise Discard("worse")
        async for emission in super()._make(item, context):
            yield emission


@pytest.mark.parametrize(
    ("algorithm", "budget", "parents", "message"),
    [
        (Growing(welcoming=False), fe.Budget(hours=1), (), "takes no candidates from outside"),
        (Growing(), fe.Budget(hours=1), ("c99",), r"parents has 'c99', but"),
        (Dismissive(), fe.Budget(hours=1), ("c1",), r"parents has 'c1', but"),
        (Growing(), fe.Budget(proposals=1), (), r"budget\.proposals is spent"),
    ],
)
def test_what_can_not_be_injected_is_refused_and_the_run_goes_on(
    algorithm: Growing, budget: fe.Budget, parents: tuple[str, ...], message: str
) -> None:
    said: list[str] = []

    async def try_it(engine: Engine) -> None:
        await anyio.sleep(5.5)
        with pytest.raises(InputError, match=message) as caught:
            await engine.inject(fe.Artifact({"a": "x"}), parents=parents)
        said.append(str(caught.value))

    report, _ = evolve(algorithm, beside=try_it, budget=budget)
    assert said
    assert "\n" not in said[0]
    assert report.held == 0
    assert report.error is None


def test_records_that_inject_makes_name_the_item_that_it_is_about() -> None:
    bound: list[dict[str, object]] = []

    class Telling(Growing):
        def inject(self, candidate: Candidate) -> Emit:
            bound.append(get_contextvars())
            return super().inject(candidate)

    async def give_one(engine: Engine) -> None:
        await engine.inject(fe.Artifact({"a": "x"}))
        bound.append(get_contextvars())

    _, facts = evolve(Telling(), beside=give_one)
    (done,) = [event for event in events_of(facts, "item.done") if event.data["stage"] == INJECTION]
    during, after = bound
    assert (during["stage"], during["item"]) == (INJECTION, done.data["item"])
    assert not after.keys() & {"stage", "item"}


class Careless(Growing):
    """Says that what is injected costs nothing."""

    def estimate(self, trigger: str | None = None) -> fe.Cost:
        return fe.Cost() if trigger == INJECTION else super().estimate(trigger)


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_candidate_for_which_the_budget_has_no_room_is_refused_whatever_it_was_said_to_cost(mode: str) -> None:
    said: list[str] = []

    async def try_it(engine: Engine) -> None:
        await anyio.sleep(5.5)
        with pytest.raises(InputError, match=r"inject: budget\.proposals is spent, or kept for open work") as caught:
            await engine.inject(fe.Artifact({"a": "x"}))
        said.append(str(caught.value))

    report, facts = evolve(Careless(), mode=mode, beside=try_it, budget=fe.Budget(proposals=2))
    assert said
    assert [event.data["reason"] for event in events_of(facts, "candidate.rejected")] == ["not welcome"]
    assert not events_of(facts, "budget.refused")
    assert (report.spent.proposals, report.pool.version, report.held) == (2, 3, 0)


class Lost(Growing):
    """Does not know what to do with a candidate from outside."""

    def inject(self, candidate: Candidate) -> Emit:
        if candidate.artifact["a"] == "x":
            raise KeyError("x")
        if candidate.artifact["a"] == "y":
            return Emit(candidate, to="nowhere")
        return Emit(candidate, to="evaluate", derives=("c99",))


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_an_algorithm_that_fails_at_a_candidate_from_outside_does_not_hold_up_the_run(mode: str) -> None:
    tried: list[str] = []

    async def try_it(engine: Engine) -> None:
        for text, kind, message in (
            ("x", KeyError, "x"),
            ("y", EngineError, r"inject\(\) of algorithm 'growing': it emitted to 'nowhere'"),
            ("z", EngineError, r"inject\(\) of algorithm 'growing': Emit: derives names c99"),
        ):
            with pytest.raises(kind, match=message):
                await engine.inject(fe.Artifact({"a": text}))
            tried.append(text)

    report, facts = evolve(Lost(), mode=mode, beside=try_it)
    assert tried == ["x", "y", "z"]
    assert (report.stop_reason, report.held) == ("exhausted", 0)
    assert [event.data["reason"] for event in events_of(facts, "candidate.rejected")] == ["not welcome"] * 3


class Upset(Growing):
    """Can't take in that a candidate from outside was proposed, or that it was sent on."""

    at = "item.sent"

    def apply_event(self, event: Event) -> None:
        if event.kind == self.at and (event.data.get("source") == INJECTION or event.data.get("operator") == OPERATOR):
            raise KeyError("source")


class UpsetAtOnce(Upset):
    at = "candidate.proposed"


@pytest.mark.parametrize("mode", ["stream", "sync"])
@pytest.mark.parametrize("algorithm", [Upset, UpsetAtOnce])
def test_a_run_that_fails_at_a_candidate_from_outside_ends_and_so_does_the_call(
    algorithm: type[Upset], mode: str
) -> None:
    refused: list[KeyError] = []

    async def try_it(engine: Engine) -> None:
        with pytest.raises(KeyError) as caught:
            await engine.inject(fe.Artifact({"a": "x"}))
        refused.append(caught.value)

    with pytest.raises(EngineError, match="algorithm 'growing': KeyError: 'source'") as caught:
        evolve(algorithm(), mode=mode, beside=try_it)
    assert [caught.value.__cause__] == refused


def test_attributes_that_no_journal_can_hold_are_refused() -> None:
    said: list[str] = []

    async def try_it(engine: Engine) -> None:
        with pytest.raises(InputError, match="inject: the attributes are no plain data") as caught:
            await engine.inject(fe.Artifact({"a": "x"}), attributes={"by": object()})  # type: ignore[dict-item]
        said.append(str(caught.value))

    report, _ = evolve(Growing(), beside=try_it)
    assert len(said) == 1
    assert report.stop_reason == "exhausted"


def test_what_has_other_components_than_all_that_the_pool_has_is_refused_and_the_run_goes_on() -> None:
    async def try_it(engine: Engine) -> None:
        with pytest.raises(InputError, match=r"inject: the artifact has components 'b', but needs 'a'$") as caught:
            await engine.inject(fe.Artifact({"b": "x"}))
        said.append(str(caught.value))
        with pytest.raises(InputError, match="inject: parents is 'c0'; give a list of ids of candidates"):
            await engine.inject(fe.Artifact({"a": "x"}), parents="c0")
        with pytest.raises(InputError, match="inject: parents has a Candidate; give ids of candidates"):
            await engine.inject(fe.Artifact({"a": "x"}), parents=[fe.Candidate("c0", fe.Artifact({"a": "x"}))])  # type: ignore[list-item]
        with pytest.raises(InputError, match="inject: attributes is a list; give a dict of plain data"):
            await engine.inject(fe.Artifact({"a": "x"}), attributes=["x"])  # type: ignore[arg-type]
        said.append("all")

    said: list[str] = []
    report, facts = evolve(Growing(), beside=try_it)
    assert len(said) == 2
    assert report.stop_reason == "exhausted"
    assert not [event for event in events_of(facts, "flow.open") if event.data["trigger"] == INJECTION]


class Twofold(Growing):
    """Keeps the seed's recipe in a pool of its own, with a component that no other candidate has."""

    pools = (DEFAULT_POOL, "recipes")

    async def fit(self, context: UpdateContext) -> None:
        recipe = context.propose(fe.Artifact({"b": "recipe"}), parents=[], operator="recipe")
        context.commit([Add(recipe, pool="recipes")])


def test_a_parent_with_other_components_is_refused_and_the_run_goes_on() -> None:
    refused: list[str] = []

    async def try_it(engine: Engine) -> None:
        await anyio.sleep(5.5)
        (recipe,) = engine.pool.snapshot().candidates(pool="recipes")
        with pytest.raises(InputError, match=r"inject: the artifact has components 'a', but needs 'b'$") as caught:
            await engine.inject(fe.Artifact({"a": "x"}), parents=[recipe.id])
        refused.append(str(caught.value))

    report, facts = evolve(Twofold(), beside=try_it)
    assert len(refused) == 1
    assert (report.stop_reason, report.held) == ("exhausted", 0)
    assert not [event for event in events_of(facts, "flow.open") if event.data["trigger"] == INJECTION]


def test_what_is_no_artifact_is_refused() -> None:
    """Before a flow is opened for it, which would stay open."""
    said: list[str] = []

    async def try_it(engine: Engine) -> None:
        with pytest.raises(InputError, match="inject: the artifact is a dict") as caught:
            await engine.inject({"a": "x"})  # type: ignore[arg-type]
        said.append(str(caught.value))

    report, _ = evolve(Growing(), beside=try_it)
    assert len(said) == 1
    assert report.stop_reason == "exhausted"


class Closing(Growing):
    """Evaluates one more at its end, which takes until the second 12."""

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(context.propose(fe.Artifact({"a": "last"}), parents=[], operator="last"), to="evaluate")


def test_a_run_that_is_being_finished_takes_nothing_more() -> None:
    said: list[str] = []

    async def try_late(engine: Engine) -> None:
        await anyio.sleep(10.5)
        with pytest.raises(InputError, match=r"takes nothing more \(the end of the algorithm's work\)"):
            await engine.inject(fe.Artifact({"a": "x"}))
        said.append("refused")

    report, _ = evolve(Closing(2), beside=try_late)
    assert said
    assert report.wall_seconds == pytest.approx(12)


@pytest.mark.parametrize("seconds", [0.5, 5.5])
def test_a_run_that_stops_takes_nothing_more(seconds: float) -> None:
    said: list[str] = []

    async def stop_and_try(engine: Engine) -> None:
        await anyio.sleep(seconds)
        engine.stop()
        with pytest.raises(InputError, match=r"takes nothing more \(a call of stop\)"):
            await engine.inject(fe.Artifact({"a": "x"}))
        said.append("refused")

    report, _ = evolve(Growing(), beside=stop_and_try, drain_seconds=30)
    assert said
    assert report.held == 0
