"""Invariants 1-4 and 6 while candidates are released, confirmed and revoked, workers come and go, and runs are cut off."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import prod
from random import Random

import anyio
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit, Graph, Stage, committing
from flowevolve.core.item import Item, Released, Stale
from flowevolve.core.policies import Resize, StalenessPolicy, Workload
from flowevolve.engine.contract import Mode
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.acceptance import Improvement
from flowevolve.policies.staleness import Full, Guarded, Reflective
from flowevolve.stages.commit import Commit
from flowevolve.stages.payloads import Evaluated, Proposed, Selected
from tests.support.depth import LONG, examples

IDS = ("a", "b", "c", "d")
BOUNDS = (1, 12)


@dataclass(frozen=True)
class Step:
    """A stage between select and make that takes time, drops and multiplies what it gets."""

    seconds: float = 1.0
    fan_out: int = 1
    discard: float = 0.0
    workers: int = 1
    capacity: int = 2


@dataclass(frozen=True)
class Plan:
    """How the toy evaluates: every probability is per candidate. ``steps`` make its graph."""

    release: float = 0.7
    stop: float = 0.2
    fail: float = 0.1
    seconds: float = 5.0
    verdict_seconds: float = 5.0
    workers: int = 3
    seed: int = 0
    steps: tuple[Step, ...] = ()


class Speculating(Algorithm):
    """select → steps → make → evaluate → update with repair, on real payloads and the real update stage, without an LLM."""

    name = "speculating"

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.archive = ParetoArchive()
        self.archives = (self.archive,)
        self.evaluated: set[str] = set()
        self.at_work: dict[str, int] = {}
        self.crowd: dict[str, int] = {}

    def best(self):  # type: ignore[no-untyped-def]  # as the archive has it
        return self.archive.best()

    def graph(self) -> Graph:
        workers = self.plan.workers
        names = [*(f"step{n}" for n in range(len(self.plan.steps))), "make"]
        return Graph(
            (
                Stage("select", self._select, (names[0],)),
                *(
                    Stage(name, partial(self._step, step), (following,), step.workers, step.capacity, bounds=BOUNDS)
                    for name, following, step in zip(names, names[1:], self.plan.steps, strict=False)
                ),
                Stage("make", self._make, ("evaluate",), workers, bounds=BOUNDS),
                Stage("repair", self._repair, ("evaluate",), workers, bounds=BOUNDS),
                Stage("evaluate", self._evaluate, ("update",), workers, 2, repair_to="evaluate", bounds=BOUNDS),
                committing("update", Commit(self.archive.standing, Improvement())),
            ),
            entry="select",
            repair="repair",
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        seed = context.propose(Artifact({"p": "seed"}), parents=[], operator="seed")
        self.evaluated.add(seed.id)
        yield Emit(Evaluated(seed.scored(dict.fromkeys(IDS, 0.1))), to="update")

    async def _select(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        parent = context.random.choice(self.archive.candidates)
        yield Emit(Selected(parent, ("p",), ()), version=context.pool.version, derives=(parent.id,))

    async def _step(self, step: Step, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(step.seconds * context.random.random())
        if context.random.random() < step.discard:
            raise Discard("dropped")
        for _ in range(step.fan_out):
            yield Emit(item.payload)

    async def _make(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        parent = item.expect(Selected).parent
        with self._counted(context.stage):
            await anyio.sleep(self.plan.seconds * context.random.random())
        context.spend(Cost(rollouts=1))
        candidate = context.propose(Artifact({"p": item.id}), parents=[parent], operator="toy", born=item.version)
        yield Emit(Proposed(candidate, (), ()))

    async def _repair(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        stale = item.expect(Stale)
        await anyio.sleep(context.random.random())
        if context.random.random() < 0.5:
            raise Discard("subsumed")
        yield Emit(stale.item.payload, to=stale.back_to, version=context.pool.version)

    async def _evaluate(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate, random = item.expect(Proposed).candidate, context.random
        scores = {name: random.random() for name in IDS}
        with self._counted(context.stage):
            await anyio.sleep(self.plan.seconds * random.random())
            if random.random() < self.plan.release:
                yield Emit(Released(candidate.scored({"a": scores["a"]})))
            await anyio.sleep(self.plan.verdict_seconds * random.random())
        if random.random() < self.plan.stop:
            context.save(2)
            raise Discard("stopped")
        self.evaluated.add(candidate.id)
        yield Emit(Evaluated(candidate.scored(scores)))

    def _counted(self, stage: str) -> _Counted:
        return _Counted(self, stage)


@dataclass
class _Counted:
    toy: Speculating
    stage: str

    def __enter__(self) -> None:
        at_work = self.toy.at_work
        at_work[self.stage] = at_work.get(self.stage, 0) + 1
        self.toy.crowd[self.stage] = max(self.toy.crowd.get(self.stage, 0), at_work[self.stage])

    def __exit__(self, *_: object) -> None:
        self.toy.at_work[self.stage] -= 1


@dataclass
class Restless:
    """An allocation policy that asks for anything, bounds or not."""

    seed: int
    interval_seconds: float = 1.0
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def decide(self, load: Workload) -> Sequence[Resize]:
        for stage in load.stages:
            assert stage.least <= stage.workers <= stage.most
            assert 0 <= stage.busy <= BOUNDS[1] + 1e-9
            assert stage.waiting >= 0
        return [Resize(stage.name, self.random.choice((1, -1)), "restless") for stage in load.stages]


@dataclass
class Outcome:
    report: RunReport
    events: list[Event]
    toy: Speculating


def run_toy(
    plan: Plan,
    *,
    mode: Mode = "stream",
    staleness: StalenessPolicy,
    width: int = 6,
    budget: Budget,
    cancel_after: float | None = None,
) -> Outcome:
    events: list[Event] = []
    toy = Speculating(plan)

    async def go() -> RunReport:
        engine = Engine(
            toy,
            llm=LLMClient({}, Scheduler(1), RetryPolicy(), 0, lambda record: None),
            budget=budget,
            mode=mode,
            max_in_flight=width,
            staleness=staleness,
            allocation=Restless(plan.seed),
            seed=plan.seed,
            drain_seconds=3.0,
            sinks=[events.append],
        )
        async with anyio.create_task_group() as tasks:
            if cancel_after is not None:

                async def cut() -> None:
                    await anyio.sleep(cancel_after)
                    engine.cancel()

                tasks.start_soon(cut)
            report = await engine.run()
            tasks.cancel_scope.cancel()
        return report

    return Outcome(clock.run(go, clock="virtual"), events, toy)


plans = st.builds(
    Plan,
    release=st.sampled_from([0.0, 0.5, 1.0]),
    stop=st.sampled_from([0.0, 0.3, 1.0]),
    seconds=st.sampled_from([0.5, 1.0, 7.0]),
    workers=st.integers(1, 4),
    seed=st.integers(0, 1000),
    steps=st.lists(
        st.builds(
            Step,
            seconds=st.sampled_from([0.5, 4.0]),
            fan_out=st.integers(1, 2),
            discard=st.sampled_from([0.0, 0.3]),
            workers=st.integers(1, 4),
            capacity=st.integers(1, 3),
        ),
        max_size=3,
    ).map(tuple),
)
policies = st.sampled_from([Full(), Guarded(1), Guarded(6), Reflective(), Reflective(min_gap=3, max_repairs=2)])
LEGAL = {
    "proposed": {"speculative", "confirmed", "rejected"},
    "speculative": {"confirmed", "revoked"},
}


def statuses(outcome: Outcome) -> dict[str, list[str]]:
    """Every candidate's statuses in order, and the versions of commits, from the event log alone."""
    seen: dict[str, list[str]] = {}
    version = 0
    for event in outcome.events:
        match event.kind:
            case "candidate.proposed":
                seen[str(event.data["candidate"])] = ["proposed"]
            case "candidate.rejected":
                seen[str(event.data["candidate"])].append("rejected")
            case "pool.commit":
                assert event.data["version"] == version + 1
                version += 1
                changes = event.data["changes"]
                assert isinstance(changes, list)
                for change in changes:
                    assert isinstance(change, dict)
                    seen[str(change.get("add", change.get("move")))].append(str(change["status"]))
    return seen


