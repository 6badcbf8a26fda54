"""Local memory: what is learnt stays until a compression that has read it takes its place, whatever is in flight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given, strategies as st

from flowevolve.algorithms.cse.memory import Learned, Memory, compressed_note, learned_note, render
from flowevolve.core.pool import Note, Update
from flowevolve.prompts.memory import LESSON_KINDS, OUTCOMES, Digest, Direction, DirectionOutcome, Insight, Lesson


class Writer:
    """Commits notes to a memory, as a pool would."""

    def __init__(self, limit_tokens: int = 1000) -> None:
        self.updates: list[Update] = []
        self.memory = Memory(limit_tokens=limit_tokens)

    @property
    def version(self) -> int:
        return len(self.updates)

    def commit(self, note: Note) -> None:
        self.updates.append(Update(len(self.updates) + 1, (note,), "test", 0.0))
        self.memory.apply(self.updates[-1])

    def learn(
        self, lesson: str, direction: str = "loops", outcome: DirectionOutcome = "success", change: float = 1.0
    ) -> Learned:
        learned = Learned("c2", "c1", change, Insight(Direction(direction, outcome), lesson))
        self.commit(learned_note(learned, compress=self.memory.due(learned)))
        return learned

    def compress(self, read: Mapping[str, int], written: Digest) -> None:
        self.commit(compressed_note(read, written))

    def texts(self) -> list[str]:
        return [lesson.text for lesson in self.memory.lessons]


def digest(directions: Mapping[tuple[str, DirectionOutcome], int], *lessons: str) -> Digest:
    return Digest(
        tuple((Direction(name, outcome), count) for (name, outcome), count in directions.items()),
        tuple(Lesson("success", text) for text in lessons),
    )


def said_since(memory: Memory, version: int) -> set[Direction | Lesson]:
    return {each.said for each in memory.changed_since(version)}


def test_a_direction_is_counted_by_its_outcome_and_a_lesson_is_kept_once() -> None:
    writer = Writer()
    writer.learn("one", "Loops")
    writer.learn("two", "loops")
    writer.learn("one", "loops", "failed", -1.0)
    writer.learn("Two", "loops")
    memory = writer.memory
    assert memory.directions == [(Direction("Loops", "success"), 3), (Direction("loops", "failed"), 1)]
    assert memory.lessons == [Lesson("success", "one"), Lesson("success", "two"), Lesson("failed", "one")]
    assert [each.id for each in memory.entries] == ["d-00001", "l-00002", "l-00003", "d-00004", "l-00005"]


def test_a_compression_takes_the_place_of_what_it_has_read() -> None:
    writer = Writer()
    writer.learn("one")
    writer.learn("two")
    read = writer.memory.read
    writer.learn("three", "calls", "failed", -1.0)
    writer.learn("four", "loops")
    writer.compress(read, digest({("other loops", "success"): 2}, "one and two"))
    assert writer.memory.directions == [
        (Direction("other loops", "success"), 2),
        (Direction("loops", "success"), 1),
        (Direction("calls", "failed"), 1),
    ]
    assert writer.texts() == ["one and two", "three", "four"]


def test_what_it_wrote_and_what_was_learnt_meanwhile_is_counted_together() -> None:
    writer = Writer()
    writer.learn("one", "calls")
    read = writer.memory.read
    writer.learn("two", "loops")
    late = writer.memory.read
    writer.compress(read, digest({("loops", "success"): 1}, "one"))
    assert writer.memory.directions == [(Direction("loops", "success"), 2)]
    writer.compress({"d-00003": late["d-00003"]}, digest({("fewer loops", "success"): 1}))
    assert dict(writer.memory.directions) == {
        Direction("fewer loops", "success"): 1,
        Direction("loops", "success"): 1,
    }


def test_a_compression_that_comes_too_late_does_nothing() -> None:
    writer = Writer()
    writer.learn("one")
    read = writer.memory.read
    writer.compress(read, digest({("loops", "success"): 1}, "first"))
    before = writer.memory.entries
    writer.compress(read, digest({("loops", "success"): 1}, "second"))
    assert writer.memory.entries == before
    assert writer.memory.conflicts == 1


def test_what_was_counted_since_is_no_match_for_a_later_compression_of_the_same_entry() -> None:
    """The entry that remains has an id of its own: else a second compression would take its count again."""
    writer = Writer()
    writer.learn("one")
    read = writer.memory.read
    for _ in range(3):
        writer.learn("one")
    writer.compress(read, digest({("loops", "success"): 1}, "first"))
    writer.compress(read, digest({("loops", "success"): 1}, "second"))
    assert sum(count for _, count in writer.memory.directions) == 4
    assert "second" not in writer.texts()


def test_nothing_is_counted_that_was_not_read() -> None:
    writer = Writer()
    writer.learn("one")
    writer.compress(writer.memory.read, digest({("loops", "success"): 40, ("calls", "failed"): 2}, "one"))
    assert writer.memory.directions == [(Direction("loops", "success"), 1)]


def test_a_step_sees_what_was_learnt_since_and_not_what_was_compressed() -> None:
    writer = Writer()
    writer.learn("one")
    version = writer.version
    writer.compress(writer.memory.read, digest({("loops", "success"): 1}, "first"))
    writer.learn("other", "loops")
    assert [each.said for each in writer.memory.changed_since(version)] == [Lesson("success", "other")]
    assert writer.memory.changed_since(writer.version) == []


def test_compressing_makes_nothing_newer() -> None:
    writer = Writer()
    writer.learn("one", "loops")
    writer.learn("two", "calls")
    version = writer.version
    writer.learn("three", "sorting", "failed", -1.0)
    new = said_since(writer.memory, version)
    assert len(new) == 2

    writer.compress(writer.memory.read, writer.memory.digest)
    assert said_since(writer.memory, version) == new

    lessons = (Lesson("success", "one and two"), Lesson("failed", "three"))
    writer.compress(writer.memory.read, replace(writer.memory.digest, lessons=lessons))
    assert said_since(writer.memory, version) == new

    lessons = (Lesson("success", "two and one"), Lesson("failed", "never three"))
    writer.compress(writer.memory.read, replace(writer.memory.digest, lessons=lessons))
    assert said_since(writer.memory, version) == {Direction("sorting", "failed"), Lesson("failed", "never three")}


def test_one_compression_is_due_at_a_time_and_another_where_it_does_not_come_back() -> None:
    writer = Writer(limit_tokens=30)
    due = []
    for number in range(12):
        learned = Learned("c", "p", 1.0, Insight(Direction("loops", "success"), f"a lesson of some length, {number}"))
        due.append(writer.memory.due(learned))
        writer.commit(learned_note(learned, compress=due[-1]))
    assert [number for number, each in enumerate(due) if each] == [1, 10]
    writer.compress(writer.memory.read, digest({("loops", "success"): 12}, "short"))
    assert writer.memory.tokens <= 30
    assert writer.memory.due(learned)


def test_the_steps_that_changed_the_score_most_are_known_beyond_compressions() -> None:
    writer = Writer()
    for change in (0.1, -2.0, 0.3, 0.0, 0.2, -1.0, 0.5, 0.4, 0.6):
        writer.learn(f"{change:g}", change=change)
    writer.compress(writer.memory.read, digest({}, "all"))
    assert [step.change for step in writer.memory.improving] == [0.6, 0.5, 0.4, 0.3, 0.2]
    assert [step.insight.lesson for step in writer.memory.degrading] == ["-2", "-1"]


def test_memories_of_two_pools_know_nothing_of_each_other() -> None:
    writer = Writer()
    learned = Learned("c", "p", 1.0, Insight(Direction("loops", "success"), "one"))
    writer.commit(learned_note(learned, "other"))
    assert render(writer.memory) == ""
    assert (
        render(Memory.as_of(writer.updates, "other"))
        == "Directions that were tried:\n- loops (success, once)\n\nWhat worked:\n- one"
    )


@dataclass
class Interleaving(Writer):
    """Lessons, and compressions that come back in any order. Each lesson has a number; a faithful compression joins
    what it has read, so that every number can be found again.
    """

    under_way: list[tuple[dict[str, int], Digest, int]] = field(default_factory=list)
    taught: list[tuple[int, int]] = field(default_factory=list)
    """Of each lesson: the version it came with, and its outcome's place."""

    def __post_init__(self) -> None:
        super().__init__()

    def teach(self, direction: int, outcome: int) -> None:
        number = len(self.taught)
        self.learn(f"<{number}>", f"direction {direction}", OUTCOMES[outcome], 1.0 if outcome == 0 else -1.0)
        self.taught.append((self.version, outcome))

    def begin(self) -> None:
        self.under_way.append((self.memory.read, self.memory.digest, self.version))

    def end(self, which: int, *, inflate: int = 1) -> None:
        if not self.under_way:
            return
        read, seen, _ = self.under_way.pop(which % len(self.under_way))
        counts: Counter[DirectionOutcome] = Counter()
        for direction, count in seen.directions:
            counts[direction.outcome] += count * inflate
        joined = {("direction 0", outcome): count for outcome, count in counts.items()}
        written = digest(joined)
        texts = [(kind, "".join(each.text for each in seen.lessons if each.kind == kind)) for kind in LESSON_KINDS]
        lessons = tuple(Lesson(kind, text) for kind, text in texts if text)
        self.compress(read, Digest(written.directions, lessons))

    def check(self) -> None:
        counted: Counter[str] = Counter()
        for direction, count in self.memory.directions:
            counted[direction.outcome] += count
        assert counted == Counter(OUTCOMES[outcome] for _, outcome in self.taught)
        everything = "".join(self.texts())
        assert [everything.count(f"<{number}>") for number in range(len(self.taught))] == [1] * len(self.taught)
        assert len({each.id for each in self.memory.entries}) == len(self.memory.entries)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("begin"), st.just(0), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 5), st.sampled_from([1, 1, 3])),
    ),
    min_size=20,  # else most are too short for two compressions that overlap
    max_size=40,
)


