"""Runs of which nothing comes: it is said after the first flows, and where nothing can come of it, the run ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable

import anyio
import pytest

import flowevolve as fe
from flowevolve.config.run import parse_config
from flowevolve.core.context import StageContext
from flowevolve.core.discard_reasons import NO_REPLY, UNCHANGED, UNREADABLE
from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import CandidateProposed, ItemDone, PoolCommitted, RunFruitless
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.item_ids import ItemId
from flowevolve.core.logged_changes import LoggedAdd
from flowevolve.core.model import ChatRequest
from flowevolve.core.pool import Pool
from flowevolve.core.reply_reading import Reason
from flowevolve.core.task import Call, ChatModel, Example, Rollout, Score
from flowevolve.engine.counters import ReplyCounts
from flowevolve.engine.fruitless import FruitlessCheck, fruitless
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.sim.worlds import catalog
from flowevolve.telemetry.progress import Lines
from flowevolve.telemetry.run_figures import ProgressFigures
from tests.support import interruption
from tests.support.small_runs import Small

SEED = "You are helpful."
ANSWER = "fine"


class Plain:
    """A task of one component by default, whose rollouts name those in ``named``."""

    name = "plain"
    data = fe.Dataset([Example(str(n), {}) for n in range(6)], [Example(f"v{n}", {}) for n in range(3)])

    def __init__(self, *named: str, components: int = 1) -> None:
        self._named, self._components = named, components

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": SEED, **{f"part{n}": SEED for n in range(1, self._components)}})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        output = await llm([fe.Message("user", ANSWER)])
        calls = tuple(Call(name, {"input": "x"}, output) for name in self._named)
        return Rollout(example.id, output, Score(0.5, "not good", passed=False), calls)


class Ran:
    """A run of a task, on a model that answers reflections as ``reflection`` says."""

    def __init__(
        self,
        task: Plain,
        patch: pytest.MonkeyPatch,
        reflection: Callable[[int], str] = lambda number: "",
        **stopping: int,
    ) -> None:
        self.events: list[Event] = []
        self.told: list[str] = []
        self.figures = ProgressFigures()
        self.reflections = 0
        self.result: Result | None = None
        self.error: fe.FlowevolveError | None = None
        ran = self

        class Answering:
            def __init__(self, params: object) -> None: ...

            def reply(self, request: ChatRequest, rng: random.Random) -> str:
                if request.messages[-1].content == ANSWER:
                    return ANSWER
                ran.reflections += 1
                return reflection(ran.reflections)

        patch.setattr(catalog, "WORLDS", {"rules": Answering})
        table = {
            "clock": "virtual",
            "algorithm": {"max_in_flight": 2, "skip_perfect": False},
            "budget": {"proposals": 40, "rollouts": 2000},
            "llm": {"retries": 0},
            "stopping": stopping,
        }
        lines = Lines(self.told.append)

        async def go() -> Result:
            watchers = Watchers((self.events.append, lines.event, self.figures.take))
            return await run(parse_config(table, "test"), task=task, watchers=watchers)

        try:
            self.result = fe.clock.run(go, clock="virtual")
        except fe.FlowevolveError as error:
            self.error = error

    @property
    def said(self) -> list[RunFruitless]:
        return [event.body for event in self.events if isinstance(event.body, RunFruitless)]

    def flows(self) -> int:
        return sum(event.kind == "flow.close" for event in self.events)


def text(said: str) -> str:
    return f"```\n{said}\n```"


@pytest.mark.parametrize(("named", "shown"), [((), "none"), (("promt",), "'promt'")])
def test_a_task_whose_rollouts_name_no_component_ends_the_run_after_ten_flows(
    named: tuple[str, ...], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(Plain(*named), monkeypatch)
    assert isinstance(ran.error, fe.TaskFailedError)
    assert f"(10 × no trace of component 'prompt': the rollouts name {shown}); name it in each: Rollout(" in str(
        ran.error
    )
    assert "\n" not in str(ran.error)
    assert ran.reflections == 0
    assert ran.flows() <= 14


def test_with_many_components_each_is_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran(Plain(components=8), monkeypatch)
    assert isinstance(ran.error, fe.TaskFailedError)
    assert 16 <= ran.flows() <= 20


@pytest.mark.parametrize(
    ("reply", "reason"), [(text(SEED), "unchanged"), ("", "unparsable reply")], ids=["unchanged", "unreadable"]
)
def test_reflections_of_which_nothing_comes_are_told_after_ten_and_end_the_run_after_thirty(
    reply: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = Ran(Plain("prompt"), monkeypatch, lambda number: reply)
    assert [dict(each.reasons) for each in ran.said] == [{reason: 10}]
    assert any(f"nothing has come of any flow yet: 10 × {reason}" in line for line in ran.told)
    assert isinstance(ran.error, fe.FruitlessError)
    assert ran.error.exit_code == 5
    assert str(ran.error).startswith(f"nothing came of the first 30 flows: 30 × {reason}. ")
    assert "\n" not in str(ran.error)
    assert ran.reflections <= 34


def test_the_number_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran(Plain("prompt"), monkeypatch, lambda number: text(SEED), fruitless=12)
    assert str(ran.error).startswith("nothing came of the first 12 flows: 12 × unchanged")


def test_once_something_came_of_a_flow_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran(Plain("prompt"), monkeypatch, lambda number: text("Better." if number == 9 else SEED), unproductive=60)
    assert ran.error is None
    assert ran.said == []
    assert ran.result is not None
    assert ran.result.stop_reason == "unproductive"


def test_replies_that_change_nothing_are_no_proposals_and_counted_the_same_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = Ran(Plain("prompt"), monkeypatch, lambda number: text(SEED if number % 3 else f"Better {number}."))
    result = ran.result
    assert result is not None
    proposed = [each for each in ran.events if each.kind == "candidate.proposed" and each.data["operator"] != "seed"]
    unchanged = [each for each in ran.events if each.kind == "item.done" and each.data["reason"] == "unchanged"]
    assert result.proposals == result.to_json()["proposals"] == ran.figures.proposals == len(proposed) == 40
    assert result.report.unchanged == result.to_json()["unchanged"] == ran.figures.unchanged == len(unchanged) >= 70


async def rewrite(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    await anyio.sleep(1)
    raise Discard(UNCHANGED)
    yield Emit(None)  # type: ignore[unreachable]  # makes it a generator


def test_flows_before_an_interruption_count_as_well() -> None:
    whole, facts = interruption.evolve(Small(rewrite))
    told = next(number for number, fact in enumerate(facts) if fact in interruption.events_of(facts, "run.fruitless"))
    for cut in (told // 2, told, told + 1):
        report, resumed = interruption.evolve(Small(rewrite), facts[:cut])
        assert [event.data["reasons"] for event in interruption.events_of(resumed, "run.fruitless")] == [
            {UNCHANGED: 10}
        ]
        assert str(report.error) == str(whole.error)
        assert str(whole.error).startswith(f"nothing came of the first 30 flows: 30 × {UNCHANGED}. ")


def noted(*bodies: EventBody) -> FruitlessCheck:
    check = FruitlessCheck(Small(rewrite).graph())
    for number, body in enumerate(bodies):
        check.take(Event.of(number, 0.0, body))
    return check


def discarded(reason: str, stage: str = "entry") -> ItemDone:
    return ItemDone(ItemId("1.0"), stage, "discarded", reason, 0.0, fe.Cost())


def proposed(operator: str) -> CandidateProposed:
    return CandidateProposed(ItemId("1.0"), "c1", operator, (), 0, "", "prompt", {}, {})


def committed(stage: str) -> PoolCommitted:
    change = LoggedAdd("c1", "main", "confirmed", "write", {}, {})
    return PoolCommitted(1, ItemId("1.0"), stage, (change,), None, None)


VAIN = [*[discarded(UNCHANGED)] * 9, discarded(f"{NO_REPLY} refused")]


def reported(*bodies: EventBody) -> list[EventBody]:
    found: list[EventBody] = []
    assert noted(*bodies).no_fruits(Pool(), 11, ReplyCounts(), found.append) is None
    return found


def test_work_in_vain_is_counted_until_something_is_proposed_or_accepted() -> None:
    event = [RunFruitless({UNCHANGED: 9, f"{NO_REPLY} refused": 1})]
    assert reported(*VAIN) == event
    assert reported(*VAIN, proposed("seed"), discarded("stale"), discarded(UNCHANGED, "init")) == event
    assert reported(*VAIN, *event) == reported(*VAIN[1:], discarded("stale")) == []
    assert reported(*VAIN, committed("init")) == event
    for fruit in (proposed("write"), committed("update")):
        assert not noted(fruit).nothing_yet
        assert reported(*VAIN, fruit) == reported(fruit, *VAIN) == []


@pytest.mark.parametrize(("unchanged", "unread", "mend"), [(3, 1, "writes better"), (1, 3, "keeps to it")])
def test_the_most_frequent_reason_has_its_mend(unchanged: int, unread: int, mend: str) -> None:
    reasons = {UNCHANGED: unchanged, UNREADABLE: unread}
    assert fruitless(reasons, components=1, most=5, replies=ReplyCounts()) is None
    error = fruitless(reasons, components=1, most=4, replies=ReplyCounts(examples={"fence": "no fence"}))
    assert mend in str(error)
    assert "wrong with one of the replies: no fence" in str(error)


@pytest.mark.parametrize(("broken_off", "missing", "named"), [(3, 1, True), (1, 3, False)])
def test_replies_that_break_off_are_mended_by_a_higher_limit(broken_off: int, missing: int, *, named: bool) -> None:
    counts = Counter({Reason.INCOMPLETE.value: broken_off, Reason.MISSING.value: missing})
    error = fruitless({UNREADABLE: 4}, components=1, most=4, replies=ReplyCounts({"reflection": counts}))
    assert ("raise llm.roles.reflection.max_tokens" in str(error)) == named
