"""What the engine requires of code that is not its own: checks of what an algorithm, its stages and archives, and an
allocation policy return, and the errors for what they may not return.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from flowevolve._util.errors import (
    BackendRefusedError,
    EngineError,
    FlowevolveError,
    InputError,
    StageError,
    described,
    one_line,
    policy_error,
)
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import logger
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.event_body import KINDS, EventBody, check_readable, read_body
from flowevolve.core.event_kinds import StageEvent
from flowevolve.core.fresh_score import FreshScore
from flowevolve.core.graph import AnyStage, Discard, Emit, Graph, NotYet
from flowevolve.core.item import Item
from flowevolve.core.logged_changes import LoggedChange, logged_change
from flowevolve.core.model import LLMError
from flowevolve.core.policies import Allocation, FlowBound, Resize, Workload
from flowevolve.core.pool import Candidate, Change, Pool

Mode = Literal["stream", "sync"]
INIT = "init"
"""The name of the work of `Algorithm.init`, as of a stage."""


def check_gathering(graph: Graph, width: int | FlowBound, mode: Mode) -> None:
    """Raises:
    InputError: if a stage gathers more items than there may be open flows. Where a policy sets that number, nothing
        is checked, because the policy is told how many items are gathered.
    """
    if not isinstance(width, int):
        return
    for stage in graph.stages:
        if stage.gather > width and stage.departs is None:
            setting = "max_in_flight" if mode == "stream" else "width"
            raise InputError(
                f"algorithm.{setting} is {width}, but has to be at least {stage.gather}, as stage {stage.name!r} "
                f"gathers {stage.gather} items at a time"
            )


def check_generator(work: object) -> None:
    """Raises: EngineError if a stage's function returned something other than an async generator object."""
    if isinstance(work, AsyncGenerator):
        return
    if isinstance(work, Coroutine):
        work.close()
        raise EngineError(
            "it is an async function without a yield, but has to be an async generator; if it hands nothing on, make a "
            "stage of it with flowevolve.stages.committing, or end it with `for emission in (): yield emission`"
        )
    raise EngineError(f"it returned a {type(work).__name__}; make it an async generator: async def, with a yield")


def check_emission(emit: object, pool: Pool) -> None:
    """Raises:
    EngineError: if a stage yielded no `Emit`, or one that derives from unknown candidates or has a version that the
        pool has not reached.
    """
    if not isinstance(emit, Emit):
        raise EngineError(f"it yielded a {type(emit).__name__}; yield flowevolve.Emit(payload)")
    unknown = [name for name in emit.derives or () if name not in pool]
    if unknown:
        raise EngineError(f"Emit: derives names {', '.join(unknown)}, but the pool has no such candidate")
    if emit.version is not None and not 0 <= emit.version <= pool.version:
        raise EngineError(
            f"Emit: version is {emit.version}, but the pool is at version {pool.version}; give the version that it had "
            "when the choice was made, such as context.pool.version"
        )


def check_target(target: str, graph: Graph) -> None:
    """Raises: EngineError if a stage emitted to a stage that the graph does not have."""
    if target not in graph.positions:
        raise EngineError(
            f"it emitted to {target!r}, which is no stage of the graph; there are {', '.join(graph.positions)}"
        )


def target_of(emit: Emit, stage: AnyStage, graph: Graph) -> str:
    """The stage that an emission of ``stage`` goes to: the one it names, or else the first that comes after.

    Raises:
        EngineError: as `check_target`.
    """
    target = next(iter(stage.to), "") if emit.to is None else emit.to
    check_target(target, graph)
    return target


def check_proposal(artifact: object, parents: Sequence[object]) -> None:
    """Raises: EngineError if ``artifact`` or ``parents`` have the wrong type, or their components differ."""
    if not isinstance(artifact, Artifact):
        raise EngineError(f"propose: the artifact is a {type(artifact).__name__}; make it an Artifact({{name: text}})")
    for parent in parents:
        if not isinstance(parent, Candidate):
            raise EngineError(f"propose: parents has {parent!r:.80}; give the candidates themselves, not their ids")
    of_parents = [parent.artifact for parent in parents if isinstance(parent, Candidate)]
    if of_parents and all(set(artifact) != set(each) for each in of_parents):
        raise EngineError(
            f"propose: the artifact has the components {sorted(artifact)}, but what it is made from has "
            f"{sorted(of_parents[0])}; parent.artifact.replace(name=text) keeps all others"
        )


def stage_event(kind: str, data: Mapping[str, JSON]) -> EventBody:
    """The event that a stage writes.

    Raises:
        EngineError: if events of this kind are the engine's own.
    """
    if kind in KINDS and not issubclass(KINDS[kind], StageEvent):
        raise EngineError(
            f"a stage can't write an event of the kind {kind!r}, as these are the engine's own; give another kind, "
            f"such as 'mine.{kind}'"
        )
    return read_body(kind, data)


def readable_change(change: Change) -> LoggedChange:
    """Convert a change to the form that the log stores.

    Raises:
        EngineError: if it could not be read back from the log.
    """
    logged = logged_change(change)
    check_readable(logged, f"commit: {type(change).__name__}")
    return logged


def estimate_of(algorithm: Algorithm, trigger: str | None = None) -> Cost:
    """What the algorithm expects a flow to spend.

    Raises:
        EngineError: if the algorithm returns anything but a cost.
    """
    estimate: object = algorithm.estimate(trigger)
    if isinstance(estimate, Cost):
        return estimate
    raise EngineError(f"estimate() returned {estimate!r:.80}; return a flowevolve.Cost, such as Cost(proposals=1)")


