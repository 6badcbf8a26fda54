"""group commit: edits that wait for validation are merged into one candidate, and that is validated once.

It is what a merge queue does for code. Edits that passed their minibatches are rebased onto the newest head and merged.
The head is read when the work begins, and it is optimistic: the newest group that is being validated, if there is one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from flowevolve._util.tasks import run_all
from flowevolve.core.context import StageContext
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Gathered, Item
from flowevolve.core.pool import Candidate, Update
from flowevolve.core.record import Record
from flowevolve.prompts.reflection import merge_edits_prompt
from flowevolve.stages.merging import try_merging
from flowevolve.stages.payloads import Proposed

OPERATOR = "group"


class Group(Record, kind="group.departed"):
    """What leaves for one validation: edits, by their candidates' ids, and the head that they are rebased onto."""

    head: str
    edits: tuple[str, ...]


class Head:
    """What edits are rebased onto: the newest group under validation, or else the best candidate.

    It is a function of the log. ``best`` gives the best confirmed candidate.
    """

    def __init__(self, best: Callable[[], Candidate | None]) -> None:
        self._best = best
        self._under_validation: list[str] = []

    def apply_event(self, event: Event) -> None:
        match event.body:
            case CandidateProposed(operator=operator, candidate=candidate) if operator == OPERATOR:
                self._under_validation.append(candidate)
            case CandidateRejected(candidate=candidate):
                self._decided(candidate)
            case _:
                pass

    def apply(self, update: Update) -> None:
        for candidate in update.added():
            self._decided(candidate.id)

    def _decided(self, candidate: str) -> None:
        if candidate in self._under_validation:
            self._under_validation.remove(candidate)

    def id(self) -> str:
        """The id of the head.

        Raises:
            LookupError: if no candidate was confirmed yet.
        """
        if self._under_validation:
            return self._under_validation[-1]
        best = self._best()
        if best is None:
            raise LookupError("there is no head: no candidate was confirmed yet")
        return best.id


class _Edit(NamedTuple):
    """The text of a component before and after an edit."""

    before: str
    after: str


@dataclass(frozen=True)
class GroupCommit:
    """Merges the edits that it is handed together into one candidate, on top of the head.

    A model of the role ``reflection`` is asked for each component, ``most_characters`` of edits at a time, so that no
    prompt grows without end. A single edit of the head itself needs no merge. If a merge fails, one edit of the head
    is taken as it is, or none.
    """

    head: Head
    most_characters: int = 40_000

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        edits = [each.expect(Proposed) for each in item.expect(Gathered).items]
        names = tuple(edit.candidate.id for edit in edits)
        group = context.decide(Group, lambda: Group(head=self.head.id(), edits=names))
        # In a resumed run the head of that time may have failed meanwhile.
        head = context.pool[group.head if context.pool.keeps(group.head) else self.head.id()]
        texts = await run_all([partial(self._text, name, head, edits, context) for name in head.artifact])
        artifact = head.artifact.replace(**dict(zip(head.artifact, texts, strict=True)))
        if artifact == head.artifact:
            raise Discard("nothing new")
        candidate = context.propose(
            artifact, parents=[head], operator=OPERATOR, attributes={"edits": list(names)}, born=item.version
        )
        for edit in edits:
            context.reject(edit.candidate, f"merged into {candidate.id}")
        yield Emit(Proposed(candidate, (), ()), derives=(head.id,))

    async def _text(self, component: str, head: Candidate, edits: Sequence[Proposed], context: StageContext) -> str:
        """The head's text of a component with the edits worked in."""
        text = head.artifact[component]
        changes = [change for edit in edits if (change := _change(edit, component, context)) is not None]
        for number, part in enumerate(_parts(changes, self.most_characters)):
            text = await _merge(text, part, f"{component}/{number}", head, context)
        return text


def _change(edit: Proposed, component: str, context: StageContext) -> _Edit | None:
    """What an edit did to a component, if anything."""
    origin = context.pool[edit.candidate.parents[0]].artifact if edit.origin is None else edit.origin
    change = _Edit(origin[component], edit.candidate.artifact[component])
    return None if change.before == change.after else change


def _parts(changes: Sequence[_Edit], most_characters: int) -> Sequence[Sequence[_Edit]]:
    """The edits in their order, in parts of so many characters at most, or of one edit where that is longer."""
    parts: list[list[_Edit]] = []
    left = 0
    for change in changes:
        size = len(change.before) + len(change.after)
        if not parts or size > left:
            parts.append([])
            left = most_characters
        parts[-1].append(change)
        left -= size
    return parts


async def _merge(current: str, edits: Sequence[_Edit], name: str, head: Candidate, context: StageContext) -> str:
    """The current text with the edits worked in: by a model, unless there is only one, of this very text."""
    if len(edits) == 1 and edits[0].before == current:
        return edits[0].after
    component, _, _ = name.rpartition("/")
    merged = await try_merging(
        merge_edits_prompt(component, current, edits),
        key=f"group/{name}",
        candidate=head.id,
        context=context,
        component=component,
        merge=f"group {name}",
        texts=len(edits),
    )
    if merged is not None:
        return merged
    return next((after for before, after in edits if before == current), current)