@given(STEPS)
def test_nothing_is_lost_or_counted_twice_however_steps_interleave(steps: Sequence[tuple[str, int, int]]) -> None:
    run = Interleaving()
    for what, first, second in steps:
        match what:
            case "learn":
                run.teach(first, second)
            case "begin":
                run.begin()
            case _:
                run.end(first, inflate=second)
        run.check()
    replayed = Memory.as_of(run.updates)
    assert replayed.entries == run.memory.entries
    assert replayed.read == run.memory.read


@given(STEPS, st.integers(0, 60))
def test_what_was_learnt_since_a_version_is_among_what_changed(
    steps: Sequence[tuple[str, int, int]], version: int
) -> None:
    run = Interleaving()
    for what, first, second in steps:
        if what == "learn":
            run.teach(first, second)
        elif what == "begin":
            run.begin()
        else:
            run.end(first)
    changed = "".join(each.said.text for each in run.memory.changed_since(version) if isinstance(each.said, Lesson))
    new = [number for number, (since, _) in enumerate(run.taught) if since > version]
    assert all(f"<{number}>" in changed for number in new)
    assert bool(run.memory.changed_since(version)) == bool(new)
    before = said_since(run.memory, version)
    run.compress(run.memory.read, run.memory.digest)
    assert said_since(run.memory, version) == before
