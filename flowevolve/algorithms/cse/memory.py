"""What a run has learnt about its own task: which directions were tried with what outcome, and lessons.

The local memory of Controlled Self-Evolution (§4.3): a direction board and an experience library. It is a function of
the log's notes `NewLesson` and `NewDigest`, so any version of it can be rebuilt.

Compression is compare-and-swap. It says which entries it has read, and how often each had been counted by then. If all
of these are still there, what it wrote takes their place. What was counted of them since is kept under a new id, and
what was learnt since stays as it is. If one of them is gone, another compression was faster, and this one does nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from flowevolve.core.model import CHARS_PER_TOKEN
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Note, Update
from flowevolve.core.record import Record
from flowevolve.prompts.memory import Digest, Direction, DirectionOutcome, Insight, Lesson, Step, shown_memory

MEMORY = "memory"
"""The name of the memory's pool."""
LIMIT_TOKENS = 1000
STEPS_KEPT = 5
"""This many steps that raised the score most are kept, and as many that lowered it most."""
_PATIENCE = 8
"""If a compression has not come back after this many lessons, it is given up and another one is due."""

Said = Direction | Lesson


@dataclass(frozen=True, slots=True)
class Noted:
    """An entry. ``count``: how often it was learnt; ``since``: the version of the pool that it was first known in."""

    id: str
    said: Said
    count: int
    since: int


@payload("memory.Learned")
@dataclass(frozen=True, slots=True)
class Learned:
    """What one step has taught. ``change`` is how much the score rose from ``parent`` to ``candidate``."""

    candidate: str
    parent: str
    change: float
    insight: Insight

    @property
    def lesson(self) -> Lesson:
        return Lesson("success" if self.change > 0 else "failed", self.insight.lesson)


class NewLesson(Record, kind="memory.learned"):
    """What one step has taught. ``compress`` says whether a compression begins with it."""

    candidate: str
    parent: str
    change: float
    direction: str
    outcome: DirectionOutcome
    lesson: str
    compress: bool


class NewDigest(Record, kind="memory.compressed"):
    """A compression: the entries that were read, with the counts seen, and what replaces them, in `Digest`'s form."""

    read: Mapping[str, int]
    directions: list[JsonValue]
    lessons: list[JsonValue]


def learned_note(learned: Learned, pool: str = MEMORY, *, compress: bool = False) -> Note:
    """The note that adds what a step has taught. ``compress`` says that a compression begins with it."""
    insight = learned.insight
    return NewLesson(
        candidate=learned.candidate,
        parent=learned.parent,
        change=learned.change,
        direction=insight.direction.direction,
        outcome=insight.direction.outcome,
        lesson=insight.lesson,
        compress=compress,
    ).note(pool)


def compressed_note(read: Mapping[str, int], written: Digest, pool: str = MEMORY) -> Note:
    """The note that puts ``written`` in the place of the entries ``read``, which maps ids to the counts seen.

    Counts that the compression has invented do not count: no outcome is counted more often than it was read.
    """
    return NewDigest.from_json({"read": dict(read), **written.to_json()}).note(pool)


