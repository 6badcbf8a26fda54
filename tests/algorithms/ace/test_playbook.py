"""The playbook: operations that compare and swap, counters that commute, bullets that are neither lost nor doubled."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, strategies as st

from flowevolve.algorithms.ace.playbook import (
    Bullet,
    Counts,
    Operation,
    Playbook,
    edit_note,
    load_note,
    parse_bullets,
    render,
    within,
)
from flowevolve.core.pool import Note, Update


class Writer:
    """Commits notes to a playbook, as a pool would."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.book = Playbook()

    def commit(self, note: Note) -> None:
        self.updates.append(Update(len(self.updates) + 1, (note,), "test", 0.0))
        self.book.apply(self.updates[-1])

    def edit(self, *operations: Operation, **counts: tuple[int, int]) -> None:
        self.commit(edit_note(operations, {name.replace("_", "-"): added for name, added in counts.items()}))

    def seen(self, *names: str) -> dict[str, str]:
        return {name: self.book[name].digest for name in names}

    def texts(self) -> dict[str, str]:
        return {bullet.id: bullet.text for bullet in self.book.bullets}


def add(text: str, section: str = "strategies") -> Operation:
    return Operation("ADD", section, text)


def test_ids_are_allocated_in_the_order_of_commits_and_name_the_section() -> None:
    writer = Writer()
    writer.edit(add("first"), add("second", "formulas"))
    writer.edit(add("third", "42"))
    assert writer.texts() == {"str-00001": "first", "for-00002": "second", "bul-00003": "third"}


def test_ids_go_on_where_a_given_playbook_ends() -> None:
    writer = Writer()
    writer.commit(load_note([Bullet("mis-00007", "mistakes", "given", 2, 1)]))
    writer.edit(add("new"))
    assert writer.texts() == {"mis-00007": "given", "str-00008": "new"}
    assert writer.book["mis-00007"].helpful == 2


def test_an_operation_on_a_bullet_that_has_changed_does_nothing() -> None:
    writer = Writer()
    writer.edit(add("one"), add("two"))
    seen = writer.seen("str-00001")
    writer.edit(Operation("UPDATE", "", "one, better", seen))
    writer.edit(Operation("DELETE", "", "", seen))
    writer.edit(Operation("MERGE", "", "both", {**seen, **writer.seen("str-00002")}))
    assert writer.texts() == {"str-00001": "one, better", "str-00002": "two"}
    assert writer.book.conflicts == 2


def test_counters_do_not_stand_in_the_way_of_an_operation() -> None:
    writer = Writer()
    writer.edit(add("one"))
    seen = writer.seen("str-00001")
    writer.edit(str_00001=(1, 0))
    writer.edit(Operation("UPDATE", "", "better", seen))
    assert (writer.book["str-00001"].text, writer.book["str-00001"].helpful) == ("better", 1)


def test_a_merge_sums_counters_and_takes_later_increments_of_its_parts() -> None:
    writer = Writer()
    writer.edit(add("one"), add("two"), add("three"), str_00001=(1, 0), str_00002=(2, 1))
    writer.edit(Operation("MERGE", "", "all", writer.seen("str-00001", "str-00002")))
    writer.edit(Operation("MERGE", "", "really all", writer.seen("str-00003", "str-00001")))
    writer.edit(str_00002=(0, 4))
    bullet = writer.book["str-00003"]
    assert (bullet.text, bullet.helpful, bullet.harmful) == ("really all", 3, 5)
    assert set(writer.book.gone) == {"str-00001", "str-00002"}


def test_rendered_bullets_are_read_back() -> None:
    bullets = [Bullet("str-00001", "strategies", "one", 3, 1), Bullet("for-00002", "formulas", "a (b)", 0, 2)]
    assert parse_bullets(render(bullets, counters=True)) == bullets
    assert [bullet.text for bullet in parse_bullets(render(bullets))] == ["one", "a (b)"]


def test_beyond_the_token_budget_the_least_helpful_bullets_are_left_out() -> None:
    bullets = [Bullet(f"str-{number:05d}", "strategies", "x" * 40, number) for number in range(1, 6)]
    assert [bullet.helpful for bullet in within(bullets, 30)] == [4, 5]
    assert within(bullets, 1000) == bullets


def test_a_bullet_that_is_too_long_does_not_hide_those_behind_it() -> None:
    long = Bullet("str-00001", "strategies", "x" * 500, helpful=5)
    short = [Bullet(f"str-{number:05d}", "strategies", "short advice", helpful=1) for number in range(2, 6)]
    assert within([long, *short], 100) == short


@st.composite
def schedules(draw: st.DrawFn) -> Sequence[tuple[int, str, int]]:
    """What 64 workers do: which of them, what, and how many commits old the playbook is that it has seen."""
    verbs = st.sampled_from(["ADD", "ADD", "UPDATE", "MERGE", "DELETE", "count"])
    return draw(st.lists(st.tuples(st.integers(0, 63), verbs, st.integers(0, 63)), min_size=1, max_size=120))


@given(schedules())
def test_bullets_are_neither_lost_nor_doubled_whatever_is_in_flight(schedule: Sequence[tuple[int, str, int]]) -> None:
    writer = Writer()
    added = gone = counted = 0
    for worker, verb, age in schedule:
        old = Playbook.as_of(writer.updates[: max(0, len(writer.updates) - age)])
        names = [bullet.id for bullet in old.bullets][worker % 5 :][:2]
        seen = {name: old[name].digest for name in names}
        counts: Counts = {}
        operations: list[Operation] = []
        if verb == "ADD":
            operations = [add(f"note of {worker}")]
        elif verb == "count":
            counts = dict.fromkeys(names, (1, 0))
            counted += len(names)
        elif verb == "MERGE" and len(names) == 2:
            operations = [Operation("MERGE", "", f"merged by {worker}", seen)]
        elif verb in ("UPDATE", "DELETE") and names:
            first = {names[0]: seen[names[0]]}
            operations = [Operation("UPDATE" if verb == "UPDATE" else "DELETE", "", f"text of {worker}", first)]
        done = all(writer.book.fits(each) for each in operations)
        writer.commit(edit_note(operations, counts))
        added += verb == "ADD"
        gone += bool(operations) and done and verb in ("MERGE", "DELETE")
    everything = [*writer.book.bullets, *writer.book.gone.values()]
    assert sorted(int(bullet.id[-5:]) for bullet in everything) == list(range(1, added + 1))
    assert len(writer.book.gone) == gone
    live = sum(bullet.helpful for bullet in writer.book.bullets)
    kept = _kept_with_the_deleted(writer)
    assert live + kept == counted
    assert Playbook.as_of(writer.updates).bullets == writer.book.bullets


def _kept_with_the_deleted(writer: Writer) -> int:
    """Increments that stay with deleted bullets; those of merged ones are counted where they went."""
    return sum(bullet.helpful for bullet in writer.book.deleted.values())
