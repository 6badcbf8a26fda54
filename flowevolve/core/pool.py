"""The pool: the shared, versioned set of candidates, and the append-only log it is made of.

The version grows by one with every commit and never goes back. A commit applies all its changes or none. A candidate's
status moves only proposed → {speculative, confirmed, rejected} and speculative → {confirmed, revoked}. Independently of
its status, a candidate can be vetoed at any time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan
from types import MappingProxyType
from typing import Literal

from flowevolve._util.errors import EngineError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.payload_kinds import payload

Status = Literal["proposed", "speculative", "confirmed", "rejected", "revoked"]
DEFAULT_POOL = "main"
SEED, MIGRATE = "seed", "migrate"
"""The operators of candidates that a run begins with, and of copies that go to another island."""
REJECTED_KEPT = 256
"""The pool keeps the texts of this many of the most recently rejected proposals, so that they can still be evaluated
later.
"""

_MOVES: Mapping[Status, frozenset[Status]] = {
    "proposed": frozenset({"speculative", "confirmed", "rejected"}),
    "speculative": frozenset({"confirmed", "revoked"}),
    "confirmed": frozenset(),
    "rejected": frozenset(),
    "revoked": frozenset(),
}


@payload
@dataclass(frozen=True, slots=True)
class Candidate:
    """An artifact and where it came from.

    ``born`` is the pool version of the item it was made from. ``scores`` maps example ids to scores in the order they
    were evaluated, empty until evaluated; ``attributes`` holds what an algorithm derives (descriptor, abstract, …).
    """

    id: str
    artifact: Artifact
    parents: tuple[str, ...] = ()
    operator: str = SEED
    born: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    attributes: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def mean_score(self) -> float:
        """The mean over ``scores``; 0 when there are none."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else 0.0

    def scored(self, scores: Mapping[str, float]) -> Candidate:
        """Raises: EngineError if a score is NaN or infinite; only minus infinity is allowed, for a failure."""
        _check_scores(self.id, scores)
        return replace(self, scores=MappingProxyType(dict(scores)))


def _check_scores(candidate_id: str, scores: Mapping[str, float]) -> None:
    """Raises: EngineError if nothing can be ranked against one of the scores, because it is NaN or infinite."""
    for example, score in scores.items():
        if isnan(score) or score == inf:
            raise EngineError(
                f"candidate {candidate_id!r}: its score on example {example!r} is {score}, but scores have to be "
                "finite numbers"
            )


@payload
@dataclass(frozen=True, slots=True)
class Add:
    """A proposed candidate enters a pool (as ``rejected`` where failures are part of the archive)."""

    candidate: Candidate
    status: Literal["speculative", "confirmed", "rejected"] = "confirmed"
    pool: str = DEFAULT_POOL


@payload
@dataclass(frozen=True, slots=True)
class Move:
    """A speculative candidate is confirmed or revoked; ``scores``, when given, replace its partial ones."""

    candidate_id: str
    status: Literal["confirmed", "revoked"]
    scores: Mapping[str, float] | None = None
    pool: str = DEFAULT_POOL


@payload
@dataclass(frozen=True, slots=True)
class Annotate:
    """Attributes of a candidate are set; ``scores``, when given, replace its scores (an evaluator was swapped)."""

    candidate_id: str
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    scores: Mapping[str, float] | None = None
    pool: str = DEFAULT_POOL


@payload
@dataclass(frozen=True, slots=True)
class Note:
    """Anything else that an archive understands: a memory entry, a playbook operation, a fitted model."""

    kind: str
    data: Mapping[str, JSON]
    pool: str = DEFAULT_POOL


@payload
@dataclass(frozen=True, slots=True)
class Vetoed:
    """Somebody has taken a candidate out of the pool or, with ``stands`` False, has taken that veto back.

    The candidate keeps its status, and its descendants stay. While it is vetoed, it is never a parent and never the
    best.
    """

    candidate_id: str
    stands: bool = True
    pool: str = DEFAULT_POOL


Change = Add | Move | Annotate | Note | Vetoed


@dataclass(frozen=True, slots=True)
class Update:
    """One commit: the version it created, its changes, the item that caused it, and the seconds since the run began."""

    version: int
    changes: tuple[Change, ...]
    cause: str
    time: float

    def added(self) -> Iterator[Candidate]:
        """The candidates that became selectable with this update."""
        for change in self.changes:
            if isinstance(change, Add) and change.status != "rejected":
                yield change.candidate


@dataclass(slots=True)
class _Record:
    """What the pool keeps of a candidate: its current form and when its status changed, as parallel lists.

    A proposal rejected before any commit keeps only its status: long runs reject far more than they keep.
    """

    candidate: Candidate | None
    parents: tuple[str, ...]
    pool: str | None
    versions: list[int]
    statuses: list[Status]