def gap_of(algorithm: Algorithm, item: Item[object], pool: Pool) -> int:
    """How many changes of the pool an item has missed, as the algorithm counts them.

    Raises:
        EngineError: if the algorithm returns anything but a whole number that is not below 0.
    """
    gap: object = algorithm.gap(item, pool)
    if isinstance(gap, int) and gap >= 0:
        return gap
    raise EngineError(f"gap() returned {gap!r:.80}; return a whole number, 0 or more")


def best_of(algorithm: Algorithm) -> Candidate | None:
    """The algorithm's best candidate, or None if it has none yet.

    Raises:
        EngineError: if the algorithm returns anything else.
    """
    best: object = algorithm.best()
    if best is None or isinstance(best, Candidate):
        return best
    raise EngineError(f"best() returned a {type(best).__name__}; return the best candidate itself, or None")


def frontier_of(algorithm: Algorithm) -> Sequence[Candidate]:
    """The algorithm's frontier.

    Raises:
        EngineError: if the algorithm returns anything but candidates.
    """
    frontier: object = algorithm.frontier()
    if not isinstance(frontier, Iterable):
        raise EngineError(f"frontier() returned a {type(frontier).__name__}; return a list of candidates")
    found = []
    for each in frontier:
        if not isinstance(each, Candidate):
            raise EngineError(f"frontier() has a {type(each).__name__} in it; return the candidates themselves")
        found.append(each)
    return found


def _fresh_score_of(algorithm: Algorithm) -> FreshScore | None:
    fresh: object = algorithm.fresh_score()
    if fresh is None or isinstance(fresh, FreshScore):
        return fresh
    raise EngineError(f"fresh_score() returned a {type(fresh).__name__}; return a FreshScore, or None")


def resizes_of(policy: Allocation, load: Workload) -> Sequence[Resize]:
    """What an allocation policy decides on.

    Raises:
        EngineError: if it raises an error, returns anything but a list of changes, or changes a stage that it may not.
    """
    try:
        resizes: object = policy.decide(load)
    except Exception as error:
        raise policy_error("allocation", policy, error) from error
    name = f"allocation policy {type(policy).__name__}"
    if not isinstance(resizes, Sequence):
        raise EngineError(f"{name} returned {resizes!r:.80}; return a list of Resize")
    settable = [stage.name for stage in load.stages]
    found = []
    for each in resizes:
        if not isinstance(each, Resize):
            raise EngineError(f"{name} returned {each!r:.80} in its list; return a list of Resize")
        if each.stage not in settable:
            raise EngineError(
                f"{name} changes the workers of {each.stage!r}; it may change those of {', '.join(settable)}"
            )
        found.append(each)
    return found


class Found(NamedTuple):
    """What an algorithm names at the end of a run: the best candidate, its score on fresh examples, the frontier."""

    best: Candidate | None = None
    fresh: FreshScore | None = None
    frontier: Sequence[Candidate] = ()


def found_by(algorithm: Algorithm, failure: FlowevolveError | None) -> Found:
    """What the algorithm has found at the end of a run.

    If it can't say so after the run has failed, that is nothing: its error must not hide that failure.

    Raises:
        EngineError: if the algorithm can't say so, and the run has not failed.
    """
    try:
        best = best_of(algorithm)
        return Found(best, None if best is None else _fresh_score_of(algorithm), frontier_of(algorithm))
    except Exception as error:
        if failure is None:
            raise algorithm_error(algorithm, error) from error
        logger().warning("algorithm.no_best", algorithm=algorithm.name, why=described(error))
        return Found()


def warn_of_candidates(algorithm: Algorithm, confirmed: Sequence[Candidate], best: Candidate | None) -> None:
    """Log what looks like a mistake of the algorithm in the candidates that a run ended with."""
    if best is None and confirmed:
        why = "best() found none of the pool's candidates; are all archives of the algorithm in self.archives?"
        logger().warning("algorithm.no_best", algorithm=algorithm.name, candidates=len(confirmed), why=why)
    if unscored := [each.id for each in confirmed if not each.scores]:
        why = "it was confirmed without scores and counts as 0; commit candidate.scored({example_id: score})"
        logger().warning("algorithm.unscored", candidate=unscored[0], candidates=len(unscored), why=why)


def init_error(algorithm: Algorithm, raised: Discard | NotYet | LLMError) -> FlowevolveError:
    """The error with which a run fails after init ended with something that only ends the work on an item elsewhere:
    a run can't do without the rest of init.
    """
    if isinstance(raised, LLMError):
        return BackendRefusedError(
            f"algorithm {algorithm.name!r}: init() did not get a reply that it needs: {one_line(raised)}"
        )
    failure = EngineError(f"{described(raised)}: only a stage may raise this; raise an error that says what is wrong")
    failure.__cause__ = raised
    return failure


def stage_error(algorithm: Algorithm, stage: str, item: Item[object], error: Exception) -> StageError:
    """The error with which a run fails after the code of a stage raised ``error``, which stages must not do."""
    failure = StageError(f"stage {stage!r} of algorithm {algorithm.name!r}, item {item.id}: {described(error)}")
    failure.__cause__ = error
    return failure


def algorithm_error(algorithm: Algorithm, error: Exception) -> EngineError:
    """The error with which a run fails after other code of an algorithm raised ``error``."""
    failure = EngineError(f"algorithm {algorithm.name!r}: {described(error)}")
    failure.__cause__ = error
    return failure
