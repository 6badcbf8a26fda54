"""What LLM calls cost: requests, failures, tokens, latency and dollars, by role, model and stage.

Only sums are kept: memory grows with the number of role, model and stage combinations, never with the number of calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from flowevolve._util.values import value
from flowevolve.core.model import NO_USAGE, Usage


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. ``cached_input`` is for the part of the prompt served from a cache."""

    input: float
    cached_input: float
    output: float

    def cost(self, usage: Usage) -> float:
        """The price of this usage in dollars."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)  # servers have been seen to report more
        fresh = usage.prompt_tokens - cached
        return (fresh * self.input + cached * self.cached_input + usage.completion_tokens * self.output) / 1e6


@value
class Totals:
    """Sums over finished calls.

    ``retries`` counts attempts after the first. ``usage`` includes the tokens of failed attempts where the server
    reported them. ``latency_seconds`` is the time in flight of each call's last attempt. ``dollars`` is None as soon as
    one of the models used has no price. A call answered by the response cache counts only in ``cached_calls`` and
    ``cached_calls_tokens`` (its prompt and completion tokens, which were not paid for again). ``estimated`` counts
    calls for which the server did not report all tokens. ``cut_while_thinking`` counts calls whose tokens ran
    out before the answer began; with a real server they are among the failed ones.
    """

    requests: int = 0
    failed: int = 0
    retries: int = 0
    usage: Usage = NO_USAGE
    latency_seconds: float = 0.0
    dollars: float | None = 0.0
    cached_calls: int = 0
    cached_calls_tokens: int = 0
    estimated: int = 0
    cut_while_thinking: int = 0

    @property
    def any_calls(self) -> bool:
        """Whether there were any calls, those included that the response cache answered."""
        return bool(self.requests or self.cached_calls)

    def __add__(self, other: Totals) -> Totals:
        dollars = None if self.dollars is None or other.dollars is None else self.dollars + other.dollars
        return Totals(
            self.requests + other.requests,
            self.failed + other.failed,
            self.retries + other.retries,
            self.usage + other.usage,
            self.latency_seconds + other.latency_seconds,
            dollars,
            self.cached_calls + other.cached_calls,
            self.cached_calls_tokens + other.cached_calls_tokens,
            self.estimated + other.estimated,
            self.cut_while_thinking + other.cut_while_thinking,
        )


class Spending(NamedTuple):
    """Sums over calls of one role, model and stage."""

    role: str
    model: str
    stage: str
    totals: Totals


class Account:
    """Adds up finished calls. ``prices`` maps the names of models, as requests give them, to their prices."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._sums: dict[tuple[str, str, str], Totals] = {}
        """By role, model and stage."""

    def cost(self, model: str, usage: Usage) -> float | None:
        """The price in dollars of this usage of a model; None if the model has no price."""
        price = self._prices.get(model)
        return None if price is None else price.cost(usage)

    def add(self, *, role: str, model: str, stage: str, call: Totals) -> None:
        """Add one finished call, or the sum of several."""
        key = (role, model, stage)
        self._sums[key] = self._sums.get(key, _NOTHING) + call

    def restore(self, spending: Iterable[Spending]) -> None:
        """Add what an earlier part of the run spent; its dollars are computed anew from this account's prices."""
        for role, model, stage, totals in spending:
            dollars = self.cost(model, totals.usage) if totals.requests else 0.0
            self.add(role=role, model=model, stage=stage, call=replace(totals, dollars=dollars))

    def totals(self) -> Totals:
        """The sum over all calls."""
        return sum(self._sums.values(), _NOTHING)

    def has_answers(self, role: str) -> bool:
        """Whether a model has ever answered a call of this role, also in an earlier part of the run."""
        return any(sums.requests > sums.failed for (name, _, _), sums in self._sums.items() if name == role)

    def by_model(self) -> dict[str, Totals]:
        """The sums of each model's calls."""
        sums: dict[str, Totals] = {}
        for (_, model, _), part in self._sums.items():
            sums[model] = sums.get(model, _NOTHING) + part
        return sums


_NOTHING = Totals()
