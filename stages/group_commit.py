"""group commit: edits that wait for validation are merged into one candidate, and that is validated once.

It is what a merge queue does for code. Edits that passed their minibatches are rebased onto the newest head and merged.
The head is read when the work begins, and it is optimistic: the newest group that is being validated, if there is one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import run_all
from flowevolve.core.context import StageContext
from flowevolve.core.discard_reasons import OVERTAKEN
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Gathered, Item
from flowevolve.core.pool import Add, Candidate, Move, Update
from flowevolve.core.record import Record
from flowevolve.prompts.reflection import merge_edits_prompt
from flowevolve.stages import rebase
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
        self,
        best: Callable[[], Candidate | None],
        ways: Mapping[Way, float],
        *,
        optimistic: bool = True,
        least: float = 0.0,
    ) -> None:
        """``ways`` are those that may be gone, with how often each is taken to succeed before anything is known. A way
        to merge edits that succeeds less often than ``least`` gives way to single edits, however these do.
        """
        self._best = best
        self._optimistic = optimistic
        self._least = least
        self._under_validation: dict[str, Way] = {}
        self._of_one_edit: set[str] = set()
        """Groups under validation whose edits all came to the same text: their success is none of merging."""
        self._bests: list[tuple[int, str]] = []
        """Each candidate that was the best one, and the version of the pool since which it was."""
        self.success = dict(ways)
        """How often the candidates of each way became the best, with the more weight the later they were."""

    def apply_event(self, event: Event) -> None:
        match event.body:
            case CandidateProposed(operator=rebase.OPERATOR, candidate=candidate, attributes={"edits": [str(edit)]}):
                if edit in self._under_validation:
                    self._under_validation[candidate] = self._under_validation.pop(edit)
            case CandidateProposed(operator=operator, candidate=candidate, attributes=attributes):
                for way, its in OPERATORS.items():
                    if operator == its:
                        self._under_validation[candidate] = way
                        if attributes.get("of_one_edit"):
                            self._of_one_edit.add(candidate)
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
        if best is not None and (not self._bests or self._bests[-1][1] != best.id):
            self._bests.append((update.version, best.id))
        for change in update.changes:
            match change:
                case Add(candidate=Candidate(id=name), status="confirmed" | "rejected") | Move(candidate_id=name):
                    self._decided(name, better=best is not None and best.id == name)
                case _:  # one that was released early is still under validation
                    pass

    def _decided(self, candidate: str, *, better: bool) -> None:
        way = self._under_validation.pop(candidate, None)
        if way is not None:
            success = better and candidate not in self._of_one_edit
            self.success[way] += LATEST * (success - self.success[way])
            self._of_one_edit.discard(candidate)

    def way(self) -> Way:
        """The way that has done best of late, the first of those that did equally well."""
        return max(self.success, key=lambda way: max(self.success[way], self._least if way == "each" else 0.0))

    def was_best(self, candidate: str, version: int) -> bool:
        """Whether a candidate was the best one at this version of the pool."""
        return next((name for since, name in reversed(self._bests) if since <= version), None) == candidate

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
    """The text of a component before and after an edit, and the edit's number among those that leave together."""

    before: str
    after: str
    number: int


class _Merged(NamedTuple):
    """A text, the edits that could not be worked into it, and those of which it had everything before they came."""

    text: str
    left: Sequence[_Edit] = ()
    overtaken: Sequence[_Edit] = ()


