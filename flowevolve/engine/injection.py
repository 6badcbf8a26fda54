"""Candidates from outside, which enter a run while it goes on and are then treated as any other."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence

import anyio

from flowevolve._util.errors import EngineError, InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard, Emit, Stage
from flowevolve.core.item import INJECTION, Item
from flowevolve.core.pool import Candidate
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.executor import Executor


async def inject(
    dispatcher: Dispatcher,
    executor: Executor,
    algorithm: Algorithm,
    artifact: Artifact,
    parents: Sequence[str],
    attributes: Mapping[str, JSON],
) -> Candidate:
    """Propose an artifact and send it to the stage that the algorithm names, in a flow of its own, once init is over.

    Raises:
        InputError: if the run takes nothing more, its budget has no room, the algorithm takes no candidates from
            outside, a parent is unknown, ``artifact`` is not an Artifact, or the attributes are not plain data.
        EngineError: if the algorithm's ``inject`` names no stage. An exception of its own is raised as it is.
    """
    _check_given(artifact, attributes)
    while not dispatcher.tickets.is_open and dispatcher.stopping.reason is None:
        await dispatcher.changed.wait()
    if not (dispatcher.tickets.is_open and dispatcher.may_open_flows):
        raise InputError(
            f"inject: the run takes nothing more ({dispatcher.stopping.reason}); resume it, or start a new one"
        )
    unknown = [name for name in parents if name not in dispatcher.pool or not dispatcher.pool.keeps(name)]
    if unknown:
        raise InputError(f"inject: the pool has no candidates {unknown}; parents are given by their ids")
    estimate = algorithm.estimate(INJECTION)
    refusal = await dispatcher.refusal(estimate)
    if refusal is not None:
        raise InputError(
            f"inject: budget.{refusal} is spent, or kept for open work and the end of the run; give the run more"
        )
    made: list[Candidate] = []
    refused: list[Exception] = []

    async def run(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        origin = [dispatcher.pool[name] for name in parents]
        candidate = context.propose(artifact, parents=origin, operator="injected", attributes=attributes)
        try:
            emission = algorithm.inject(candidate)
            if emission.to not in dispatcher.graph.positions:
                raise EngineError(
                    f"algorithm {algorithm.name!r}: inject() names no stage of its graph: {emission.to!r}"
                )
        except Exception as error:  # raised again below, outside the flow, which would otherwise stay open for ever
            refused.append(error)
            raise Discard("not welcome") from error
        made.append(candidate)
        context.begin(Cost(proposals=1))
        yield emission

    async def send(stage: str, item: Item[object]) -> None:
        executor.restore(stage, [item], together=False)  # at once, however full its queue is: the caller asked for it

    with anyio.CancelScope(shield=True):  # a caller that is cancelled leaves no half-open flow
        ticket = dispatcher.open_flow(INJECTION, dispatcher.tickets.number(INJECTION), estimate)
        await dispatcher.work(Stage(INJECTION, run), [ticket], 0, send)
    if refused:
        raise refused[0]
    await dispatcher.services.settled()
    return made[0]


def _check_given(artifact: object, attributes: Mapping[str, JSON]) -> None:
    if not isinstance(artifact, Artifact):
        raise InputError(f"inject: the artifact is a {type(artifact).__name__}; make it an Artifact({{name: text}})")
    try:
        json.dumps(attributes)
    except (TypeError, ValueError) as error:
        raise InputError(f"inject: the attributes are no plain data: {error}; give what JSON can hold") from None