class Pool:
    """All named pools of one run, over one log. Anybody may read it; only the update stage commits."""

    def __init__(self, names: Sequence[str] = (DEFAULT_POOL,)) -> None:
        self._names = frozenset(names)
        self._records: dict[str, _Record] = {}
        self._log: list[Update] = []
        self._vetoed: set[str] = set()
        self._rejected: dict[str, Candidate] = {}

    @property
    def version(self) -> int:
        return len(self._log)

    def __contains__(self, candidate_id: str) -> bool:
        return candidate_id in self._records

    def __getitem__(self, candidate_id: str) -> Candidate:
        """The candidate as it is now.

        Raises:
            KeyError: if it was never registered, or was rejected before any commit (only its status is kept).
        """
        candidate = self._records[candidate_id].candidate
        if candidate is None:
            raise KeyError(candidate_id)
        return candidate

    def keeps(self, candidate_id: str) -> bool:
        """Whether the pool still has the candidate itself, and not only its status."""
        return self._records[candidate_id].candidate is not None

    def status(self, candidate_id: str) -> Status:
        return self._records[candidate_id].statuses[-1]

    def vetoed(self, candidate_id: str) -> bool:
        """Whether somebody has taken the candidate out of the pool."""
        return candidate_id in self._vetoed

    def rejected(self, candidate_id: str) -> Candidate | None:
        """A proposal that never entered a pool; None unless it is among the last `REJECTED_KEPT` that were rejected."""
        return self._rejected.get(candidate_id)

    def pool_of(self, candidate_id: str) -> str | None:
        """The name of the pool that a candidate is in; None if it has not entered one yet, or never did."""
        return self._record(candidate_id).pool

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The pool as of ``version`` (by default now). Costs nothing to make."""
        return Snapshot(self, self.version if version is None else version)

    def updates_between(self, after: int, upto: int | None = None) -> Sequence[Update]:
        """The updates with ``after`` < version <= ``upto`` (by default all since ``after``), oldest first."""
        return self._log[after : self.version if upto is None else upto]

    def descends_from_revoked(self, candidate_ids: Sequence[str]) -> bool:
        """Whether one of the candidates, or any of their ancestors, was revoked.

        The search ends at confirmed candidates: they passed a full validation of their own, so it does not matter what
        they were made from.
        """
        unseen, seen = list(candidate_ids), set(candidate_ids)
        while unseen:
            record = self._records[unseen.pop()]
            if record.statuses[-1] == "revoked":
                return True
            if record.statuses[-1] != "confirmed":
                unseen.extend(parent for parent in record.parents if parent not in seen)
                seen.update(record.parents)
        return False

    def register(self, candidate: Candidate) -> None:
        """Enter a new proposal (status ``proposed``). The version stays, because nothing selectable has changed.

        Raises:
            EngineError: if the id is taken or a parent is unknown.
        """
        if candidate.id in self._records:
            raise EngineError(f"candidate {candidate.id} is registered already")
        for parent in candidate.parents:
            if parent not in self._records:
                raise EngineError(f"candidate {candidate.id} names an unknown parent {parent}")
        self._records[candidate.id] = _Record(candidate, candidate.parents, None, [self.version], ["proposed"])

    def reject(self, candidate_id: str) -> None:
        """Reject a proposal that has not entered any pool. The version stays.

        Raises:
            EngineError: if it is not ``proposed``.
        """
        record = self._record(candidate_id)
        self._check_move(candidate_id, record, "rejected")
        if record.candidate is not None:
            self._rejected[candidate_id] = record.candidate
        if len(self._rejected) > REJECTED_KEPT:
            del self._rejected[next(iter(self._rejected))]
        record.candidate = None
        self._set_status(record, "rejected", self.version)

    def commit(self, changes: Sequence[Change], *, cause: str, time: float) -> Update:
        """Apply all changes as one update, or none.

        Raises:
            EngineError: if there is no change, a pool or candidate is unknown, a candidate is in another pool than the
                change says, a status may not move that way, or a score is NaN or infinite.
        """
        if not changes:
            raise EngineError(f"item {cause}: a commit needs at least one change")
        self._check(changes)
        update = Update(self.version + 1, tuple(changes), cause, time)
        self._log.append(update)
        for change in changes:
            self._apply(change, update.version)
        return update

    def _check(self, changes: Sequence[Change]) -> None:
        moved: set[str] = set()
        for change in changes:
            if change.pool not in self._names:
                raise EngineError(f"no pool named {change.pool!r}; this run has {sorted(self._names)}")
            match change:
                case Add(candidate=candidate, status=status):
                    self._check_move(candidate.id, self._record(candidate.id), status)
                    self._check_once(candidate.id, moved)
                    _check_scores(candidate.id, candidate.scores)
                case Move(candidate_id=candidate_id, status=move_to, pool=pool, scores=scores):
                    record = self._record(candidate_id)
                    _check_scores(candidate_id, scores or {})
                    self._check_move(candidate_id, record, move_to)
                    self._check_pool(candidate_id, record, pool)
                    self._check_once(candidate_id, moved)
                case Annotate(candidate_id=candidate_id, pool=pool, scores=scores):
                    self._check_changeable(candidate_id, pool)
                    _check_scores(candidate_id, scores or {})
                case Vetoed(candidate_id=candidate_id, pool=pool):
                    self._check_changeable(candidate_id, pool)
                case Note():
                    pass

    def _check_changeable(self, candidate_id: str, pool: str) -> None:
        record = self._record(candidate_id)
        if record.candidate is None:
            raise EngineError(f"candidate {candidate_id} was rejected and can't be changed")
        self._check_pool(candidate_id, record, pool)

    @staticmethod
    def _check_pool(candidate_id: str, record: _Record, pool: str) -> None:
        if record.pool not in (None, pool):
            raise EngineError(f"candidate {candidate_id} is in pool {record.pool!r}, not in {pool!r}")

    @staticmethod
    def _check_once(candidate_id: str, moved: set[str]) -> None:
        if candidate_id in moved:
            raise EngineError(f"candidate {candidate_id} would change its status twice in one commit")
        moved.add(candidate_id)

    @staticmethod
    def _check_move(candidate_id: str, record: _Record, to: Status) -> None:
        now = record.statuses[-1]
        if to not in _MOVES[now]:
            raise EngineError(f"candidate {candidate_id} is {now} and can't become {to}")

    def _record(self, candidate_id: str) -> _Record:
        try:
            return self._records[candidate_id]
        except KeyError:
            raise EngineError(f"candidate {candidate_id} was never registered: call context.propose first") from None

    def _apply(self, change: Change, version: int) -> None:
        match change:
            case Add(candidate=candidate, status=status, pool=pool):
                record = self._records[candidate.id]
                record.candidate, record.pool = candidate, pool
                self._set_status(record, status, version)
            case Move(candidate_id=candidate_id, status=moved, scores=scores):
                record = self._records[candidate_id]
                if scores is not None:
                    record.candidate = self[candidate_id].scored(scores)
                self._set_status(record, moved, version)
            case Annotate(candidate_id=candidate_id, attributes=attributes, scores=scores):
                candidate = self[candidate_id]
                candidate = replace(candidate, attributes={**candidate.attributes, **attributes})
                self._records[candidate_id].candidate = candidate if scores is None else candidate.scored(scores)
            case Vetoed(candidate_id=candidate_id, stands=True):
                self._vetoed.add(candidate_id)
            case Vetoed(candidate_id=candidate_id):
                self._vetoed.discard(candidate_id)
            case Note():
                pass

    @staticmethod
    def _set_status(record: _Record, status: Status, version: int) -> None:
        record.versions.append(version)
        record.statuses.append(status)

    def status_at(self, candidate_id: str, version: int) -> Status | None:
        """The status as of ``version``; None if the candidate did not exist yet."""
        record = self._record(candidate_id)
        index = bisect_right(record.versions, version) - 1
        return record.statuses[index] if index >= 0 else None

    def candidates(self) -> Iterator[tuple[str | None, Candidate]]:
        """Every candidate that is in a pool or was proposed for one, oldest first, with the pool's name (None if only
        proposed).
        """
        for record in self._records.values():
            if record.candidate is not None:
                yield record.pool, record.candidate


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pool as of one version: a view, not a copy. Scores and attributes are read as they are now."""

    pool: Pool
    version: int

    def candidates(self, *statuses: Status, pool: str = DEFAULT_POOL, vetoed: bool = False) -> Iterator[Candidate]:
        """Candidates of one named pool whose status as of this version is one of ``statuses`` (default: confirmed).

        Candidates that are vetoed now are left out unless ``vetoed`` is set.
        """
        wanted = statuses or ("confirmed",)
        for name, candidate in self.pool.candidates():
            shown = vetoed or not self.pool.vetoed(candidate.id)
            if name == pool and shown and self.status(candidate.id) in wanted:
                yield candidate

    def status(self, candidate_id: str) -> Status | None:
        return self.pool.status_at(candidate_id, self.version)
