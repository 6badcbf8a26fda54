"""Results of slow things that are not LLM calls: on disk before anybody sees them, and not worked out again."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.errors import EngineError
from flowevolve._util.json_types import JSON
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Discard, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.pool import Add, Candidate
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.journal.history import RunHistory
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from tests.support.depth import cuts
from tests.support.interruption import events_of, evolve


@fe.payload("tests.Timing")
@dataclass(frozen=True)
class Timing:
    """A trajectory, say: not plain data."""

    seconds: float


class Unknown(Timing):
    """Nothing that the journal can hold."""


class Measuring(fe.Algorithm):
    """Two measurements side by side and one more after them for every ticket, none ever the same when done again."""

    name = "measuring"

    def __init__(self, done: list[str], kept: type[Timing] = Timing, tickets: int = 3) -> None:
        self.done = done
        self.archives = ()
        self._kept = kept
        self._one_by_one = threading.Lock()
        self._tickets = tickets

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        return Graph(
            (Stage("measure", self._measure, ("update",), workers=2), CommittingStage("update", self._update)),
            entry="measure",
        )

    async def _measure(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal >= self._tickets:
            raise Exhausted

        def in_thread(what: str) -> float:
            with self._one_by_one:
                self.done.append(f"{item.id} {what}")
                return float(len(self.done))

        async def score(what: str) -> Mapping[str, JSON]:
            return {"score": await clock.in_thread(in_thread, what)}

        async def time() -> Timing:
            await anyio.sleep(2)
            return self._kept(in_thread("time"))

        async def scored(what: str) -> float:
            data = await context.once("measured", lambda: score(what), key=what)
            seen = data["score"]
            assert isinstance(seen, float)
            return seen

        scores: dict[str, float] = {}
        async for index, seen in context.side_by_side([lambda: scored("a"), lambda: scored("b")]):
            scores["ab"[index]] = seen
        timing = await context.keep("timed", time)
        context.spend(fe.Cost(rollouts=1))
        artifact = fe.Artifact({"item": item.id})
        yield Emit(context.propose(artifact, parents=[], operator="m").scored({**scores, "t": timing.seconds}))

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit([Add(item.expect(Candidate))])
        for emission in NO_EMISSIONS:
            yield emission


def seen(events: Sequence[Event]) -> dict[tuple[str, str], JSON]:
    """What was settled, by item and key."""
    return {(str(e.data["item"]), str(e.data["key"])): e.data["score"] for e in events}


def scores_of(report: RunReport) -> dict[str, dict[str, float]]:
    return {each.artifact["item"]: dict(each.scores) for each in report.pool.snapshot().candidates()}


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_interrupted_after_any_event_nothing_that_was_written_is_done_again(mode: str) -> None:
    _, facts = evolve(Measuring([]), mode=mode)
    for end in cuts(facts):
        done: list[str] = []
        report, combined = evolve(Measuring(done), facts[:end], mode=mode)
        before = [*events_of(facts[:end], "measured"), *events_of(facts[:end], "timed")]
        assert not set(done) & {f"{e.data['item']} {e.data.get('key', 'time')}" for e in before}
        assert len(done) + len(before) == 9
        assert report.spent.rollouts == 3
        settled = seen(events_of(combined, "measured"))
        for item, scores in scores_of(report).items():
            assert {key: settled[item, key] for key in "ab"} == {key: scores[key] for key in "ab"}


def test_what_can_not_be_kept_is_done_again() -> None:
    _, facts = evolve(Measuring([], Unknown))
    end = next(i for i, fact in enumerate(facts) if isinstance(fact, Event) and fact.kind == "timed") + 1
    done: list[str] = []
    evolve(Measuring(done, Unknown), facts[:end])
    assert "time" in {what.split()[1] for what in done}
    assert not set(done) & {f"{e.data['item']} {e.data['key']}" for e in events_of(facts[:end], "measured")}


def test_a_failure_is_nothing_that_is_written() -> None:
    class Failing(Measuring):
        async def _measure(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            if item.expect(Ticket).ordinal:
                raise Exhausted

            async def fail() -> Mapping[str, JSON]:
                raise Discard("crashed")

            await context.once("measured", fail)
            for emission in NO_EMISSIONS:
                yield emission

    report, facts = evolve(Failing([]))
    assert not events_of(facts, "measured")
    assert report.stages["measure"].counts.reasons["crashed"] == 1


def test_a_result_that_is_no_dictionary_is_refused_with_what_to_do_instead() -> None:
    class Scoring(Measuring):
        async def _measure(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            async def score() -> float:
                return 0.5

            await context.once("measured", score)  # type: ignore[arg-type]
            for emission in NO_EMISSIONS:
                yield emission

    with pytest.raises(EngineError, match=r"measured: make returned a float, .*; for other results there is context.k"):
        evolve(Scoring([]))


def test_results_are_on_disk_before_they_are_seen_and_come_back_from_there(tmp_path: Path) -> None:
    """A run directory, cut off when the first result that is no plain data was about to be seen."""
    done: list[str] = []

    async def go(directory: RunDirectory, history: RunHistory | None, stop: bool) -> RunReport | None:
        with anyio.CancelScope() as scope:

            def cut(event: Event) -> None:
                if stop and event.kind == "timed":
                    scope.cancel()

            engine = Engine(
                Measuring(done, tickets=1),
                llm=LLMClient({}, Scheduler(1), RetryPolicy(), 0, directory.call),
                budget=fe.Budget(hours=1),
                sinks=[directory.event, cut],
                settled=directory.settled,
                history=history,
            )
            return await engine.run()
        return None

    directory = RunDirectory(tmp_path / "run", {})
    assert clock.run(go, directory, None, True, clock="virtual") is None
    directory.close()
    assert len(done) == 3
    history = RunHistory(RecordedRun(tmp_path / "run"))
    directory = RunDirectory(tmp_path / "run", {}, resume=True)
    report = clock.run(go, directory, history, False, clock="virtual")
    history.close()
    directory.close()
    assert len(done) == 3
    assert report is not None
    assert [sorted(scores.values()) for scores in scores_of(report).values()] == [[1.0, 2.0, 3.0]]
