"""group commit: edits that wait for validation are merged into one candidate, which is validated once.

This is what a merge queue does for code. Edits that passed their minibatches are rebased onto the newest head and
merged. The head is read when the work begins, and it is optimistic: the newest group under validation, if there is one.
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
"""How edits that leave together become candidates: merged by a model, merged line by line, or each unchanged."""
OPERATORS: Mapping[Way, str] = {"model": "group", "lines": "group_lines"}
LATEST = 0.25
"""The weight of the latest candidate in a success rate."""


class Group(Record, kind="group.departed"):
    """A group that leaves for validation: its edits, by the ids of their candidates, the head onto which they are
    rebased, and the way.
    """

    head: str
    edits: tuple[str, ...]
    way: Way = "model"


class Head:
    """The candidate onto which edits are rebased: the newest group under validation, or else the best candidate. It
    also tracks how well each way to make candidates of edits has done.

    It is a function of the log. ``best`` returns the best confirmed candidate; without ``optimistic``, that is always
    the head.
    """

    def __init__(
        self,
        best: Callable[[], Candidate | None],
        ways: Mapping[Way, float],
        *,
        optimistic: bool = True,
        least: float = 0.0,
    ) -> None:
        """``ways`` maps each permitted way to its initial success rate. A way to merge edits with a success rate below
        ``least`` loses to single edits, however badly these do.
        """
        self._best = best
        self._optimistic = optimistic
        self._least = least
        self._under_validation: dict[str, Way] = {}
        self._of_one_edit: set[str] = set()
        """Groups under validation whose edits all led to the same text: their success is not that of merging."""
        self._bests: list[tuple[int, str]] = []
        """Each candidate that was the best one, with the pool's version at which it became the best."""
        self.success = dict(ways)
        """How often the candidates of each way became the best; recent candidates weigh more."""

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
                case _:  # a candidate released early is still under validation
                    pass

    def _decided(self, candidate: str, *, better: bool) -> None:
        way = self._under_validation.pop(candidate, None)
        if way is not None:
            success = better and candidate not in self._of_one_edit
            self.success[way] += LATEST * (success - self.success[way])
            self._of_one_edit.discard(candidate)

    def way(self) -> Way:
        """The way that has done best recently; of equally good ones, the first."""
        return max(self.success, key=lambda way: max(self.success[way], self._least if way == "each" else 0.0))

    def was_best(self, candidate: str, version: int) -> bool:
        """Whether a candidate was the best at this version of the pool."""
        return next((name for since, name in reversed(self._bests) if since <= version), None) == candidate

    def id(self) -> str:
        """The id of the head.

        Raises:
            LookupError: if no candidate has been confirmed yet.
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
    """A text, the edits that could not be worked into it, and the edits that it already contained."""

    text: str
    left: Sequence[_Edit] = ()
    overtaken: Sequence[_Edit] = ()


@dataclass(frozen=True)
class GroupCommit:
    """Merges edits that it gets together into one candidate, on top of the head.

    For each component a model of the role ``reflection`` merges the edits, at most ``most_characters`` of them at a
    time, so that no prompt grows without bound. Without ``asks``, edits are applied to the head line by line instead. A
    single edit of the head itself needs no merge. If a merge fails, or its text has nothing of the edits, they are
    applied line by line, too. Edits that can't be, because they are new texts, follow unchanged after the group. If
    there are fewer than ``least`` edits, all go on unchanged.
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
        # In a resumed run, the head chosen earlier may have failed meanwhile.
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
            if len(by_lines.text) <= context.templates.longest(text):  # else a model has to say it in fewer words
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
    """Yield the edits unchanged; of several with the same texts, only the first."""
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
    """The first edit that led to each text, and the other edits."""
    first = {change.after: change for change in reversed(changes)}
    return (
        [change for change in changes if first[change.after] is change],
        [change for change in changes if first[change.after] is not change],
    )


def _parts(changes: Sequence[_Edit], most_characters: int) -> Sequence[Sequence[_Edit]]:
    """The edits in their order, in parts of at most this many characters; a longer edit is a part of its own."""
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
    """The current text with the edits worked in: by a model, unless there is only one edit, of this very text."""
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
    """Whether a merged text has a word that an edit added; true if the edits only removed words."""
    added = {word for edit in edits for word in edit.after.split()} - set(current.split())
    return not added or not added.isdisjoint(merged.split())


def _by_lines(current: str, edits: Sequence[_Edit]) -> _Merged:
    """The current text with the edits applied to it, except those that are new texts rather than edits."""
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
