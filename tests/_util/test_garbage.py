"""The collector's setting during a run and after it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from flowevolve._util import clock
from flowevolve._util.garbage import YOUNG_OBJECTS, seldom


@pytest.fixture(autouse=True)
def own_setting() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_during_a_run_garbage_is_looked_for_less_often() -> None:
    async def look() -> tuple[int, int, int]:
        return gc.get_threshold()

    assert clock.run(look, clock="virtual") == (YOUNG_OBJECTS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_after_a_failure_too() -> None:
    with pytest.raises(ValueError, match="no"), seldom():
        raise ValueError("no")
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [0, YOUNG_OBJECTS * 2])
def test_a_process_that_collects_less_is_left_alone(own: int) -> None:
    gc.set_threshold(own, 10, 10)
    with seldom():
        assert gc.get_threshold()[0] == own
    assert gc.get_threshold()[0] == own


@pytest.mark.parametrize("first_out", [0, 1])
def test_runs_that_overlap_in_threads_keep_it_until_the_last_one_ends(first_out: int) -> None:
    runs = [seldom(), seldom()]
    for run in runs:
        run.__enter__()
    runs.pop(first_out).__exit__(None, None, None)
    assert gc.get_threshold() == (YOUNG_OBJECTS, 10, 10)
    runs.pop().__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)
