"""What an algorithm's own code hands to the engine wrongly is refused at once, in words."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any

import pytest

from flowevolve._util.errors import EngineError
from flowevolve.core.artifact import Artifact
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import Add, Note
from tests.support.interruption import evolve
from tests.support.small_runs import Carrier, Small, once, propose

Emitted = Callable[[StageContext], Any]
A = Artifact({"text": "a"})


def emitting(make: Emitted) -> Small:
    """An algorithm whose first stage emits what is made for it."""

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield make(context)

    return Small(once(enter))


def updating(make: Callable[[Carrier], Any]) -> Small:
    """An algorithm whose last stage commits what is made of its payload."""

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(Carrier(propose(context)))

    async def update(item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit(make(item.expect(Carrier)))
        for emission in NO_EMISSIONS:
            yield emission

    return Small(once(enter), update=update)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda context: context.propose(A, parents=[], operator=None),
            "propose: operator has to be a text",
        ),
        (
            lambda context: context.propose(A, parents=[], operator="w", born="x"),
            "propose: born is 'x', but has to be a whole",
        ),
        (
            lambda context: context.propose(A, parents=[], operator="w", attributes=[1]),
            "propose: attributes has to be a table",
        ),
        (
            lambda context: context.propose(A, parents=[], operator="w", attributes={"x": {1}}),
            "propose: Object of type",
        ),
        (
            lambda context: context.propose(A, parents=["c0"], operator="w"),
            "propose: parents has 'c0'; give the candid",
        ),
        (lambda context: context.propose({"text": "a"}, parents=[], operator="w"), "propose: the artifact is a dict; "),
        (
            lambda context: context.propose(Artifact({"txet": "b"}), parents=[propose(context)], operator="w"),
            "propose: the artifact has the components ['txet'], but what it is made from has ['text']; parent.artifact",
        ),
        (lambda context: context.reject(propose(context), None), "reject: reason has to be a text"),
        (lambda context: Emit(1, derives="c0"), "Emit: derives is 'c0'; give a tuple of ids of candidates, such as"),  # type: ignore[arg-type]
        (lambda context: Emit(1, derives=(propose(context),)), "Emit: derives is (Candidate("),  # type: ignore[arg-type]
        (lambda context: Emit(1, derives=("c9",)), "Emit: derives names c9, but the pool has no such candidate"),
        (lambda context: Emit(1, version="1"), "Emit: version is '1'; give a number"),  # type: ignore[arg-type]
        (lambda context: Emit(1, to=3), "Emit: to is 3; give the name of a stage"),  # type: ignore[arg-type]
    ],
)
def test_what_the_journal_could_not_be_read_with_is_refused_where_it_is_made(make: Emitted, message: str) -> None:
    with pytest.raises(EngineError, match=re.escape(message)):
        evolve(emitting(make))


def test_a_decision_that_is_no_dictionary_is_refused() -> None:
    with pytest.raises(EngineError, match="chosen: make returned a float, but has to return a dictionary"):
        evolve(emitting(lambda context: context.decide("chosen", lambda: 0.5)))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda carrier: [carrier.candidate], "commit: a Candidate is no change; give Add"),
        (lambda carrier: [Note("seen", [1])], "commit: Note: data has to be a table"),  # type: ignore[arg-type]
        (lambda carrier: [Add(replace(carrier.candidate, scores={"1": None}))], "commit: Add: scores.1."),
    ],
)
def test_a_change_that_could_not_be_read_again_is_refused_and_not_made(
    make: Callable[[Carrier], Any], message: str
) -> None:
    algorithm = updating(make)
    with pytest.raises(EngineError, match=re.escape(message)):
        evolve(algorithm)
    assert algorithm.best() is None


def test_whatever_a_stage_gives_as_the_reason_of_a_discard_is_kept_as_a_text() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise Discard(ValueError("no such row"))  # type: ignore[arg-type]
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator

    _, facts = evolve(Small(once(enter)))
    reasons = [fact.data["reason"] for fact in facts if isinstance(fact, Event) and fact.kind == "item.done"]
    assert "no such row" in reasons
