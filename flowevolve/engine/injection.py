"""Candidates from outside, which enter a run while it goes on and are then treated like any other."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

import anyio

from flowevolve._util.errors import EngineError, InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.algorithm import Algorithm, wrong_components
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost, Dimension, OverBudgetError
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard, Emit, Stage
from flowevolve.core.item import INJECTION, Item
from flowevolve.core.pool import Candidate, Pool
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.executor import Executor

OPERATOR = "injected"
UNWELCOME = "not welcome"
"""The reason with which a refused candidate is discarded."""


async def inject(
    dispatcher: Dispatcher,
    executor: Executor,
    algorithm: Algorithm,
    artifact: Artifact,
    parents: Sequence[str],
    attributes: Mapping[str, JSON],
    before: Callable[[], None] | None = None,
) -> Candidate:
    """Propose an artifact and send it to the stage that the algorithm names, in a flow of its own, once init is over.

    ``before`` is called as soon as only the algorithm could still refuse the candidate.

    Raises:
        InputError: if the run accepts nothing more, its budget has no room, the algorithm accepts no candidates from
            outside, a parent is unknown, ``artifact`` is not an Artifact or has other components than the candidates of
            the pool, or the attributes are not plain data.
        EngineError: if the algorithm's ``inject`` names no stage. An exception of its own is raised as it is.
    """
    _check_given(artifact, parents, attributes)
    estimate = await _admitted(dispatcher, algorithm, artifact, parents)
    if before is not None:
        before()
    flow = _Flow(dispatcher, algorithm, artifact, parents, attributes)

    async def send(stage: str, item: Item[object]) -> None:
        executor.restore(stage, [item], together=False)  # at once, however full the queue is: the caller asked for it

    with anyio.CancelScope(shield=True):  # a caller that is cancelled leaves no half-open flow
        ticket = dispatcher.open_flow(INJECTION, dispatcher.tickets.number(INJECTION), estimate)
        await dispatcher.work(Stage(INJECTION, flow.run), [ticket], 0, send)
    candidate = flow.outcome()
    await dispatcher.services.settled()
    return candidate


async def _admitted(dispatcher: Dispatcher, algorithm: Algorithm, artifact: Artifact, parents: Sequence[str]) -> Cost:
    """Wait until init is over, and check that the run accepts this artifact with these parents.

    Returns the budget to set aside for it.

    Raises:
        InputError: if the run does not accept it.
    """
    while not dispatcher.tickets.is_open and dispatcher.stopping.reason is None:
        await dispatcher.changed.wait()
    reason = dispatcher.stopping.reason
    if reason is not None and not (dispatcher.tickets.is_open and dispatcher.may_open_flows):
        raise InputError(f"inject: the run takes nothing more ({reason.said}); resume it, or start a new one")
    _check_components(dispatcher.pool, artifact)
    unknown = [name for name in parents if name not in dispatcher.pool or not dispatcher.pool.keeps(name)]
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise InputError(f"inject: parents has {names}, but the pool has no such candidate; give ids of candidates")
    estimate = algorithm.estimate(INJECTION)
    refusal = await dispatcher.refusal(estimate)
    if refusal is not None:
        raise _no_room(refusal)
    return estimate


def _check_components(pool: Pool, artifact: Artifact) -> None:
    """Raises: InputError if no candidate of the pool has the same components as the artifact."""
    known = {frozenset(each.artifact) for each in pool.snapshot().candidates(vetoed=True)}
    if known and frozenset(artifact) not in known:
        raise InputError(wrong_components(artifact, next(iter(known))))


class _Flow:
    """The flow of a candidate from outside, up to the stage that the algorithm names, and its outcome."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        algorithm: Algorithm,
        artifact: Artifact,
        parents: Sequence[str],
        attributes: Mapping[str, JSON],
    ) -> None:
        self._dispatcher = dispatcher
        self._algorithm = algorithm
        self._artifact = artifact
        self._parents = parents
        self._attributes = attributes
        self._outcome: Candidate | Exception | None = None

    async def run(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        parents = [self._dispatcher.pool[name] for name in self._parents]
        candidate = context.propose(self._artifact, parents=parents, operator=OPERATOR, attributes=self._attributes)
        try:
            emission = self._algorithm.inject(candidate)
            if emission.to not in self._dispatcher.graph.positions:
                raise EngineError(
                    f"algorithm {self._algorithm.name!r}: inject() names no stage of its graph: {emission.to!r}"
                )
            context.begin(Cost(proposals=1))
        except Exception as error:  # `outcome` raises it, outside the flow, which would otherwise stay open for ever
            # If the algorithm's estimate was too low, the budget may have no room; other open work goes on.
            self._outcome = _no_room(error.dimension) if isinstance(error, OverBudgetError) else error
            raise Discard(UNWELCOME) from error
        self._outcome = candidate
        yield emission

    def outcome(self) -> Candidate:
        """The candidate, once the flow has been run; raises the error with which it was refused, if it was."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome


def _no_room(dimension: Dimension) -> InputError:
    return InputError(
        f"inject: budget.{dimension} is spent, or kept for open work and the end of the run; give the run more"
    )


def _check_given(artifact: object, parents: object, attributes: object) -> None:
    if not isinstance(artifact, Artifact):
        raise InputError(f"inject: the artifact is a {type(artifact).__name__}; make it an Artifact({{name: text}})")
    if isinstance(parents, str) or not isinstance(parents, Sequence):
        raise InputError(f"inject: parents is {parents!r:.80}; give a list of ids of candidates")
    for parent in parents:
        if not isinstance(parent, str):
            raise InputError(f"inject: parents has a {type(parent).__name__}; give ids of candidates")
    if not isinstance(attributes, Mapping):
        raise InputError(f"inject: attributes is a {type(attributes).__name__}; give a dict of plain data")
    try:
        json.dumps(attributes)
    except (TypeError, ValueError) as error:
        raise InputError(f"inject: the attributes are no plain data: {error}; give what JSON can hold") from None
