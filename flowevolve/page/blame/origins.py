"""Origins: where each sentence of a candidate's text came from.

A sentence comes from the oldest candidate to which it can be traced: through copies, moves and light rewordings, and
through merges to the edit that introduced it. A program is traced line by line, and a line that was changed is a new
one, as in version control.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from flowevolve.page.blame.sentences import Sentence, cut_lines, cut_sentences, words

How = Literal["seed", "edit", "reworded"]
LEAST_ALIKE = 0.5
"""The least similarity of a sentence to one that it rewords."""
CLEARLY = 0.6
"""The largest distance of a sentence to the one that it rewords, as a share of its distance to the next similar one of
that text. If many sentences change in one step, some are alike by chance, but then usually like several.
"""
ALMOST_THE_SAME = 0.8
"""Like `LEAST_ALIKE`, for a sentence that is still in the text besides its rewording."""
LEAST_KEPT = 0.8
"""The least share of a sentence that must be in another one, for it to count as a piece of that."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one piece of work contributed to a step: the ids of its calls, their replies, and the examples that they
    were shown.
    """

    calls: tuple[int, ...]
    reply: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """How a candidate was made.

    ``texts`` are its texts by component. ``sources`` are the earlier candidates that the texts were made from. If a
    sentence is in several of them, the first one counts: the head of a group comes before the group's edits. ``parts``
    are the pieces of work behind it, the earliest first.
    """

    candidate: str
    texts: Mapping[str, str]
    sources: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    by_line: bool = False
    """Whether the texts are programs."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A sentence of a text, from character ``start`` up to ``end``; ``origin`` is the candidate that introduced it."""

    start: int
    end: int
    origin: str
    how: How
    """seed (it was in a text that was made from nothing), edit, or reworded (it was introduced as another sentence)."""
    similarity: float
    """The similarity of the sentence to the one that was introduced, from 0 to 1."""
    calls: tuple[int, ...]
    """The calls of the origin that wrote it."""
    examples: tuple[str, ...]
    """The examples that those calls were shown."""
    path: tuple[str, ...]
    """The candidates through which it came, from the origin to this one."""


class _Place(NamedTuple):
    """A sentence of a candidate's text."""

    candidate: str
    number: int


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that was cut into sentences, and the places of each key in it."""

    sentences: tuple[Sentence, ...]
    places: Mapping[str, list[int]]

    @classmethod
    def of(cls, text: str, by_line: bool) -> _Text:
        sentences = tuple(cut_lines(text) if by_line else cut_sentences(text))
        places: dict[str, list[int]] = {}
        for number, sentence in enumerate(sentences):
            places.setdefault(sentence.key, []).append(number)
        return cls(sentences, places)


class _Weights:
    """How similar sentences are: the share of the words that they have in common, where rare words count for more.

    Sentences of one form, such as "Use the word X", have most words in common and yet say different things.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._words: dict[str, tuple[str, ...]] = {}
        self._totals: dict[str, float] = {}
        counts = Counter(word for key in dict.fromkeys(keys) for word in self.words(key))
        self._weights = {word: math.log((1 + len(self._words)) / count) for word, count in counts.items()}
        self._unknown = math.log(1 + len(self._words))

    def words(self, key: str) -> tuple[str, ...]:
        """The different words of a sentence, always in the same order."""
        found = self._words.get(key)
        if found is None:
            found = self._words[key] = tuple(dict.fromkeys(words(key)))
        return found

    def weight(self, word: str) -> float:
        return self._weights.get(word, self._unknown)

    def total(self, key: str) -> float:
        found = self._totals.get(key)
        if found is None:
            found = self._totals[key] = self.shared(key, self.words(key))
        return found

    def shared(self, key: str, others: Container[str]) -> float:
        """The weight of the words of a sentence that are among others."""
        return sum(self.weight(word) for word in self.words(key) if word in others)

    def similarity(self, one: str, other: str) -> float:
        """From 0 to 1."""
        if one == other:
            return 1.0
        both = self.total(one) + self.total(other)
        return 2 * self.shared(one, self.words(other)) / both if both else 0.0


