"""Estimates of how long answers will be, learnt from earlier answers."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple, Self

from flowevolve.core.item_ids import WorkPart


class CallKind(NamedTuple):
    """The kind of a call: its role, its stage, its item and, where the item makes several calls at once, a key.

    The key is an example's id or a component's name. It recurs in other items, so that lengths can be learnt for it.
    """

    role: str
    stage: str
    item: str
    key: str

    @classmethod
    def of(cls, role: str, stage: str, scope_item: str) -> Self:
        """From a `flowevolve.core.calls.CallScope`, whose item is ``item`` or ``item/key``."""
        item, part = WorkPart.read(scope_item)
        return cls(role, stage, item, part or "")

    @property
    def group(self) -> str:
        """The scheduler's group of the call: one item at one stage."""
        return f"{self.stage}\x1f{self.item}"


class LengthEstimates:
    """Running means of answers' lengths in tokens, by role, stage and key.

    They are exponential moving averages: a new answer has the weight ``weight``. For a new key the stage's mean is
    used, and for a new stage the role's. At most ``size`` means are kept; the least recently used ones are dropped.
    """

    def __init__(self, weight: float = 0.3, size: int = 8192) -> None:
        self._weight = weight
        self._size = size
        self._means: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def expect(self, call_kind: CallKind) -> float:
        """The expected length in tokens; 0 while no similar call was answered."""
        for key in _keys(call_kind):
            mean = self._means.get(key)
            if mean is not None:
                self._means.move_to_end(key)
                return mean
        return 0.0

    def note(self, call_kind: CallKind, tokens: int) -> None:
        """Learn from an answer."""
        for key in _keys(call_kind):
            mean = self._means.get(key, float(tokens))
            self._means[key] = mean + self._weight * (tokens - mean)
            self._means.move_to_end(key)
        while len(self._means) > self._size:
            self._means.popitem(last=False)


def _keys(call_kind: CallKind) -> tuple[tuple[str, ...], ...]:
    """The keys of the means that a call belongs to, the most specific first."""
    general = ((call_kind.role, call_kind.stage), (call_kind.role,))
    return ((call_kind.role, call_kind.stage, call_kind.key), *general) if call_kind.key else general
