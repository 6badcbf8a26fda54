"""Where a LEVI run stands: its opening, what candidates are scored on, advice, finalists. A function of the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil
from typing import cast

from flowevolve.budget import Cost
from flowevolve.llm.types import JSON
from flowevolve.pool import Add, Annotate, Candidate, Note, Update

PLAN, UNWRITTEN, PROXY, ADVICE = "levi.plan", "levi.unwritten", "levi.proxy", "levi.advice"
"""Kinds of notes."""
FULL = "levi.full"
"""The attribute of a candidate that was scored on all examples after a proxy benchmark: these scores, by example."""
COST = "levi.cost"
"""The attribute of a candidate of a run with a proxy benchmark that has what its evaluation cost."""
_REMEMBERED = 8
"""Failures that are remembered, the latest."""


def in_full(candidate: Candidate) -> Candidate | None:
    """With its scores on all examples; None if it was no finalist."""
    scores = candidate.attributes.get(FULL)
    return None if scores is None else candidate.scored(cast("dict[str, float]", scores))


def plan_note(seeds: int, tries: int, variants: int) -> Note:
    """How many diverse seeds there are to be, tries at each, and variants of each."""
    return Note(PLAN, {"seeds": seeds, "tries": tries, "variants": variants})


class Progress:
    """The opening is the time until the last diverse seed is there, or was tried in vain."""

    def __init__(self) -> None:
        self.variants = 0
        """Of each seed."""
        self.own: str | None = None
        """The task's own seed, if it works."""
        self.seeds: list[str] = []
        """Diverse seeds that work, oldest first."""
        self.examples: tuple[str, ...] | None = None
        """What candidates are scored on now; None: all there is."""
        self.advice = ""
        self.failures: deque[str] = deque(maxlen=_REMEMBERED)
        """Ids of the latest candidates that failed."""
        self.finalists: dict[str, None] = {}
        """Ids of candidates that were scored on all examples after a proxy benchmark; none once an elite came later."""
        self.evaluated = Cost()
        """What evaluations have cost, of those candidates that say."""
        self.in_vain = 0
        """Seeds that were given up after all their tries."""
        self.gave_up = False
        """Whether the last try was one seed's last, in vain."""
        self._first: str | None = None
        self._open = 0
        self._tries = 1
        self._failed: list[str] = []
        self._wasted = 0

    @property
    def opening(self) -> bool:
        """Whether another seed is to be written."""
        return self._open > 0

    @property
    def shown(self) -> Sequence[str]:
        """What the next seed is to be unlike: the task's own, those that work, the last that failed."""
        return [*([] if self._first is None else [self._first]), *self.seeds, *self._failed]

    def whole(self, examples: int) -> Cost:
        """What an evaluation on so many examples is expected to cost, by what rollouts have cost so far."""
        rollouts = max(1, self.evaluated.rollouts)
        tokens = ceil(self.evaluated.tokens / rollouts * examples)
        dollars = self.evaluated.dollars / rollouts * examples
        return Cost(rollouts=examples, tokens=tokens, dollars=dollars, evaluations=1)

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status=status):
                    self._added(candidate)
                    if status == "confirmed":
                        self.finalists.clear()
                case Note(kind=kind, data=data):
                    self._noted(kind, data)
                case Annotate(candidate_id=name, attributes=attributes) if FULL in attributes:
                    self.finalists[name] = None
                case _:
                    pass

    def _added(self, candidate: Candidate) -> None:
        self.evaluated += Cost.of(candidate.attributes.get(COST, {}))
        failed = candidate.attributes.get("failure") is not None
        if failed:
            self.failures.append(candidate.id)
        if candidate.operator == "seed" and self._first is None:
            self._first = candidate.id
            self.own = None if failed else candidate.id
        elif candidate.operator == "diverse" and failed:
            self._failed.append(candidate.id)
            self._tried()
        elif candidate.operator == "diverse":
            self.seeds.append(candidate.id)
            self.gave_up = False
            self._next()

    def _noted(self, kind: str, data: Mapping[str, JSON]) -> None:
        if kind == PLAN:
            self._open, self._tries, self.variants = (cast(int, data[name]) for name in ("seeds", "tries", "variants"))
        elif kind == UNWRITTEN and data.get("last"):
            self._open, self.gave_up = 0, False
        elif kind == UNWRITTEN:
            self._wasted += 1
            self._tried()
        elif kind == PROXY:
            self.examples = tuple(cast("list[str]", data["examples"]))
        elif kind == ADVICE:
            self.advice = str(data["text"])

    def _tried(self) -> None:
        self.gave_up = len(self._failed) + self._wasted >= self._tries
        if self.gave_up:
            self.in_vain += 1
            self._next()

    def _next(self) -> None:
        self._open -= 1
        self._failed, self._wasted = [], 0
