"""GEPA's pruning: take lines out of the best candidate that came in together with useful ones and do not help.

No model is asked which lines these are. Pruning first takes out the lines that the fewest reflections wrote, several at
a time. If the text is worse without them, it tries each half of them, as in delta debugging.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from typing import NamedTuple

from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected, FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import Annotate, Candidate, Update

MOST = 4
"""At most this many passages are taken out at once."""
AGAIN = 3
"""Further attempts on the same candidate are due after the first one's number of flows, divided by this."""
MOST_PASSAGES = 50_000
"""This many of the passages that reflections wrote last are remembered, and all that a candidate still has."""
FENCE = "```"
WRITING = ("reflect", "aggregate")
"""The operators of proposals that reflections wrote: GEPA's and Combee's."""


class Passage(NamedTuple):
    """A line of a component, with the indented lines below it, or a fenced block."""

    component: str
    text: str


def split(text: str) -> list[str]:
    """Split a text into its passages and its empty lines. Joined by newlines, they give the text again."""
    found: list[str] = []
    fenced = False
    for line in text.split("\n"):
        goes_on = fenced or (line[:1] in (" ", "\t") and line.strip() != "" and bool(found) and found[-1] != "")
        if line.strip().startswith(FENCE):
            fenced = not fenced
        if goes_on:
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def passages(texts: Mapping[str, str]) -> list[Passage]:
    """The passages of an artifact in their order, each once."""
    every = (Passage(name, part) for name, text in texts.items() for part in split(text) if part.strip())
    return list(dict.fromkeys(every))


def without(artifact: Artifact, removed: Iterable[Passage]) -> Artifact:
    """The artifact without these passages, wherever they occur."""
    gone = set(removed)
    texts = {
        name: "\n".join(part for part in split(text) if Passage(name, part) not in gone)
        for name, text in artifact.items()
    }
    return artifact.replace(**texts)


class _Attempt(NamedTuple):
    """The passages that are taken out, and the id of the candidate that was the best when the attempt began."""

    removed: tuple[Passage, ...]
    best: str | None


class Pruning:
    """Decides what to take out of the best candidate next, and when. It is a function of the log.

    An attempt is due when ``every`` flows have begun since the best candidate changed, so nothing is spent on pruning
    as long as edits help. An attempt costs about as much as an edit. Further attempts on the same candidate are due
    when a third as many flows have begun since the last one ended. Passages of the seed are the user's and stay. A
    single passage without which the text was worse is tried again only if scores vary between repeats, so that the
    result may have been chance, and only when nothing else is left to try.
    """

    def __init__(self, seed: Artifact, best: Callable[[], Candidate | None], every: int) -> None:
        self._seed = frozenset(passages(seed))
        self._best = best
        self._every = every
        self._idle = 0
        """Flows that have begun since the last attempt ended or the best candidate changed, whichever was later."""
        self._failures = 0
        """Attempts that failed since the last change of the best candidate."""
        self._vary = False
        """Whether scores are known to vary between repeats."""
        self._last: str | None = None
        """The best candidate as of the latest commit."""
        self._open: dict[int, _Attempt] = {}
        """The attempts under way, by flow."""
        self._halves: list[tuple[Passage, ...]] = []
        self._kept: set[Passage] = set()
        """Single passages without which the text was worse."""
        self._written: dict[str, frozenset[Passage]] = {}
        """The passages of each candidate that further ones may be made from."""
        self._support: Counter[Passage] = Counter()
        """How many proposals of reflections have added each passage, in the order in which the passages were first
        written.
        """
        self._room = 2 * MOST_PASSAGES
        """Some passages are forgotten when there are this many in ``_support``."""

    def begin(self, flow: int, removed: Sequence[Passage]) -> None:
        """Note that a flow begins that takes out these passages, or none if it does something else."""
        self._idle += 1
        if removed:
            self._open[flow] = _Attempt(tuple(removed), self._last)
            if self._vary and not self._kept.isdisjoint(removed):
                self._kept.clear()  # all of them are tried once more
            self._halves = [half for half in self._halves if half != tuple(removed)]

    def apply(self, update: Update) -> None:
        self._vary = self._vary or any(
            isinstance(change, Annotate) and change.scores is not None for change in update.changes
        )
        best = self._best()
        if best is None or best.id == self._last:
            return
        self._last, self._idle, self._failures = best.id, 0, 0
        self._open.pop(flow_of(update.cause), None)  # it was better without them: the attempt succeeded

    def apply_event(self, event: Event) -> None:
        match event.body:
            case CandidateProposed(candidate=name, operator=operator, parents=parents, components=components):
                there = passages(components)
                self._written[name] = frozenset(there)
                if operator in WRITING and parents[0] in self._written:
                    before = self._written[parents[0]]
                    self._support.update(passage for passage in there if passage not in before)
                    self._forget()
            case CandidateRejected(candidate=name):
                self._written.pop(name, None)
            case FlowClosed(flow) if flow in self._open:
                self._failed(self._open.pop(flow))
            case _:
                pass

    def _forget(self) -> None:
        """When there are too many passages, forget those that were written first, except those that a candidate has."""
        if len(self._support) < self._room:
            return
        held = frozenset[Passage]().union(*self._written.values())
        for passage in list(self._support)[:-MOST_PASSAGES]:
            if passage not in held:
                del self._support[passage]
        self._room = len(self._support) + MOST_PASSAGES

    def _failed(self, attempt: _Attempt) -> None:
        """Note that an attempt failed. That says nothing about its passages if another candidate became the best
        meanwhile, because the shorter text then had to beat that one.
        """
        self._idle = 0
        self._failures += 1
        removed = attempt.removed
        if attempt.best != self._last:
            return
        if len(removed) == 1:
            self._kept.update(removed)
            return
        middle = len(removed) // 2
        self._halves += [removed[:middle], removed[middle:]]

    def due(self) -> tuple[Passage, ...]:
        """The passages to take out of the best candidate now; none if no attempt is due."""
        best = self._best()
        every = max(1, self._every // AGAIN) if self._failures else self._every
        if best is None or self._open or self._idle < every:
            return ()
        there = passages(best.artifact)
        found = next(self._waiting(there), None) or self._new(there, self._kept)
        return found or (self._new(there, set()) if self._vary else ())

    def _waiting(self, there: Sequence[Passage]) -> Iterator[tuple[Passage, ...]]:
        """Halves of failed attempts whose passages are all still in the text."""
        return (half for half in self._halves if set(half) <= set(there))

    def _new(self, there: Sequence[Passage], kept: AbstractSet[Passage]) -> tuple[Passage, ...]:
        """The passages that the fewest reflections wrote, from the end of the text, at most `MOST`. Passages that are
        ``kept``, come from the seed or are the first of their component are left out.
        """
        stays = {*self._seed, *kept, *_firsts(there)}
        unknown = [passage for passage in reversed(there) if passage not in stays]
        least = min((self._support[passage] for passage in unknown), default=0)
        return tuple(passage for passage in unknown if self._support[passage] <= max(1, least))[:MOST]


def _firsts(there: Sequence[Passage]) -> set[Passage]:
    """The first passage of each component, which stays, so that no text is ever empty."""
    return set({passage.component: passage for passage in reversed(there)}.values())