class Memory:
    """The memory as of the latest update. ``conflicts`` counts the compressions that came too late and did nothing."""

    def __init__(self, pool: str = MEMORY, *, limit_tokens: int = LIMIT_TOKENS) -> None:
        self.limit_tokens = limit_tokens
        self.conflicts = 0
        self.pool = pool
        self.improving: tuple[Step, ...] = ()
        """The steps that raised the score most, the best first."""
        self.degrading: tuple[Step, ...] = ()
        """The steps that lowered it most, the worst first."""
        self._entries: dict[str, Noted] = {}
        self._last = 0
        self._compressing: int | None = None
        """The number of lessons since a compression was begun; None while none is under way."""

    @classmethod
    def as_of(cls, updates: Iterable[Update], pool: str = MEMORY) -> Memory:
        """The memory after these updates, which must begin with the first one of the run."""
        memory = cls(pool)
        for update in updates:
            memory.apply(update)
        return memory

    def apply(self, update: Update) -> None:
        for change in update.changes:
            if isinstance(change, Note) and change.pool == self.pool:
                if change.kind == NewLesson.kind:
                    self._learn(NewLesson.from_json(change.data), update.version)
                elif change.kind == NewDigest.kind:
                    self._compress(NewDigest.from_json(change.data))

    @property
    def entries(self) -> Sequence[Noted]:
        """All entries, oldest first."""
        return tuple(self._entries.values())

    @property
    def directions(self) -> Sequence[tuple[Direction, int]]:
        """The direction board: directions, each with one outcome, and how often it was tried."""
        return [(each.said, each.count) for each in self._entries.values() if isinstance(each.said, Direction)]

    @property
    def lessons(self) -> Sequence[Lesson]:
        """The experience library."""
        return [each.said for each in self._entries.values() if isinstance(each.said, Lesson)]

    @property
    def tokens(self) -> int:
        """The estimated length of the memory in a prompt."""
        return tokens_of(self.directions, self.lessons)

    @property
    def read(self) -> dict[str, int]:
        """What a compression that begins now has read: ids and counts of all entries."""
        return {each.id: each.count for each in self._entries.values()}

    @property
    def digest(self) -> Digest:
        """What a compression that begins now is shown."""
        return Digest(tuple(self.directions), tuple(self.lessons))

    def changed_since(self, version: int) -> list[Noted]:
        """The entries that say something that was not known at this version of the pool. Compression makes no entry
        newer: one that it has reworded is as new as the newest entry that it may stand for.
        """
        return [each for each in self._entries.values() if each.since > version]

    def due(self, learned: Learned) -> bool:
        """Whether a compression is to begin with this lesson: it makes the memory too long, and none is under way."""
        if self._compressing is not None and self._compressing < _PATIENCE:
            return False
        new = tokens_of([(learned.insight.direction, 1)], [learned.lesson])
        return self.tokens + new > self.limit_tokens

    def _learn(self, new: NewLesson, version: int) -> None:
        insight = Insight(Direction(new.direction, new.outcome), new.lesson)
        learned = Learned(new.candidate, new.parent, new.change, insight)
        self._enter(insight.direction, 1, version)
        self._enter(learned.lesson, 1, version)
        self._rank(Step(new.change, insight))
        if new.compress:
            self._compressing = 0
        elif self._compressing is not None:
            self._compressing += 1

    def _rank(self, step: Step) -> None:
        if step.change > 0:
            self.improving = tuple(sorted([*self.improving, step], key=lambda each: -each.change)[:STEPS_KEPT])
        elif step.change < 0:
            self.degrading = tuple(sorted([*self.degrading, step], key=lambda each: each.change)[:STEPS_KEPT])

    def _enter(self, said: Said, count: int, since: int) -> None:
        """Add to the count of the entry that says this, or make a new entry."""
        for each in self._entries.values():
            if _key(each.said) == _key(said):
                self._entries[each.id] = replace(each, count=each.count + count)
                return
        self._last += 1
        name = f"{'d' if isinstance(said, Direction) else 'l'}-{self._last:05d}"
        self._entries[name] = Noted(name, said, count, since)

    def _compress(self, compressed: NewDigest) -> None:
        self._compressing = None
        read = compressed.read
        if not all(name in self._entries for name in read):
            self.conflicts += 1
            return
        before, self._entries = self._entries, {}
        gone = [before[name] for name in read]
        written = _counted(Digest.of(compressed.to_json()), [(each.said, read[each.id]) for each in gone])
        kept = {_key(said) for said, _ in written}
        for said, count in written:
            self._enter(said, count, _known_since(said, gone, kept))
        for each in before.values():
            if each.id not in read:
                self._keep(each)
            elif each.count > read[each.id]:
                self._enter(each.said, each.count - read[each.id], each.since)

    def _keep(self, entry: Noted) -> None:
        """Keep an entry that the compression has not read. It keeps its id, and absorbs a written one that says the
        same.
        """
        for each in list(self._entries.values()):
            if _key(each.said) == _key(entry.said):
                entry = replace(entry, count=entry.count + each.count)
                del self._entries[each.id]
        self._entries[entry.id] = entry


def render(memory: Memory) -> str:
    """A memory as prompts show it; empty for an empty one."""
    return shown_memory(memory.directions, memory.lessons)


def tokens_of(directions: Sequence[tuple[Direction, int]], lessons: Sequence[Lesson]) -> int:
    """The estimated length of a memory of these entries in a prompt."""
    return len(shown_memory(directions, lessons)) // CHARS_PER_TOKEN


def _counted(written: Digest, read: Sequence[tuple[Said, int]]) -> list[tuple[Said, int]]:
    """What a compression wrote, with no outcome counted more often than it was read."""
    left: dict[str, int] = {}
    for said, count in read:
        if isinstance(said, Direction):
            left[said.outcome] = left.get(said.outcome, 0) + count
    found: list[tuple[Said, int]] = []
    for direction, count in written.directions:
        counted = min(count, left.get(direction.outcome, 0))
        left[direction.outcome] = left.get(direction.outcome, 0) - counted
        if counted:
            found.append((direction, counted))
    return [*found, *((lesson, 1) for lesson in written.lessons)]


def _known_since(said: Said, gone: Sequence[Noted], kept: Collection[tuple[str, str]]) -> int:
    """The version at which what a compression wrote was first known: that of the entry which said the same before, or
    else that of the newest entry that it may stand for. ``kept`` holds the keys of all that was written.
    """
    same = [each.since for each in gone if _key(each.said) == _key(said)]
    same_outcome = [each.since for each in gone if _key(each.said)[0] == _key(said)[0] and _key(each.said) not in kept]
    return max(same or same_outcome or [each.since for each in gone], default=0)


def _key(said: Said) -> tuple[str, str]:
    """A key that is equal for entries that say the same. Its first part is equal for entries with the same outcome."""
    if isinstance(said, Direction):
        return said.outcome, said.direction.casefold()
    return f"{said.kind} lesson", " ".join(said.text.casefold().split())
