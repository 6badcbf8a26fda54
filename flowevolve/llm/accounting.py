"""What LLM calls cost: requests, failures, tokens, latency and dollars, by role, model and stage and by candidate.

Only sums are kept: memory grows with the number of candidates and of role, model and stage combinations, never with
the number of calls, and every breakdown adds up to the totals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

from flowevolve.llm.types import Usage

K = TypeVar("K")
Dimension = Literal["role", "model", "stage"]


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. ``cached_input`` is for the part of the prompt served from a cache."""

    input: float
    cached_input: float
    output: float

    def cost(self, usage: Usage) -> float:
        """Dollars for this usage."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)  # a server may be wrong about it
        fresh = usage.prompt_tokens - cached
        return (fresh * self.input + cached * self.cached_input + usage.completion_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over finished calls.

    ``retries`` counts attempts after the first; tokens of attempts that failed are in ``usage`` if they were told.
    ``latency_seconds`` is the time in flight of each call's last attempt. ``dollars`` is None as soon as one of the
    models that were paid for has no price. Calls answered by the response cache are in the last two sums alone; the
    tokens there are prompt and completion tokens that were not paid for again. ``estimated`` counts calls whose tokens
    the server did not all say.
    """

    requests: int = 0
    failed: int = 0
    retries: int = 0
    usage: Usage = field(default_factory=Usage)
    latency_seconds: float = 0.0
    dollars: float | None = 0.0
    cached_calls: int = 0
    cached_calls_tokens: int = 0
    estimated: int = 0

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
        )


class Spending(NamedTuple):
    """Sums of calls that were made for one candidate, or for none, in one role, model and stage."""

    role: str
    model: str
    stage: str
    candidate: str | None
    totals: Totals


class Account:
    """Sums up finished calls. ``prices`` maps model names, as requested, to what they cost."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._by_category: dict[_Category, _Sum] = {}
        self._by_candidate: dict[str, _Sum] = {}

    def cost(self, model: str, usage: Usage) -> float | None:
        """Dollars for this usage of a model, or None if its price is unknown."""
        price = self._prices.get(model)
        return None if price is None else price.cost(usage)

    def add(self, *, role: str, model: str, stage: str, candidate: str | None, call: Totals) -> None:
        """Add one finished call, or the sum of several."""
        _sum_of(self._by_category, _Category(role, model, stage)).add(call)
        if candidate is not None:
            _sum_of(self._by_candidate, candidate).add(call)

    def restore(self, spent: Iterable[Spending]) -> None:
        """Add what an earlier part of the run spent; its dollars are worked out from this account's prices."""
        for role, model, stage, candidate, totals in spent:
            dollars = self.cost(model, totals.usage) if totals.requests else 0.0
            self.add(role=role, model=model, stage=stage, candidate=candidate, call=replace(totals, dollars=dollars))

    def totals(self) -> Totals:
        """Everything."""
        return sum((part.total() for part in self._by_category.values()), _NOTHING)

    def breakdown(self, *dimensions: Dimension) -> dict[tuple[str, ...], Totals]:
        """Sums by one or more dimensions, keyed by their values in the order asked for."""
        sums: dict[tuple[str, ...], Totals] = {}
        for work, part in self._by_category.items():
            key = tuple(work.value(dimension) for dimension in dimensions)
            sums[key] = sums.get(key, _NOTHING) + part.total()
        return sums

    def by_candidate(self) -> dict[str, Totals]:
        """Sums of the calls made with or for a candidate, by its id."""
        return {candidate: part.total() for candidate, part in self._by_candidate.items()}


class _Sum:
    """Totals that calls are added to in place: a new object for every call and key would be most of the cost."""

    __slots__ = (
        "cached",
        "cached_calls",
        "cached_calls_tokens",
        "completion",
        "dollars",
        "estimated",
        "failed",
        "latency",
        "prompt",
        "requests",
        "retries",
    )

    def __init__(self) -> None:
        self.requests = self.failed = self.retries = self.prompt = self.completion = self.cached = 0
        self.cached_calls = self.cached_calls_tokens = self.estimated = 0
        self.latency = 0.0
        self.dollars: float | None = 0.0

    def add(self, call: Totals) -> None:
        usage = call.usage
        self.requests += call.requests
        self.failed += call.failed
        self.retries += call.retries
        self.prompt += usage.prompt_tokens
        self.completion += usage.completion_tokens
        self.cached += usage.cached_tokens
        self.latency += call.latency_seconds
        self.dollars = None if self.dollars is None or call.dollars is None else self.dollars + call.dollars
        self.cached_calls += call.cached_calls
        self.cached_calls_tokens += call.cached_calls_tokens
        self.estimated += call.estimated

    def total(self) -> Totals:
        return Totals(
            self.requests,
            self.failed,
            self.retries,
            Usage(self.prompt, self.completion, self.cached),
            self.latency,
            self.dollars,
            self.cached_calls,
            self.cached_calls_tokens,
            self.estimated,
        )


def _sum_of(sums: dict[K, _Sum], key: K) -> _Sum:
    known = sums.get(key)
    if known is None:
        known = sums[key] = _Sum()
    return known


class _Category(NamedTuple):
    role: str
    model: str
    stage: str

    def value(self, dimension: Dimension) -> str:
        match dimension:
            case "role":
                return self.role
            case "model":
                return self.model
            case "stage":
                return self.stage


_NOTHING = Totals()
