"""Lineages that are planted: of each sentence it is known in which candidate and by which call it came in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from flowevolve.page.blame.origins import Part, Step

COMMON = re.findall(
    r"\w+",
    ("the a of to in and for with that is are be each every any all as on by it its your this from or not if when"),
)
SUBJECTS = re.findall(
    r"\w+",
    (
        "answer letter reader date total table paragraph quote source unit figure name greeting summary invoice refund "
        "deadline budget customer safety policy delay number step proof question entity bridge passage title list reason "
        "margin currency footnote heading comma colon bullet example result guess check draft tone promise apology"
    ),
)
VERBS = re.findall(
    r"\w+",
    (
        "write state check quote repeat count compare explain avoid begin end name mark keep drop round convert verify "
        "translate shorten order group cite mention skip prefer use give show ask refuse confirm separate"
    ),
)
MANNERS = re.findall(
    r"\w+", "twice briefly plainly carefully first last exactly again early always never fully once openly"
)
FORMS: tuple[str, ...] = (
    "Use the word {subject!r} at least {number} times.",
    "Do not use the word {subject!r}.",
    "Include these keywords in the answer: {subject!r}, {other!r}.",
    "Write at least {number} words about the {subject}.",
    "If the {subject} is missing, {verb} the {other}.",
)
"""Sentences of one form have most words in common and say different things."""


@dataclass(frozen=True)
class Said:
    """A sentence, the candidate in which it came in, and the call that wrote it."""

    text: str
    origin: str
    call: int | None = None


Texts = tuple[Said, ...]


@dataclass(frozen=True)
class Planted:
    """A lineage, and what is true of the sentences of each candidate, in their order."""

    steps: tuple[Step, ...]
    truth: Mapping[str, Texts]


def plant_prompts(random: Random, candidates: int) -> Planted:
    """Prompts that grow by edits, merges, groups of two to eight edits, copies and prunes."""
    return _Garden(random, _sentence, _reword, _prose).grow(candidates)


def plant_rewrites(random: Random, candidates: int) -> Planted:
    """Long prompts, of which some are written anew, or reworded, as a whole."""
    return _Garden(random, _sentence, _reword, _prose).grow(candidates, length=60, rewrites=True)


def plant_programs(random: Random, candidates: int) -> Planted:
    """Programs, of which a changed line is a new one."""
    return _Garden(random, _code, None, "\n".join, by_line=True).grow(candidates)


class _Garden:
    def __init__(
        self,
        random: Random,
        make: Callable[[Random], str],
        reword: Callable[[Random, str], str] | None,
        lay_out: Callable[[Sequence[str]], str],
        *,
        by_line: bool = False,
    ) -> None:
        self.random = random
        self.make = make
        self.reword = reword
        self.lay_out = lay_out
        self.by_line = by_line
        self.steps: list[Step] = []
        self.truth: dict[str, Texts] = {}
        self.calls = 0

    def grow(self, candidates: int, length: int = 12, *, rewrites: bool = False) -> Planted:
        """A lineage of at least so many candidates; the first one has up to ``length`` sentences, or as many."""
        size = length if rewrites else self.random.randint(1, length)
        self.add(tuple(Said(self.make(self.random), "c0") for _ in range(size)), ())
        ways = [self.edit, self.edit, self.edit, self.group, self.merge, self.copy, self.prune, self.gather]
        ways += [self.rewrite, self.polish] if rewrites else []
        while len(self.steps) < candidates:
            self.random.choice(ways)()
        return Planted(tuple(self.steps), self.truth)

    def add(self, texts: Texts, sources: Sequence[str], parts: Sequence[Part] = ()) -> str:
        name = self.next_name()
        text = self.lay_out([said.text for said in texts])
        self.steps.append(Step(name, {"prompt": text}, tuple(sources), tuple(parts), self.by_line))
        self.truth[name] = texts
        return name

    def next_name(self) -> str:
        return f"c{len(self.steps)}"

    def parent(self) -> str:
        """One of the later candidates, as a rule."""
        names = list(self.truth)
        return self.random.choice(names[-8:] if self.random.random() < 0.8 else names)

    def call(self) -> int:
        self.calls += 1
        return self.calls

    def part(self, call: int, texts: Sequence[str]) -> Part:
        reply = "The feedback shows what to change.\n```\n" + "\n".join(texts) + "\n```"
        return Part((call,), reply, (f"example-{call}",))

    def changed(self, texts: Texts, call: int) -> Texts:
        """After one to four changes by a model, in the candidate that comes next."""
        now = list(texts)
        for _ in range(self.random.randint(1, 4)):
            place = self.random.randrange(len(now) + 1)
            match self.random.choice(("add", "add", "reword", "drop", "move", "repeat")):
                case "reword" if place < len(now):
                    now[place] = self.reworded(now[place], call)
                case "drop" if place < len(now) > 1:
                    del now[place]
                case "move" if place < len(now):
                    now.insert(self.random.randrange(len(now)), now.pop(place))
                case "repeat" if place < len(now):
                    now.append(self.repeated(now[place], call))
                case _:
                    now.insert(place, Said(self.make(self.random), self.next_name(), call))
        return tuple(now)

    def repeated(self, said: Said, call: int) -> Said:
        return Said(said.text, self.next_name(), call) if self.by_line else said

    def reworded(self, said: Said, call: int) -> Said:
        if self.reword is None:
            return Said(self.make(self.random), self.next_name(), call)
        return replace(said, text=self.reword(self.random, said.text))

    def edit(self) -> str:
        return self.edit_of(self.parent())

    def edit_of(self, parent: str) -> str:
        call = self.call()
        texts = self.changed(self.truth[parent], call)
        return self.add(texts, [parent], [self.part(call, [said.text for said in texts])])

    def rewrite(self) -> None:
        parent, call = self.parent(), self.call()
        texts = tuple(Said(self.make(self.random), self.next_name(), call) for _ in self.truth[parent])
        self.add(texts, [parent], [self.part(call, [said.text for said in texts])])

    def polish(self) -> None:
        """Most sentences are reworded at once."""
        parent, call = self.parent(), self.call()
        texts = tuple(self.reworded(said, call) if self.random.random() < 0.7 else said for said in self.truth[parent])
        self.add(texts, [parent], [self.part(call, [said.text for said in texts])])

    def prune(self) -> None:
        parent = self.parent()
        texts = self.truth[parent]
        kept = tuple(said for said in texts if self.random.random() > 0.3)
        self.add(kept or texts, [parent])

    def copy(self) -> None:
        parent = self.parent()
        self.add(self.truth[parent], [parent])

    def merge(self) -> None:
        """Two candidates in one, without a model."""
        first, second = self.parent(), self.parent()
        self.add(self.joined(self.truth[first], (), self.truth[second]), list(dict.fromkeys([first, second])))

    def group(self) -> None:
        """Edits of one candidate or of several, worked into the newest or another head, by a model now and then."""
        base, head = self.parent(), self.parent()
        bases = [base if self.random.random() < 0.8 else self.parent() for _ in range(self.random.randint(2, 8))]
        edits = [(each, self.edit_of(each)) for each in bases]
        texts = self.truth[head]
        for before, after in edits:
            texts = self.joined(texts, self.truth[before], self.truth[after])
        call = self.call()
        if self.reword is not None and self.random.random() < 0.5:
            texts = tuple(self.reworded(said, call) if self.random.random() < 0.1 else said for said in texts)
        part = self.part(call, [said.text for said in texts])
        self.add(texts, [head, *(after for _, after in edits if after != head)], [part])

    def gather(self) -> None:
        """Several reflections on one parent, of which a last call makes one text (Combee)."""
        parent = self.parent()
        texts = self.truth[parent]
        parts = []
        for _ in range(self.random.randint(2, 5)):
            call = self.call()
            changed = self.changed(self.truth[parent], call)
            texts = self.joined(texts, self.truth[parent], changed)
            parts.append(self.part(call, [said.text for said in changed]))
        parts.append(self.part(self.call(), [said.text for said in texts]))
        self.add(texts, [parent], parts)

    def joined(self, onto: Texts, before: Texts, after: Texts) -> Texts:
        """A text with what another one gained, lost and reworded."""
        was, known = {said.text for said in before}, {said.text for said in onto}
        now = {said.text for said in after}
        texts = [said for said in onto if said.text not in was or said.text in now or self.random.random() < 0.3]
        for said in after:
            if said.text not in was and said.text not in known:
                texts.insert(self.random.randrange(len(texts) + 1), said)
        return tuple(texts) or onto


def _sentence(random: Random) -> str:
    if random.random() < 0.3:
        return random.choice(FORMS).format(
            subject=random.choice(SUBJECTS),
            other=random.choice(SUBJECTS),
            verb=random.choice(VERBS),
            number=random.randint(2, 200),
        )
    words = [random.choice(VERBS)]
    for _ in range(random.randint(2, 7)):
        words += [*random.sample(COMMON, random.randint(0, 2)), random.choice((*SUBJECTS, *MANNERS, *VERBS))]
    return " ".join(words).capitalize() + "."


def _reword(random: Random, text: str) -> str:
    """A word or two are put in, left out or replaced."""
    words = text[:-1].split()
    for _ in range(random.randint(1, 2) if len(words) > 5 else 1):
        place = random.randrange(len(words))
        match random.choice(("in", "out", "other")):
            case "in":
                words.insert(place, random.choice((*COMMON, *MANNERS)))
            case "out" if len(words) > 3:
                del words[place]
            case _:
                words[place] = random.choice((*COMMON, *SUBJECTS, *MANNERS))
    return (" ".join(words)[:1].upper() + " ".join(words)[1:]) + random.choice((".", ".", "!"))


def _prose(texts: Sequence[str]) -> str:
    """A list with short paragraphs in it, laid out in the same way each time."""
    lines = [f"- {text}" if len(text) % 3 else text for text in texts]
    return "".join(line + (" " if len(line) % 5 == 0 and not line.startswith("- ") else "\n") for line in lines)


def _code(random: Random) -> str:
    name = random.choice(SUBJECTS)
    lines = (
        f"    {name} = {random.choice(VERBS)}({random.choice(SUBJECTS)}, {random.random():.3f})",
        f"    for {name[0]} in range({random.randint(2, 9)}):",
        f"        {name} += {random.randint(1, 9)}",
        f"    return {name}",
        "    else:",
    )
    return random.choices(lines, (6, 2, 2, 1, 1))[0]