class Origins:
    """The origins of all sentences of a lineage. Results are cached.

    Raises:
        ValueError: if a source of a step is no earlier step, or a candidate comes twice.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps: dict[str, Step] = {}
        for step in steps:
            unknown = [name for name in step.sources if name not in self._steps]
            if unknown or step.candidate in self._steps:
                raise ValueError(f"candidate {step.candidate!r}: comes twice, or before its sources {unknown}")
            self._steps[step.candidate] = step
        self._order = {name: number for number, name in enumerate(self._steps)}
        self._cut: dict[tuple[str, bool], _Text] = {}
        self._links: dict[tuple[str, str], tuple[_Place | None, ...]] = {}
        self._replies: dict[str, frozenset[str]] = {}
        self._weights = _Weights(
            sentence.key
            for step in self._steps.values()
            for name in step.texts
            for sentence in self._text(step, name).sentences
        )

    def of(self, candidate: str, component: str) -> tuple[Origin, ...]:
        """The sentences of a text in their order, each with where it came from.

        Raises:
            KeyError: if there is no such candidate, or it has no such component.
        """
        step = self._steps[candidate]
        sentences = self._text(step, component).sentences
        self._follow(candidate, component)
        return tuple(self._origin(_Place(candidate, number), component) for number in range(len(sentences)))

    def _text(self, step: Step, component: str) -> _Text:
        text = step.texts[component]
        found = self._cut.get((text, step.by_line))
        if found is None:
            found = self._cut[text, step.by_line] = _Text.of(text, step.by_line)
        return found

    def _follow(self, candidate: str, component: str) -> None:
        """Find the links of a candidate's text and of all that it was made from, the oldest first."""
        wanted, open_names = {candidate}, [candidate]
        while open_names:
            for name in self._sources(self._steps[open_names.pop()], component):
                if name not in wanted and (name, component) not in self._links:
                    wanted.add(name)
                    open_names.append(name)
        for name in sorted(wanted, key=self._order.__getitem__):
            if (name, component) not in self._links:
                self._links[name, component] = self._link(self._steps[name], component)

    def _sources(self, step: Step, component: str) -> list[str]:
        return [name for name in dict.fromkeys(step.sources) if component in self._steps[name].texts]

    def _link(self, step: Step, component: str) -> tuple[_Place | None, ...]:
        """For each sentence, the one that it was taken from; None for a new one."""
        text = self._text(step, component)
        sources = {name: self._text(self._steps[name], component) for name in self._sources(step, component)}
        links: list[_Place | None] = [None] * len(text.sentences)
        for name, source in sources.items():
            open_numbers = [number for number, link in enumerate(links) if link is None]
            for number, place in _copies(text, source, open_numbers, once=step.by_line).items():
                links[number] = _Place(name, place)
        if not step.by_line:
            for number, origin in _rewordings(text, sources, links, self._weights):
                links[number] = origin
        return tuple(links)

    def _origin(self, place: _Place, component: str) -> Origin:
        path = [place]
        while (before := self._links[path[-1].candidate, component][path[-1].number]) is not None:
            path.append(before)
        step = self._steps[path[-1].candidate]
        sentence, first = self._sentence(place, component), self._sentence(path[-1], component)
        similarity = self._weights.similarity(sentence.key, first.key)
        part = self._part(step, first.key)
        how: How = "reworded" if sentence.key != first.key else "edit" if step.sources else "seed"
        return Origin(
            *sentence.span,
            step.candidate,
            how,
            similarity,
            () if part is None else part.calls,
            () if part is None else part.examples,
            tuple(each.candidate for each in reversed(path)),
        )

    def _sentence(self, place: _Place, component: str) -> Sentence:
        return self._text(self._steps[place.candidate], component).sentences[place.number]

    def _part(self, step: Step, key: str) -> Part | None:
        """The part of a step whose reply has most of a sentence, or the first of several; None if no reply has half of
        it. A step's only part counts in any case.
        """
        if len(step.parts) == 1:
            return step.parts[0]
        most, found = self._weights.total(key) / 2, None
        for part in step.parts:
            has = self._weights.shared(key, self._words_of_reply(part.reply))
            if has > most or (found is None and has == most > 0):
                most, found = has, part
        return found

    def _words_of_reply(self, reply: str) -> frozenset[str]:
        found = self._replies.get(reply)
        if found is None:
            found = self._replies[reply] = frozenset(words(reply))
        return found


