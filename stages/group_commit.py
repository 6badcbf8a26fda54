"""group commit: edits that wait for validation are merged into one candidate, and that is validated once.

It is what a merge queue does for code. Edits that passed their minibatches are rebased onto the newest head and merged.
The head is read when the work begins, and it is optimistic: the newest group that is being validated, if there is one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from flowevolve._util.tasks import run_all
from flowevolve.core.context import StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Gathered, Item
from flowevolve.core.pool import Add, Candidate, Move, Update
from flowevolve.core.record import Record
from flowevolve.prompts.reflection import merge_edits_prompt
from flowevolve.stages.line_edits import edit_again
from flowevolve.stages.merging import try_merging
from flowevolve.stages.payloads import Proposed

Way = Literal["model", "lines", "each"]
"""How edits that leave together become candidates: merged by a model, merged line by line, or each as it is."""
OPERATORS: Mapping[Way, str] = {"model": "group", "lines": "group_lines"}
LATEST = 0.25
"""The weight of the latest candidate in a success rate."""


class Group(Record, kind="group.departed"):
    """What leaves for validation: edits, by their candidates' ids, the head that they are rebased onto, and how."""

    head: str
    edits: tuple[str, ...]
    way: Way = "model"


class Head:
    """What edits are rebased onto: the newest group under validation, or else the best candidate. It also knows how
    well each way to make candidates of edits has done.

    It is a function of the log. ``best`` gives the best confirmed candidate, which is always the head where this is not
    ``optimistic``.
    """

    def __init__(
        self, best: Callable[[], Candidate | None], ways: Mapping[Way, float], *, optimistic: bool = True
    ) -> None:
        """``ways`` are those that may be gone, with how often each is taken to succeed before anything is known."""
        self._best = best
        self._optimistic = optimistic
        self._under_validation: dict[str, Way] = {}
        self.success = dict(ways)
        """How often the candidates of each way became the best, with the more weight the later they were."""

    def apply_event(self, event: Event) -> None:
        match event.body:
            case CandidateProposed(operator=operator, candidate=candidate):
                for way, its in OPERATORS.items():
                    if operator == its:
                        self._under_validation[candidate] = way
            case OwnEvent(kind=Group.kind, data=data):
                group = Group.from_json(data)
                if group.way == "each":
                    self._under_validation |= dict.fromkeys(group.edits, group.way)
            case CandidateRejected(candidate=candidate):
                self._decided(candidate, better=False)
            case _:
                pass

    def apply(self, update: Update) -> None:
        best = self._best()
        for change in update.changes:
            match change:
                case Add(candidate=Candidate(id=name), status="confirmed" | "rejected") | Move(candidate_id=name):
                    self._decided(name, better=best is not None and best.id == name)
                case _:  # one that was released early is still under validation
                    pass

    def _decided(self, candidate: str, *, better: bool) -> None:
        way = self._under_validation.pop(candidate, None)
        if way is not None:
            self.success[way] += LATEST * (better - self.success[way])

    def way(self) -> Way:
        """The way that has done best of late, the first of those that did equally well."""
        return max(self.success, key=lambda way: self.success[way])

    def id(self) -> str:
        """The id of the head.

        Raises:
            LookupError: if no candidate was confirmed yet.
        """
        groups = [name for name, way in self._under_validation.items() if way != "each"]
        if groups and self._optimistic:
            return groups[-1]
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
    prompt grows without end. A single edit of the head itself needs no merge. If a merge fails, or has nothing new, the
    edits are made again line by line; those that are new texts are left out then, except one of the head itself.
    """

    head: Head
    most_characters: int = 40_000

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        edits = [each.expect(Proposed) for each in item.expect(Gathered).items]
        group = context.decide(Group, lambda: self._group(edits))
        if group.way == "each":
            for edit in edits:
                yield Emit(edit, derives=edit.candidate.parents)
            return
        # In a resumed run the head of that time may have failed meanwhile.
        head = context.pool[group.head if context.pool.keeps(group.head) else self.head.id()]
        texts = await run_all([partial(self._text, name, head, edits, group.way, context) for name in head.artifact])
        artifact = head.artifact.replace(**dict(zip(head.artifact, texts, strict=True)))
        if artifact == head.artifact:
            raise Discard("nothing new")
        candidate = context.propose(
            artifact,
            parents=[head],
            operator=OPERATORS[group.way],
            attributes={"edits": list(group.edits)},
            born=item.version,
        )
        for edit in edits:
            context.reject(edit.candidate, f"merged into {candidate.id}")
        yield Emit(Proposed(candidate, (), ()), derives=(head.id,))

    def _group(self, edits: Sequence[Proposed]) -> Group:
        names = tuple(edit.candidate.id for edit in edits)
        return Group(head=self.head.id(), edits=names, way=self.head.way())

    async def _text(
        self, component: str, head: Candidate, edits: Sequence[Proposed], way: Way, context: StageContext
    ) -> str:
        """The head's text of a component with the edits worked in."""
        text = head.artifact[component]
        changes: Sequence[_Edit] = [
            change for edit in edits if (change := _change(edit, component, context)) is not None
        ]
        if way == "lines":
            by_lines, rewrites = _by_lines(text, changes)
            if len(by_lines) <= context.templates.longest(text):  # else a model says it all in fewer words
                text, changes = by_lines, rewrites
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
        merge_edits_prompt(context.templates, component, current, edits),
        before=current,
        key=f"group/{name}",
        candidate=head.id,
        context=context,
        component=component,
        merge=f"group {name}",
        texts=len(edits),
    )
    if merged is not None and merged != current:
        return merged
    text, rewrites = _by_lines(current, edits)
    if text != current:
        return text if len(text) <= context.templates.longest(current) else current
    return next((after for before, after in rewrites if before == current), current)


def _by_lines(current: str, edits: Sequence[_Edit]) -> tuple[str, Sequence[_Edit]]:
    """The current text with the edits made again on it, and those that are rewrites and no edits of lines."""
    text, rewrites = current, []
    for edit in edits:
        again = edit_again(edit.before, edit.after, text)
        if again is None:
            rewrites.append(edit)
        else:
            text = again
    return text, rewrites