@dataclass(frozen=True)
class GroupCommit:
    """Merges the edits that it is handed together into one candidate, on top of the head.

    A model of the role ``reflection`` is asked for each component, ``most_characters`` of edits at a time, so that no
    prompt grows without end; where it is not to be asked (``asks``), edits are made again line by line. A single edit
    of the head itself needs no merge. If a merge fails, or has nothing of the edits, they are made again line by line,
    too. Those that can't be, as they are new texts, go on as they are, behind the others, and so do fewer edits than
    ``least``.
    """

    head: Head
    most_characters: int = 40_000
    asks: bool = True
    least: int = 1

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        edits = [each.expect(Proposed) for each in item.expect(Gathered).items]
        group = context.decide(Group, lambda: self._group(edits))
        if group.way == "each":
            for emission in _each(edits, context):
                yield emission
            return
        # In a resumed run the head of that time may have failed meanwhile.
        head = context.pool[group.head if context.pool.keeps(group.head) else self.head.id()]
        merged = await run_all([partial(self._merged, name, head, edits, group.way, context) for name in head.artifact])
        artifact = head.artifact.replace(**{name: each.text for name, each in zip(head.artifact, merged, strict=True)})
        left = {edit.number for each in merged for edit in each.left}
        overtaken = {edit.number for each in merged for edit in each.overtaken} - left
        if artifact != head.artifact:
            within = [number for number in range(len(edits)) if number not in left]
            candidate = context.propose(
                artifact,
                parents=[head],
                operator=OPERATORS[group.way],
                attributes={
                    "edits": [group.edits[number] for number in within],
                    **({"of_one_edit": True} if len(within) == len(overtaken) + 1 > 1 else {}),
                },
                born=item.version,
            )
            for number in within:
                reason = OVERTAKEN if number in overtaken else f"merged into {candidate.id}"
                context.reject(edits[number].candidate, reason)
            yield Emit(Proposed(candidate, (), ()), derives=(head.id,))
        elif not left:
            raise Discard(OVERTAKEN)
        for number in sorted(left):
            yield Emit(edits[number], derives=edits[number].candidate.parents)

    def _group(self, edits: Sequence[Proposed]) -> Group:
        names = tuple(edit.candidate.id for edit in edits)
        return Group(head=self.head.id(), edits=names, way=self.head.way() if len(edits) >= self.least else "each")

    async def _merged(
        self, component: str, head: Candidate, edits: Sequence[Proposed], way: Way, context: StageContext
    ) -> _Merged:
        """The head's text of a component with the edits worked in."""
        text = head.artifact[component]
        changes, overtaken = _distinct(
            [change for number, edit in enumerate(edits) if (change := _change(number, edit, component, context))]
        )
        if way == "lines" or not self.asks:
            by_lines = _by_lines(text, changes)
            if len(by_lines.text) <= context.templates.longest(text):  # else a model says it all in fewer words
                text, changes = by_lines.text, by_lines.left
                overtaken = [*overtaken, *by_lines.overtaken]
        if not self.asks:
            return _Merged(text, changes, overtaken)
        left: list[_Edit] = []
        for number, part in enumerate(_parts(changes, self.most_characters)):
            merged = await _merge(text, part, f"{component}/{number}", head, context)
            text, left, overtaken = merged.text, [*left, *merged.left], [*overtaken, *merged.overtaken]
        return _Merged(text, left, overtaken)


def _each(edits: Sequence[Proposed], context: StageContext) -> Generator[Emit]:
    """The edits as they are, and of those with the same texts the first."""
    first = {edit.candidate.artifact.id: edit for edit in reversed(edits)}
    for edit in edits:
        if first[edit.candidate.artifact.id] is edit:
            yield Emit(edit, derives=edit.candidate.parents)
        else:
            context.reject(edit.candidate, OVERTAKEN)


def _change(number: int, edit: Proposed, component: str, context: StageContext) -> _Edit | None:
    """What an edit did to a component, if anything."""
    origin = context.pool[edit.candidate.parents[0]].artifact if edit.origin is None else edit.origin
    change = _Edit(origin[component], edit.candidate.artifact[component], number)
    return None if change.before == change.after else change


def _distinct(changes: Sequence[_Edit]) -> tuple[Sequence[_Edit], Sequence[_Edit]]:
    """The first edit that came to each text, and the others."""
    first = {change.after: change for change in reversed(changes)}
    return (
        [change for change in changes if first[change.after] is change],
        [change for change in changes if first[change.after] is not change],
    )


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


async def _merge(current: str, edits: Sequence[_Edit], name: str, head: Candidate, context: StageContext) -> _Merged:
    """The current text with the edits worked in: by a model, unless there is only one, of this very text."""
    if len(edits) == 1 and edits[0].before == current:
        return _Merged(edits[0].after)
    component, _, _ = name.rpartition("/")
    about: dict[str, JSON] = {"component": component, "merge": f"group {name}", "texts": len(edits)}
    merged = await try_merging(
        merge_edits_prompt(context.templates, component, current, [(edit.before, edit.after) for edit in edits]),
        before=current,
        key=f"group/{name}",
        candidate=head.id,
        context=context,
        **about,
    )
    if merged is not None and merged != current:
        if _has_something_of(edits, merged, current):
            return _Merged(merged)
        context.log("merge.failed", **about, reason="the merged text has nothing of what the edits added")
    by_lines = _by_lines(current, edits)
    return by_lines if len(by_lines.text) <= context.templates.longest(current) else _Merged(current, edits)


def _has_something_of(edits: Sequence[_Edit], merged: str, current: str) -> bool:
    """Whether a merged text has a word that an edit added. Edits that only took words out tell nothing."""
    added = {word for edit in edits for word in edit.after.split()} - set(current.split())
    return not added or not added.isdisjoint(merged.split())


def _by_lines(current: str, edits: Sequence[_Edit]) -> _Merged:
    """The current text with the edits made again on it, without those that are new texts rather than edits."""
    text, rewrites, overtaken = current, [], []
    for edit in edits:
        again = edit_again(edit.before, edit.after, text)
        if again is None:
            rewrites.append(edit)
        elif again == text:
            overtaken.append(edit)
        else:
            text = again
    return _Merged(text, rewrites, overtaken)
