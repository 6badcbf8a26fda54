"""What can happen in a run: one frozen dataclass for each kind of event, and `OwnEvent` for the kinds of algorithms.

The JSON form of an event is its fields in their order; a field with a default is left out where it has that. Reading
checks the fields against their types. docs/reference/events.md says when each kind is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, GetPydanticSchema, TypeAdapter, ValidationError
from pydantic_core import core_schema

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact, ArtifactKind
from flowevolve.core.budget import Cost
from flowevolve.core.item_ids import ItemId
from flowevolve.core.pool import Add, Annotate, Candidate, Change, Move, Note

Outcome = Literal["consumed", "discarded"]
"""How the work on an item ended."""
Text = Annotated[str, GetPydanticSchema(lambda source, handler: core_schema.is_instance_schema(str))]
"""A text of whoever wrote it, which may hold what is no Unicode."""
Number = int | float
"""Read as it was written: a whole number stays whole."""
Table = Annotated[Mapping[str, JSON], GetPydanticSchema(lambda source, handler: core_schema.dict_schema())]
"""Plain data of whoever wrote it, by name."""

_ATOMS = frozenset({str, int, float, bool, NoneType, ItemId})


@dataclass(frozen=True)
class Plain:
    """A base of frozen dataclasses that are plain data."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def to_json(self) -> dict[str, JSON]:
        """The fields by name, as JSON can hold them."""
        made = vars(self).copy()
        compound, defaults = _LAYOUTS.get(type(self)) or _layout(type(self))
        for name in compound:
            made[name] = _plain(made[name])
        for name, default in defaults:
            if made[name] == default:
                del made[name]
        return made


def _plain(value: object) -> JSON:
    if isinstance(value, tuple):
        return [each if type(each) is str else _plain(each) for each in value]
    if isinstance(value, Plain | Cost):
        return value.to_json()
    return dict(value) if isinstance(value, Mapping) else None


def _layout(plain: type[Plain]) -> _Layout:
    hints = get_type_hints(plain)
    compound = [each.name for each in fields(plain) if not _is_atom(hints[each.name])]
    defaults = [(each.name, each.default) for each in fields(plain) if each.default is not MISSING]
    return _LAYOUTS.setdefault(plain, (compound, defaults))


_Layout = tuple[Sequence[str], Sequence[tuple[str, object]]]
"""The names of the fields that hold more than one value, and the defaults of the fields that have one."""
_LAYOUTS: dict[type[Plain], _Layout] = {}


def _is_atom(hint: object) -> bool:
    origin = get_origin(hint)
    return hint in _ATOMS or origin is Literal or (origin in (Union, UnionType) and all(map(_is_atom, get_args(hint))))


class EventBody(Plain):
    """What an event says, apart from when. Kinds of events are subclasses that give their ``kind``."""

    kind: str

    def __init_subclass__(cls, kind: str = "") -> None:
        if kind:
            cls.kind = kind
            KINDS[kind] = cls


KINDS: dict[str, type[EventBody]] = {}
"""The classes of events by kind."""


def read_body(kind: str, data: Mapping[str, JSON]) -> EventBody:
    """What an event says of which the JSON form is given.

    Raises:
        ValueError: if it does not have the fields of its kind.
    """
    if kind not in KINDS:
        return OwnEvent(kind, data)
    try:
        return _reader(kind).validate_python(data)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise ValueError(f"{kind}: {'; '.join(wrong)}") from error


@cache
def _reader(kind: str) -> TypeAdapter[EventBody]:
    return TypeAdapter(KINDS[kind])


@dataclass(frozen=True)
class OwnEvent(EventBody):
    """An event of a kind that an algorithm, or one of its stages, has for itself."""

    kind: str
    data: Mapping[str, JSON]

    @property
    def item(self) -> ItemId:
        """The item it is about; empty if it is about none."""
        return ItemId(str(self.data.get("item", "")))

    @property
    def key(self) -> str | None:
        """What tells it from other events of its kind and item, where that is needed."""
        key = self.data.get("key")
        return None if key is None else str(key)

    def to_json(self) -> dict[str, JSON]:
        return dict(self.data)


# The run


@dataclass(frozen=True)
class RunStarted(EventBody, kind="run.start"):
    """What the run is of. Whoever uses the engine by itself may leave out what it says of the task."""

    algorithm: str = ""
    stages: tuple[str, ...] = ()
    task: str | None = None
    examples: int | None = None
    digest: str | None = None
    given: tuple[str, ...] | None = None


@dataclass(frozen=True)
class RunResumed(EventBody, kind="run.resumed"):
    version: int
    best: str | None
    best_score: Number | None
    proposals: int
    accepted: int
    flows: int
    items: int
    replies: int