def _copies(text: _Text, source: _Text, open_numbers: Sequence[int], *, once: bool) -> Mapping[int, int]:
    """Which of the open sentences are copied from a source: their places there, by number. With ``once``, no place is
    taken twice.

    Sentences that are in both texts in the same order come first, as in a diff, then those that were moved.
    """
    mine, theirs = [sentence.key for sentence in text.sentences], [sentence.key for sentence in source.sentences]
    in_question = dict.fromkeys(number for number in open_numbers if mine[number] in source.places)
    found = dict[int, int]()
    for place, number, length in SequenceMatcher(None, theirs, mine, autojunk=False).get_matching_blocks():
        found |= {number + more: place + more for more in range(length) if number + more in in_question}
    used = set(found.values()) if once else set[int]()
    for number in in_question:
        free = [place for place in source.places[mine[number]] if place not in used]
        if number not in found and free:
            found[number] = free[0]
            used |= {free[0]} if once else set()
    return found


def _rewordings(
    text: _Text, sources: Mapping[str, _Text], links: Sequence[_Place | None], weights: _Weights
) -> Iterator[tuple[int, _Place]]:
    """The sentences that reword one of a source, and which one.

    A sentence is reworded only by the one that is most similar to it, and by others that are pieces of it.
    """
    places: dict[str, _Place] = {}
    for name, source in sources.items():
        for key, numbers in source.places.items():
            places.setdefault(key, _Place(name, numbers[0]))
    open_numbers = [number for number, link in enumerate(links) if link is None]
    pairs = sorted(_alike(open_numbers, text, places, weights), key=lambda pair: (-pair.similarity, pair.number))
    linked, used = set[int](), set[str]()
    for pair in _clear(pairs, places):
        if pair.number not in linked and (pair.key not in used or pair.kept >= LEAST_KEPT):
            linked.add(pair.number)
            used.add(pair.key)
            yield pair.number, places[pair.key]


class _Pair(NamedTuple):
    """A sentence, by its number, and one that it may reword. ``kept`` is how much of the first is in the second."""

    number: int
    key: str
    similarity: float
    kept: float


def _clear(pairs: Sequence[_Pair], places: Mapping[str, _Place]) -> Iterator[_Pair]:
    """The pairs without a rival, which is another sentence of the same source that is about as similar. ``pairs`` begin
    with the most similar.
    """
    by_rank: dict[tuple[int, str], list[float]] = {}
    for pair in pairs:
        by_rank.setdefault((pair.number, places[pair.key].candidate), []).append(pair.similarity)
    for pair in pairs:
        best, *others = by_rank[pair.number, places[pair.key].candidate]
        if pair.similarity == best and (not others or 1 - best <= CLEARLY * (1 - others[0])):
            yield pair


def _alike(numbers: Iterable[int], text: _Text, keys: Iterable[str], weights: _Weights) -> Iterator[_Pair]:
    """The pairs that are similar enough."""
    holders: dict[str, list[str]] = {}
    for key in keys:
        for word in weights.words(key):
            holders.setdefault(word, []).append(key)
    for number in numbers:
        mine = text.sentences[number].key
        shared: dict[str, float] = {}
        for word in weights.words(mine):
            for key in holders.get(word, ()):
                shared[key] = shared.get(key, 0.0) + weights.weight(word)
        for key, weight in shared.items():
            similarity = 2 * weight / (weights.total(mine) + weights.total(key))
            if similarity >= (ALMOST_THE_SAME if key in text.places else LEAST_ALIKE):
                yield _Pair(number, key, similarity, weight / weights.total(mine))
