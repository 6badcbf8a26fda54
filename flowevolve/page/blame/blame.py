"""Where each sentence of a candidate's texts came from, according to the tables of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from flowevolve.core.item_ids import ItemId, parent_and_number
from flowevolve.page.blame.origins import Origins, Part, Step
from flowevolve.page.tables.candidates import BatchRow, BlameRow, CandidateRow, ComponentRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow
from flowevolve.page.tables.work import CallRow, SpanRow

Reply = Callable[[int], str | None]
"""The reply of a call by the call's id; None if there is none."""
_NO_WRITERS = ("task", "embedding")
"""Roles that write no candidates."""


def blame(tables: Tables, candidates: Iterable[str], reply: Reply) -> list[BlameRow]:
    """A row for each sentence of each text of these candidates, in the order of the texts.

    ``tables`` needs the rows of runs, candidates, components, calls, spans and batches. It takes time in proportion to
    the number of calls, and to the texts of the candidates and of their ancestors.
    """
    wanted = list(dict.fromkeys(name for name in candidates if tables.get(CandidateRow, name) is not None))
    rows = ancestors(tables, wanted)
    work, texts = _Work(tables, reply), _texts(tables)
    origins = Origins(
        Step(row.id, texts.get(row.id, {}), row.sources, tuple(work.parts(row)), work.by_line) for row in rows
    )
    return [
        row for name in wanted for component in texts.get(name, {}) for row in _rows(origins, name, component, texts)
    ]


def _rows(origins: Origins, candidate: str, component: str, texts: dict[str, dict[str, str]]) -> Iterator[BlameRow]:
    units = _Units(texts[candidate][component])
    for place, found in enumerate(origins.of(candidate, component)):
        yield BlameRow(
            candidate=candidate,
            component=component,
            place=place,
            start=units.upto(found.start),
            end=units.upto(found.end),
            origin=found.origin,
            how=found.how,
            similarity=found.similarity,
            calls=found.calls,
            examples=found.examples,
            path=found.path,
        )


class _Units:
    """Converts places in a text to UTF-16 units, as JavaScript counts them. They must come in ascending order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._seen = self._units = 0

    def upto(self, place: int) -> int:
        if self._ascii:
            return place
        self._units += sum(2 if ord(letter) > 0xFFFF else 1 for letter in self._text[self._seen : place])
        self._seen = place
        return self._units


def ancestors(tables: Tables, candidates: Sequence[str]) -> list[CandidateRow]:
    """These candidates and all that they may be made from, in the order of proposals."""
    found, names = dict[str, CandidateRow](), list(candidates)
    while names:
        row = tables.get(CandidateRow, names.pop())
        if row is not None and row.id not in found:
            found[row.id] = row
            names += row.sources
    return sorted(found.values(), key=lambda row: row.place)


def _texts(tables: Tables) -> dict[str, dict[str, str]]:
    """The texts of all candidates by component."""
    texts: dict[str, dict[str, str]] = {}
    for row in tables.of(ComponentRow):
        if row.text is not None:
            texts.setdefault(row.candidate, {})[row.component] = row.text
    return texts


class _Work:
    """Which calls and examples are behind a candidate."""

    def __init__(self, tables: Tables, reply: Reply) -> None:
        run = next(tables.of(RunRow))
        self.by_line = run.kind in ("program", "harness")
        self._playbooks = run.kind == "playbook"
        self._reply = reply
        self._tables = tables
        self._made = {row.item for row in tables.of(CandidateRow)}
        self._batches = {row.item: row.examples for row in tables.of(BatchRow)}
        self._calls: dict[str, list[CallRow]] = {}
        for call in tables.of(CallRow):
            if call.role not in _NO_WRITERS:
                self._calls.setdefault(call.item, []).append(call)
        self._together: dict[str, list[str]] = {}
        for span in tables.of(SpanRow):
            if span.head is not None and span.head != span.item:
                self._together.setdefault(span.head, []).append(span.item)

    def parts(self, row: CandidateRow) -> list[Part]:
        """What each piece of work contributed to the step that made a candidate, the earliest first."""
        calls = self._since(row) if self._playbooks else map(self._calls_of, self._items(row))
        works = sorted((each for each in calls if each), key=lambda calls: calls[0].id)
        return [
            Part(
                tuple(call.id for call in work),
                "\n".join(self._reply(call.id) or "" for call in work),
                self._examples(work[0].item),
            )
            for work in works
        ]

    def _calls_of(self, item: str) -> list[CallRow]:
        return self._calls.get(item, [])

    def _items(self, row: CandidateRow) -> Iterator[str]:
        """The items of the work behind a candidate: back to where the flow began or an earlier candidate was made."""
        open_items, seen = [row.item], set[str]()
        while open_items:
            item = open_items.pop()
            if item in seen or (item in self._made and item != row.item):
                continue
            seen.add(item)
            yield item
            open_items += self._together.get(item, [])
            above = _above(item)
            if above is not None:
                open_items.append(above)

    def _since(self, row: CandidateRow) -> Iterator[list[CallRow]]:
        """The calls that may have written to a playbook: those that ended after its last version but one, as edits may
        wait.
        """
        before = self._tables.get(CandidateRow, row.sources[0]) if row.sources else None
        earlier = self._tables.get(CandidateRow, before.sources[0]) if before is not None and before.sources else None
        begin = 0.0 if earlier is None else earlier.created
        for calls in self._calls.values():
            yield [call for call in calls if begin < call.ended <= row.created]

    def _examples(self, item: str) -> tuple[str, ...]:
        """The examples that were selected for an item, or for the nearest one that it was made from."""
        above: str | None = item
        while above is not None:
            if above in self._batches:
                return self._batches[above]
            above = _above(above)
        return ()


def _above(item: str) -> str | None:
    """The item that an item was made from; None for the first of a flow."""
    return parent_and_number(ItemId(item))[0] or None