@dataclass(frozen=True)
class RunStopping(EventBody, kind="run.stopping"):
    reason: Text


@dataclass(frozen=True)
class RunFailed(EventBody, kind="run.failed"):
    error: Text


@dataclass(frozen=True)
class DrainEnded(EventBody, kind="run.drain_ended"):
    open_flows: int


@dataclass(frozen=True)
class RunPaused(EventBody, kind="run.paused"):
    items: bool


@dataclass(frozen=True)
class RunUnpaused(EventBody, kind="run.unpaused"):
    """The pause is over."""


@dataclass(frozen=True)
class RunStopped(EventBody, kind="run.stop"):
    reason: Text
    held: int


@dataclass(frozen=True)
class AlgorithmState(EventBody, kind="algorithm.state"):
    state: Table


@dataclass(frozen=True)
class PhaseEnded(EventBody, kind="phase.ended"):
    phase: str
    cost: Cost


@dataclass(frozen=True)
class StepEnded(EventBody, kind="step.ended"):
    flows: int
    seconds: Number


@dataclass(frozen=True)
class WidthChanged(EventBody, kind="width.changed"):
    width: int
    before: int


@dataclass(frozen=True)
class AllocationChanged(EventBody, kind="allocation.changed"):
    stage: str
    by: int
    workers: int
    reason: Text


@dataclass(frozen=True)
class TriggerFired(EventBody, kind="trigger.fired"):
    trigger: str
    version: int


# Flows and items


@dataclass(frozen=True)
class FlowOpened(EventBody, kind="flow.open"):
    flow: int
    stage: str
    version: int
    trigger: str | None
    ordinal: int
    phase: bool


@dataclass(frozen=True)
class FlowClosed(EventBody, kind="flow.close"):
    flow: int


@dataclass(frozen=True)
class ItemSent(EventBody, kind="item.sent"):
    item: ItemId
    source: str
    stage: str
    payload: str
    version: int
    derives: tuple[str, ...]
    repairs: int


@dataclass(frozen=True)
class ItemTaken(EventBody, kind="item.taken"):
    item: ItemId
    stage: str
    gap: int
    judged: Literal["continue", "discard", "repair"] | None


@dataclass(frozen=True)
class ItemsGathered(EventBody, kind="items.gathered"):
    stage: str
    items: tuple[ItemId, ...]


@dataclass(frozen=True)
class ItemDone(EventBody, kind="item.done"):
    item: ItemId
    stage: str
    outcome: Outcome
    reason: Text
    seconds: Number
    cost: Cost


@dataclass(frozen=True)
class ItemHeld(EventBody, kind="item.held"):
    item: ItemId
    stage: str


# Candidates and the pool


@dataclass(frozen=True)
class CandidateProposed(EventBody, kind="candidate.proposed"):
    item: ItemId
    candidate: str
    operator: str
    parents: tuple[str, ...]
    born: int
    artifact: str
    kind_of_artifact: ArtifactKind
    components: Mapping[Text, Text]
    attributes: Table
    adopted: bool = False
    """Whether it comes from another run."""

    @classmethod
    def of(cls, candidate: Candidate, item: ItemId, *, adopted: bool = False) -> CandidateProposed:
        """The event of a proposal that is made in the work on an item."""
        artifact = candidate.artifact
        return cls(
            item,
            candidate.id,
            candidate.operator,
            candidate.parents,
            candidate.born,
            artifact.id,
            artifact.kind,
            artifact.components,
            candidate.attributes,
            adopted,
        )

    def proposal(self) -> Candidate:
        """The candidate as it was proposed."""
        artifact = Artifact(self.components, self.kind_of_artifact)
        return Candidate(self.candidate, artifact, self.parents, self.operator, self.born, attributes=self.attributes)


@dataclass(frozen=True)
class CandidateRejected(EventBody, kind="candidate.rejected"):
    candidate: str
    item: ItemId
    reason: Text


@dataclass(frozen=True)
class CandidateEnding(EventBody, kind="candidate.ending"):
    candidate: str
    reason: Text


@dataclass(frozen=True)
class LoggedAdd(Plain):
    """`flowevolve.core.pool.Add`: together with the event of the proposal, enough to apply it again."""

    add: str
    pool: str
    status: Literal["speculative", "confirmed", "rejected"]
    operator: str
    scores: Mapping[Text, Number]
    attributes: Table


@dataclass(frozen=True)
class LoggedMove(Plain):
    """`flowevolve.core.pool.Move`."""

    move: str
    pool: str
    status: Literal["confirmed", "revoked"]
    scores: Mapping[Text, Number] | None


