"""What a run has learnt about its own task: which directions were tried with what outcome, and lessons.

The local memory of Controlled Self-Evolution (§4.3): a direction board and an experience library. It is a function of
the log's notes of the kinds `LEARNED` and `COMPRESSED`, so any version of it can be had again.

Compression is compare-and-swap. It says which entries it has read, and how often each had been counted by then. Where
all of these are still there, they make way for what it wrote; what was counted of them since stays, under an id of its
own, and what was learnt since stays as it is. Where one of them is gone, another compression was faster, and it does
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from flowevolve.agents.memory import Digest, Direction, Insight, Lesson, Step, shown_memory
from flowevolve.kinds import payload
from flowevolve.llm.types import CHARS_PER_TOKEN, JSON
from flowevolve.pool import Note, Update

MEMORY = "memory"
"""The name of its pool."""
LEARNED = "memory.learned"
COMPRESSED = "memory.compressed"
LIMIT_TOKENS = 1000
STEPS_KEPT = 5
"""Of the steps that raised the score most, and of those that lowered it most."""
_PATIENCE = 8
"""After so many lessons a compression that has not come back is given up, and another one is due."""

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
    """What one step has taught. ``change`` is by how much the score rose from ``parent`` to ``candidate``."""

    candidate: str
    parent: str
    change: float
    insight: Insight

    @property
    def lesson(self) -> Lesson:
        return Lesson("success" if self.change > 0 else "failed", self.insight.lesson)


def learned_note(learned: Learned, pool: str = MEMORY, *, compress: bool = False) -> Note:
    """The note that works in what a step has taught. ``compress`` says that a compression is begun with it."""
    data: dict[str, JSON] = {
        "candidate": learned.candidate,
        "parent": learned.parent,
        "change": learned.change,
        **learned.insight.direction.to_json(),
        "lesson": learned.insight.lesson,
        "compress": compress,
    }
    return Note(LEARNED, data, pool)


def compressed_note(read: Mapping[str, int], written: Digest, pool: str = MEMORY) -> Note:
    """The note that puts ``written`` in the place of the entries ``read``, which maps ids to the counts seen.

    Counts that nobody made are taken back: of each outcome there are never more than were read.
    """
    return Note(COMPRESSED, {"read": dict(read), **written.to_json()}, pool)


class Memory:
    """The memory now. ``conflicts`` counts compressions that came too late and did nothing."""

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
        """How many lessons came since a compression was begun; None while none is under way."""

    @classmethod
    def as_of(cls, updates: Iterable[Update], pool: str = MEMORY) -> Memory:
        """The memory that these updates, all from the first one, make."""
        memory = cls(pool)
        for update in updates:
            memory.apply(update)
        return memory

    def apply(self, update: Update) -> None:
        for change in update.changes:
            if isinstance(change, Note) and change.pool == self.pool:
                if change.kind == LEARNED:
                    self._learn(change.data, update.version)
                elif change.kind == COMPRESSED:
                    self._compress(change.data)

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
        """How long it is in a prompt, as an estimate."""
        return tokens_of(self.directions, self.lessons)

    @property
    def read(self) -> dict[str, int]:
        """What a compression that is begun now has read: ids and counts of all entries."""
        return {each.id: each.count for each in self._entries.values()}

    @property
    def digest(self) -> Digest:
        """What a compression that is begun now is shown."""
        return Digest(tuple(self.directions), tuple(self.lessons))

    def changed_since(self, version: int) -> list[Noted]:
        """The entries that say what was not known at this version of the pool. Compression makes nothing newer; what it
        has put in other words is as new as the newest that it may stand for.
        """
        return [each for each in self._entries.values() if each.since > version]

    def due(self, learned: Learned) -> bool:
        """Whether a compression is to begin with this lesson: it makes the memory too long, and none is under way."""
        if self._compressing is not None and self._compressing < _PATIENCE:
            return False
        new = tokens_of([(learned.insight.direction, 1)], [learned.lesson])
        return self.tokens + new > self.limit_tokens

    def _learn(self, data: Mapping[str, JSON], version: int) -> None:
        direction, change = Direction.of(data), float(cast(float, data["change"]))
        insight = Insight(direction, str(data["lesson"]))
        learned = Learned(str(data["candidate"]), str(data["parent"]), change, insight)
        self._enter(direction, 1, version)
        self._enter(learned.lesson, 1, version)
        self._rank(Step(change, insight))
        if data["compress"]:
            self._compressing = 0
        elif self._compressing is not None:
            self._compressing += 1

    def _rank(self, step: Step) -> None:
        if step.change > 0:
            self.improving = tuple(sorted([*self.improving, step], key=lambda each: -each.change)[:STEPS_KEPT])
        elif step.change < 0:
            self.degrading = tuple(sorted([*self.degrading, step], key=lambda each: each.change)[:STEPS_KEPT])

    def _enter(self, said: Said, count: int, since: int) -> None:
        """Count an entry that says this, or make one."""
        for each in self._entries.values():
            if _key(each.said) == _key(said):
                self._entries[each.id] = replace(each, count=each.count + count)
                return
        self._last += 1
        name = f"{'d' if isinstance(said, Direction) else 'l'}-{self._last:05d}"
        self._entries[name] = Noted(name, said, count, since)

    def _compress(self, data: Mapping[str, JSON]) -> None:
        self._compressing = None
        read = cast("dict[str, int]", data["read"])
        if not all(name in self._entries for name in read):
            self.conflicts += 1
            return
        before, self._entries = self._entries, {}
        gone = [before[name] for name in read]
        written = _counted(Digest.of(data), [(each.said, read[each.id]) for each in gone])
        kept = {_key(said) for said, _ in written}
        for said, count in written:
            self._enter(said, count, _known_since(said, gone, kept))
        for each in before.values():
            if each.id not in read:
                self._keep(each)
            elif each.count > read[each.id]:
                self._enter(each.said, each.count - read[each.id], each.since)

    def _keep(self, entry: Noted) -> None:
        """An entry that no compression has read goes on under its id, with what was written that says the same."""
        for each in list(self._entries.values()):
            if _key(each.said) == _key(entry.said):
                entry = replace(entry, count=entry.count + each.count)
                del self._entries[each.id]
        self._entries[entry.id] = entry


def render(memory: Memory) -> str:
    """A memory as prompts show it; empty for an empty one."""
    return shown_memory(memory.directions, memory.lessons)


def tokens_of(directions: Sequence[tuple[Direction, int]], lessons: Sequence[Lesson]) -> int:
    """How long a memory of these is in a prompt, as an estimate."""
    return len(shown_memory(directions, lessons)) // CHARS_PER_TOKEN


def _counted(written: Digest, read: Sequence[tuple[Said, int]]) -> list[tuple[Said, int]]:
    """What a compression wrote, no outcome counted more often than was read of it."""
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
    """The version that an entry of a compression was first known in: its own, where it was read as it is written, else
    that of the newest which it may stand for. ``kept`` are the keys of all that was written.
    """
    same = [each.since for each in gone if _key(each.said) == _key(said)]
    alike = [each.since for each in gone if _key(each.said)[0] == _key(said)[0] and _key(each.said) not in kept]
    return max(same or alike or [each.since for each in gone], default=0)


def _key(said: Said) -> tuple[str, str]:
    """Two entries with the same key say the same; the first part is what ended alike."""
    if isinstance(said, Direction):
        return said.outcome, said.direction.casefold()
    return f"{said.kind} lesson", " ".join(said.text.casefold().split())
