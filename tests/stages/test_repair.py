"""What the judge of a stale edit is shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio

from flowevolve.core.artifact import Artifact
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, Emit, Exhausted, Stage
from flowevolve.core.item import Item
from flowevolve.core.model import ChatReply, ChatRequest, Usage
from flowevolve.core.pool import Add, Move
from flowevolve.llm.client.model import Model
from flowevolve.policies.staleness import Reflective
from flowevolve.stages.payloads import Proposed
from flowevolve.stages.repair import Repair
from tests.support.interruption import Echo, evolve
from tests.support.small_runs import Carrier, Small

SEED = Artifact({"answer": "Answer as the seed.", "tone": "Tone of the seed."})
EDITS = (
    ({"answer": "Answer as the stale edit."}, 10, 0.5),
    ({"answer": "Answer as the first update."}, 1, 0.6),
    ({"answer": "Answer as the second update.", "tone": "Tone of the second update."}, 2, 0.9),
    ({"answer": "Answer as what was revoked."}, 3, 0.1),
)
"""By flow: what it changes of the seed, in how many seconds, and what it scores."""


class Judge(Echo):
    """Notes what it is asked, and finds nothing new in any edit."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        self.asked.append(request.messages[-1].content)
        return ChatReply("Verdict: subsumed\nReason: said already", Usage(100, 10))


async def init(context: StageContext) -> AsyncGenerator[Emit]:
    seed = context.propose(SEED, parents=[], operator="seed")
    yield Emit(Carrier(seed.scored({"x": 0.2})), to="update")


async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    if item.flow > len(EDITS):
        raise Exhausted
    (seed,) = context.pool.updates_between(0, 1)[0].added()
    edited = context.propose(SEED.replace(**EDITS[item.flow - 1][0]), parents=[seed], operator="edit")
    yield Emit(Proposed(edited, (), None), to="write", version=context.pool.version)


async def write(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    await anyio.sleep(EDITS[item.flow - 1][1])
    yield Emit(item.payload)


async def evaluate(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    yield Emit(Carrier(item.expect(Proposed).candidate.scored({"x": EDITS[item.flow - 1][2]})))


async def update(item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
    candidate = item.expect(Carrier).candidate
    if "revoked" in candidate.artifact["answer"]:
        context.commit([Add(candidate, "speculative")])
        context.commit([Move(candidate.id, "revoked")])
    else:
        context.commit([Add(candidate)])
    for emission in NO_EMISSIONS:
        yield emission


def test_the_judge_sees_of_what_an_edit_changed_all_versions_that_matter() -> None:
    judge = Judge()
    small = Small(
        enter,
        Stage("write", write, ("evaluate",), workers=4),
        Stage("evaluate", evaluate, ("update",), repair_to="evaluate"),
        Stage("repair", Repair(lambda: small.best()), ("evaluate",)),
        update=update,
        init=init,
        repair="repair",
    )
    report, _ = evolve(small, roles=lambda: {"reflection": Model(judge, "judge")}, staleness=Reflective(min_gap=3))
    assert report.error is None
    (asked,) = judge.asked
    _, began, edit, accepted, current, _ = asked.split("\n## ")[-6:]
    assert "seed" in began
    assert "stale edit" in edit
    first, second = accepted.index("first update"), accepted.index("second update")
    assert first < second, "the oldest first"
    assert "second update" in current
    assert "what was revoked" not in asked
    assert "Tone of" not in asked, "the edit left it as it was"
