"""GEPA's pruning: lines that came along with better ones, and help nobody, are taken out of the best candidate again.

No model is asked which lines these are. Those that the fewest reflections wrote are tried first, several at a time;
where the text is worse without them, each half of them is tried, as in delta debugging.
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
"""How many passages are taken out at once at most."""
AGAIN = 3
"""Further attempts on the same candidate follow in so many times fewer flows than the first."""
MOST_PASSAGES = 50_000
"""The latest so many passages that reflections wrote are remembered, and those of candidates."""
FENCE = "```"
WRITING = ("reflect", "aggregate")
"""The operators of proposals that reflections made: GEPA's, and Combee's."""


class Passage(NamedTuple):
    """A line of a component, with the indented lines below it, or a fenced block."""

    component: str
    text: str


def split(text: str) -> list[str]:
    """The passages of a text, and its empty lines; joined by newlines they are the text again."""
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
    """What can be taken out of an artifact, in its order, each once."""
    every = (Passage(name, part) for name, text in texts.items() for part in split(text) if part.strip())
    return list(dict.fromkeys(every))


def without(artifact: Artifact, removed: Iterable[Passage]) -> Artifact:
    """The artifact without these passages, wherever they stand."""
    gone = set(removed)
    texts = {
        name: "\n".join(part for part in split(text) if Passage(name, part) not in gone)
        for name, text in artifact.items()
    }
    return artifact.replace(**texts)


class _Attempt(NamedTuple):
    """What is taken out, and the candidate that was the best as this began."""

    removed: tuple[Passage, ...]
    best: str | None


class Pruning:
    """What to take out of the best candidate next, and when. It is a function of the log.

    An attempt is due when ``every`` flows have begun since the best candidate changed: as long as edits help, nothing
    is spent on it. Once they don't, an attempt costs about as much as an edit, and the next ones are due a third of
    that after the last one ended. Passages of the seed are the user's, and stay. A single passage without which the
    text was worse is not tried again, unless scores vary between repeats, so that it may have been chance: then it is,
    when nothing else is left to try.
    """

    def __init__(self, seed: Artifact, best: Callable[[], Candidate | None], every: int) -> None:
        self._seed = frozenset(passages(seed))
        self._best = best
        self._every = every
        self._idle = 0
        """Flows since the last attempt and the last change of the best candidate."""
        self._failures = 0
        """Attempts that failed since the last change of the best candidate."""
        self._vary = False
        """Whether scores are known to vary between repeats."""
        self._last: str | None = None
        """The best candidate as of the latest commit."""
        self._open: dict[int, _Attempt] = {}
        """By flow."""
        self._halves: list[tuple[Passage, ...]] = []
        self._kept: set[Passage] = set()
        """What the text was worse without."""
        self._written: dict[str, frozenset[Passage]] = {}
        """What there is in each candidate that further ones may be made from."""
        self._support: Counter[Passage] = Counter()
        """How many of the proposals that reflections made have added a passage, those that were written first first."""
        self._room = 2 * MOST_PASSAGES
        """How many there may be until some are forgotten."""

    def begin(self, flow: int, removed: Sequence[Passage]) -> None:
        """A flow begins; it takes these passages out, or none if it does something else."""
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
        self._open.pop(flow_of(update.cause), None)  # it is better without them

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
        """Where there is no room, forget the passages that were written first, unless a candidate has them."""
        if len(self._support) < self._room:
            return
        held = frozenset[Passage]().union(*self._written.values())
        for passage in list(self._support)[:-MOST_PASSAGES]:
            if passage not in held:
                del self._support[passage]
        self._room = len(self._support) + MOST_PASSAGES

    def _failed(self, attempt: _Attempt) -> None:
        """Nothing is learnt where another candidate became the best meanwhile, which was then the one to beat."""
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
        """What to take out of the best candidate now: nothing where no attempt is due."""
        best = self._best()
        every = max(1, self._every // AGAIN) if self._failures else self._every
        if best is None or self._open or self._idle < every:
            return ()
        there = passages(best.artifact)
        found = next(self._waiting(there), None) or self._new(there, self._kept)
        return found or (self._new(there, set()) if self._vary else ())

    def _waiting(self, there: Sequence[Passage]) -> Iterator[tuple[Passage, ...]]:
        """Halves that failed as a whole, as far as they are still there."""
        return (half for half in self._halves if set(half) <= set(there))

    def _new(self, there: Sequence[Passage], kept: AbstractSet[Passage]) -> tuple[Passage, ...]:
        """Of the passages that are not ``kept``, those that the fewest reflections wrote, the latest ones first."""
        stays = {*self._seed, *kept, *_firsts(there)}
        unknown = [passage for passage in reversed(there) if passage not in stays]
        least = min((self._support[passage] for passage in unknown), default=0)
        return tuple(passage for passage in unknown if self._support[passage] <= max(1, least))[:MOST]


def _firsts(there: Sequence[Passage]) -> set[Passage]:
    """The first passage of each component, which stays, so that no text is ever empty."""
    return set({passage.component: passage for passage in reversed(there)}.values())