@dataclass(frozen=True)
class LoggedAnnotate(Plain):
    """`flowevolve.core.pool.Annotate`."""

    annotate: str
    pool: str
    attributes: Table
    scores: Mapping[Text, Number] | None


@dataclass(frozen=True)
class LoggedNote(Plain):
    """`flowevolve.core.pool.Note`."""

    note: str
    pool: str
    data: Table


LoggedChange = LoggedAdd | LoggedMove | LoggedAnnotate | LoggedNote


@dataclass(frozen=True)
class PoolCommitted(EventBody, kind="pool.commit"):
    version: int
    item: ItemId
    stage: str | None
    changes: tuple[LoggedChange, ...]
    best: str | None
    best_score: Number | None

    def read_changes(self, lookup: Callable[[str], Candidate]) -> list[Change]:
        """The changes themselves; ``lookup`` knows the candidates that were proposed."""
        return [_change(logged, lookup) for logged in self.changes]


def logged_change(change: Change) -> LoggedChange:
    """A change of the pool as the event log has it."""
    match change:
        case Add(candidate, status, pool):
            return LoggedAdd(candidate.id, pool, status, candidate.operator, candidate.scores, candidate.attributes)
        case Move(name, moved, scores, pool):
            return LoggedMove(name, pool, moved, scores)
        case Annotate(name, attributes, scores, pool):
            return LoggedAnnotate(name, pool, attributes, scores)
        case Note(kind, data, pool):
            return LoggedNote(kind, pool, data)


def _change(logged: LoggedChange, lookup: Callable[[str], Candidate]) -> Change:
    match logged:
        case LoggedAdd(name, pool, status, _, scores, attributes):
            return Add(replace(lookup(name), attributes=attributes).scored(scores), status, pool)
        case LoggedMove(name, pool, moved, new_scores):
            return Move(name, moved, new_scores, pool)
        case LoggedAnnotate(name, pool, attributes, new_scores):
            return Annotate(name, attributes, new_scores, pool)
        case LoggedNote(kind, pool, data):
            return Note(kind, data, pool)


# What the stages that ship tell the engine and whoever watches a run


@dataclass(frozen=True)
class StageEvent(EventBody):
    """An event of a stage at work on an item."""

    stage: str
    item: ItemId
    key: ClassVar[str | None] = None
    """As an `OwnEvent` has one."""


@dataclass(frozen=True)
class RolloutsSaved(StageEvent, kind="rollouts.saved"):
    rollouts: int


@dataclass(frozen=True)
class EvaluationStopped(StageEvent, kind="evaluation.stopped"):
    candidate: str
    reason: Text
    finished: int
    saved: int


@dataclass(frozen=True)
class RepairJudged(StageEvent, kind="repair.judged"):
    candidate: str
    parent: str
    head: str
    gap: int
    verdict: str
    reason: Text
    patch: Mapping[Text, Text]


@dataclass(frozen=True)
class RepairUnparsable(StageEvent, kind="repair.unparsable"):
    candidate: str
    gap: int
    error: Text


# LLM calls and the servers that answer them


@dataclass(frozen=True)
class AdmissionChanged(EventBody, kind="admission.changed"):
    limit: int
    before: int
    reason: Text
    in_flight: int
    waiting: int
    server_running: Number | None
    server_waiting: Number | None


@dataclass(frozen=True)
class EndpointEjected(EventBody, kind="endpoint.ejected"):
    endpoint: str
    reason: Text
    failures: int


@dataclass(frozen=True)
class EndpointReturned(EventBody, kind="endpoint.returned"):
    endpoint: str
    seconds: Number


@dataclass(frozen=True)
class LimitsRefused(EventBody, kind="limits.refused"):
    backend: str
    model: str
    pause_seconds: Number
    requests_per_minute: Number | None


@dataclass(frozen=True)
class UsageEstimated(EventBody, kind="usage.estimated"):
    backend: str
    model: str


@dataclass(frozen=True)
class ServerLooked(EventBody, kind="server.load"):
    running: Number
    waiting: Number
    cache_usage: Number | None
    prefix_hit_rate: Number | None


@dataclass(frozen=True)
class ServerEvent(EventBody):
    """What became of a server that the run started itself."""

    url: str
    detail: Text


@dataclass(frozen=True)
class ServerStarting(ServerEvent, kind="server.starting"):
    """It is being started."""


@dataclass(frozen=True)
class ServerHealthy(ServerEvent, kind="server.healthy"):
    """It answers."""


@dataclass(frozen=True)
class ServerDied(ServerEvent, kind="server.died"):
    """Its process ended, or it hung; it is started again."""


@dataclass(frozen=True)
class ServerGaveUp(ServerEvent, kind="server.gave_up"):
    """It is not started again."""
