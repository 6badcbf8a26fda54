"""Stages and graphs that could not work are refused where they are made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from flowevolve._util.errors import EngineError
from flowevolve.core.context import StageContext
from flowevolve.core.graph import NO_EMISSIONS, Emit, Stage
from flowevolve.core.item import Item

A_TEXT: Any = "next"


async def nothing(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    for emission in NO_EMISSIONS:
        yield emission


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Stage("step", nothing, workers=0), "stage 'step': workers is 0, but has to be at least 1"),
        (lambda: Stage("step", nothing, capacity=0), "stage 'step': capacity is 0, but has to be at least 1"),
        (lambda: Stage("step", nothing, gather=-1), "stage 'step': gather is -1, but has to be at least 1"),
        (lambda: Stage("step", nothing, to=A_TEXT), r"stage 'step': to is 'next'; give a tuple .* such as \('next',\)"),
    ],
    ids=["no workers", "no room", "nothing to gather", "a text in place of a tuple"],
)
def test_a_stage_that_could_not_work_is_refused(make: Callable[[], Stage], said: str) -> None:
    with pytest.raises(EngineError, match=said):
        make()