def assert_invariants(outcome: Outcome, mode: Mode = "stream") -> None:
    sent = {str(e.data["item"]) for e in outcome.events if e.kind == "item.sent"}
    sent |= {str(e.data["flow"]) for e in outcome.events if e.kind == "flow.open"}
    done = [str(e.data["item"]) for e in outcome.events if e.kind == "item.done"]
    held = [str(e.data["item"]) for e in outcome.events if e.kind == "item.held"]
    assert sorted([*done, *held]) == sorted(sent)
    for history in statuses(outcome).values():
        for before, after in pairwise(history):
            assert after in LEGAL[before]
    pool = outcome.report.pool
    for name, history in statuses(outcome).items():
        if history[-1] == "confirmed":
            assert name in outcome.toy.evaluated
            assert set(pool[name].scores) == set(IDS)
    if mode == "stream":  # lockstep runs all that waits side by side
        assert max(outcome.toy.crowd.values(), default=0) <= BOUNDS[1]
    counts = outcome.report.speculation
    assert counts.released >= counts.confirmed + counts.revoked


@examples(80)
@given(plan=plans, staleness=policies, mode=st.sampled_from(["stream", "sync"]), width=st.integers(1, 12))
def test_invariants_hold_whatever_is_released_and_revoked(
    plan: Plan, staleness: StalenessPolicy, mode: Mode, width: int
) -> None:
    budget = Budget(rollouts=40, seconds=400)
    outcome = run_toy(plan, mode=mode, staleness=staleness, width=width, budget=budget)
    assert_invariants(outcome, mode)
    most = width * prod(step.fan_out for step in plan.steps)
    assert outcome.report.overshoot.get("rollouts", 0) <= most
    if not outcome.report.held:
        assert outcome.report.speculation.released == (
            outcome.report.speculation.confirmed + outcome.report.speculation.revoked
        )


