"""How long answers are likely to be, learnt from those that came."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple, Self

from flowevolve.item_ids import WorkPart


class Work(NamedTuple):
    """What a call does: a role at a stage, for one item and, where it has several calls side by side, one key of it.

    The key is an example's id, a component's name: something that comes back with other items.
    """

    role: str
    stage: str
    item: str
    key: str

    @classmethod
    def of(cls, role: str, stage: str, scope_item: str) -> Self:
        """From a `flowevolve.llm.calls.CallScope`, whose item is ``item`` or ``item/key``."""
        item, part = WorkPart.read(scope_item)
        return cls(role, stage, item, part or "")

    @property
    def group(self) -> str:
        """One item at one stage."""
        return f"{self.stage}\x1f{self.item}"


class LengthEstimates:
    """Running means of answers' lengths in tokens, by role, stage and key.

    A new answer counts ``weight``, all before it the rest. Where a key is new its stage's mean stands in, then its
    role's. At most ``size`` means are kept, those used last.
    """

    def __init__(self, weight: float = 0.3, size: int = 8192) -> None:
        self._weight = weight
        self._size = size
        self._means: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def expect(self, work: Work) -> float:
        """Tokens to expect; 0 if nothing like it was ever answered."""
        for key in _keys(work):
            mean = self._means.get(key)
            if mean is not None:
                self._means.move_to_end(key)
                return mean
        return 0.0

    def note(self, work: Work, tokens: int) -> None:
        """Learn from an answer."""
        for key in _keys(work):
            mean = self._means.get(key, float(tokens))
            self._means[key] = mean + self._weight * (tokens - mean)
            self._means.move_to_end(key)
        while len(self._means) > self._size:
            self._means.popitem(last=False)


def _keys(work: Work) -> tuple[tuple[str, ...], ...]:
    """From the most telling to the least."""
    general = ((work.role, work.stage), (work.role,))
    return ((work.role, work.stage, work.key), *general) if work.key else general
