"""Candidates from outside, which enter a run while it goes on and are then treated like any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from flowevolve._util.errors import EngineError, FlowevolveError, InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import WorkedOn
from flowevolve.core.algorithm import Algorithm, wrong_components
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost, Dimension, OverBudgetError
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import INJECTION
from flowevolve.core.pool import Candidate, Pool
from flowevolve.engine.contract import algorithm_error, check_emission, check_target, estimate_of
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
            outside, a parent is unknown, ``artifact`` is not an Artifact or has other components than the parents or
            the candidates of the pool, or the attributes are not plain data.
        EngineError: if what the algorithm's ``inject`` returns can't be sent. An exception of its own is raised as it
            is. The run ends only if other code of the algorithm fails.
    """
    _check_given(artifact, parents, attributes)
    estimate = await _admitted(dispatcher, algorithm, artifact, parents)
    if before is not None:
        before()
    try:
        outcome = _enter(dispatcher, executor, algorithm, estimate, artifact, parents, attributes)
    except Exception as error:
        dispatcher.stopping.fail(algorithm_error(algorithm, error))
        raise
    await dispatcher.services.settled()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


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
    unknown = [name for name in parents if name not in dispatcher.pool or not dispatcher.pool.keeps(name)]
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise InputError(f"inject: parents has {names}, but the pool has no such candidate; give ids of candidates")
    _check_components(dispatcher.pool, artifact, parents)
    estimate = estimate_of(algorithm, INJECTION)
    refusal = await dispatcher.refusal(estimate)
    if refusal is not None:
        raise _no_room(refusal)
    return estimate


def _check_components(pool: Pool, artifact: Artifact, parents: Sequence[str]) -> None:
    """Raises:
    InputError: if none of the parents or, without parents, no candidate of the pool has the artifact's components.
    """
    alike = [pool[name] for name in parents] or pool.snapshot().candidates(vetoed=True)
    known = {frozenset(each.artifact) for each in alike}
    if known and frozenset(artifact) not in known:
        raise InputError(wrong_components(artifact, next(iter(known))))


def _enter(
    dispatcher: Dispatcher,
    executor: Executor,
    algorithm: Algorithm,
    estimate: Cost,
    artifact: Artifact,
    parents: Sequence[str],
    attributes: Mapping[str, JSON],
) -> Candidate | Exception:
    """Propose the artifact in a new flow and send it on; returns the candidate, or the error if it is refused.

    Nothing is awaited here, so a caller that is cancelled leaves no half-open flow.
    """
    ticket = dispatcher.open_flow(INJECTION, dispatcher.tickets.number(INJECTION), estimate)
    context = StageContext(dispatcher.services, INJECTION, ticket.id, priority=0)
    origin = [dispatcher.pool[name] for name in parents]
    with WorkedOn(INJECTION, ticket.id):
        try:
            candidate = context.propose(artifact, parents=origin, operator=OPERATOR, attributes=attributes)
        except FlowevolveError as error:  # any other is the algorithm's, as it takes the proposal in, and ends the run
            dispatcher.end_item(INJECTION, ticket, "discarded", UNWELCOME)
            return error
        try:
            emission = algorithm.inject(candidate)
            target = _checked_target(dispatcher, algorithm, emission)
            context.begin(Cost(proposals=1))
        except Exception as error:  # noqa: BLE001 - the caller gets it, and the run goes on without the candidate
            dispatcher.end_item(INJECTION, ticket, "discarded", UNWELCOME)
            # If the algorithm's estimate was too low, the budget may have no room; other open work goes on.
            return _no_room(error.dimension) if isinstance(error, OverBudgetError) else error
    # It is sent at once, however full the stage's queue is, because the caller asked for it.
    executor.put_back(target, dispatcher.emitted(INJECTION, target, ticket, emission, 0))
    dispatcher.end_item(INJECTION, ticket, "consumed", "")
    return candidate


def _checked_target(dispatcher: Dispatcher, algorithm: Algorithm, emission: Emit) -> str:
    """The stage to which the algorithm's ``inject`` sends a candidate.

    Raises:
        EngineError: if the graph does not have that stage, or this is an emission that no stage may make.
    """
    try:
        check_emission(emission, dispatcher.pool)
        target = emission.to or ""
        check_target(target, dispatcher.graph)
    except EngineError as error:
        raise EngineError(f"inject() of algorithm {algorithm.name!r}: {error}") from error
    return target


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