@examples(40)
@given(plan=plans, staleness=policies, cancel_after=st.floats(0.0, 60.0))
def test_invariants_hold_when_a_run_is_cut_off(plan: Plan, staleness: StalenessPolicy, cancel_after: float) -> None:
    assert_invariants(run_toy(plan, staleness=staleness, budget=Budget(seconds=100), cancel_after=cancel_after))


@examples(20)
@given(plan=plans, staleness=policies)
def test_same_seed_same_events_with_workers_coming_and_going(plan: Plan, staleness: StalenessPolicy) -> None:
    logs = [
        [event.to_json() for event in run_toy(plan, staleness=staleness, budget=Budget(rollouts=30)).events]
        for _ in range(2)
    ]
    assert logs[0] == logs[1]


def lineage(outcome: Outcome) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for event in outcome.events:
        if event.kind == "candidate.proposed":
            parents = event.data["parents"]
            assert isinstance(parents, list)
            found[str(event.data["candidate"])] = tuple(map(str, parents))
    return found


def test_what_descends_from_a_revoked_candidate_is_stale_through_generations() -> None:
    """``guarded`` with no bound on the gap discards for nothing else."""
    generations: set[int] = set()
    for seed in range(6 if LONG else 3):
        plan = Plan(release=1.0, stop=0.0, seconds=1.0, verdict_seconds=40.0, workers=12, seed=seed)
        guarded = run_toy(plan, staleness=Guarded(10_000), width=14, budget=Budget(rollouts=150))
        generations |= check_lineage(guarded)
        assert guarded.report.speculation.revoked > 5
        assert run_toy(plan, staleness=Full(), width=14, budget=Budget(rollouts=150)).report.staleness.discarded == 0
    assert generations >= {1, 2}


def check_lineage(outcome: Outcome) -> set[int]:
    """When a candidate was confirmed, nothing it came from was revoked, up to its nearest confirmed ancestors.

    Returns how many generations there were between candidates whose items ended as stale and the nearest revoked ancestor.
    """
    made_by = {str(e.data["item"]): str(e.data["candidate"]) for e in outcome.events if e.kind == "candidate.proposed"}
    parents, now = lineage(outcome), dict.fromkeys(lineage(outcome), "proposed")

    def revoked_after(name: str) -> int | None:
        found = [1 for parent in parents[name] if now[parent] == "revoked"]
        further = [revoked_after(parent) for parent in parents[name] if now[parent] not in ("revoked", "confirmed")]
        return min([*found, *(1 + each for each in further if each is not None)], default=None)

    generations: set[int] = set()
    for event in outcome.events:
        if event.kind == "item.done" and event.data["reason"] == "stale":
            maker = str(event.data["item"])
            while maker and maker not in made_by:
                maker = maker.rpartition(".")[0]
            generations.add(revoked_after(made_by[maker]) or 0 if maker else 0)
        changes = event.data.get("changes")
        for change in changes if isinstance(changes, list) else []:
            assert isinstance(change, dict)
            name = str(change.get("add", change.get("move")))
            now[name] = str(change["status"])
            assert now[name] != "confirmed" or revoked_after(name) is None
    return generations


def test_workers_that_are_let_go_finish_their_item() -> None:
    """Every resize is logged with its reason, and no item is worked on twice or dropped."""
    outcome = run_toy(Plan(seed=5), staleness=Full(), budget=Budget(rollouts=60))
    changes = [event.data for event in outcome.events if event.kind == "allocation.changed"]
    assert {change["by"] for change in changes} == {1, -1}
    assert all(change["reason"] == "restless" for change in changes)
    assert all(BOUNDS[0] <= int(str(change["workers"])) <= BOUNDS[1] for change in changes)
    assert_invariants(outcome)
