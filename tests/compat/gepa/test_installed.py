"""Libraries that call gepa's `optimize` run as a stream for a while; afterwards everything is as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import gepa.api
import pytest

from flowevolve._util.errors import InputError
from flowevolve.compat.gepa import installed
from tests.support.gepa_caller import WAYS, by_attribute
from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, Silent, reflect

GEPAS = gepa.api.optimize
PACKAGE: Any = gepa  # which does not say that it exports the function


@pytest.fixture(autouse=True)
def gepas_own_again() -> Iterator[None]:
    yield
    assert PACKAGE.optimize is gepa.api.optimize is GEPAS


def lines(way: Callable[..., Any] = by_attribute, **given: Any) -> list[str]:
    """What is logged of a small run."""
    logger = Silent()
    way(
        seed_candidate=dict(SEED), trainset=list(TRAIN), valset=list(VAL), adapter=GEPAHashAdapter(),
        reflection_lm=reflect, max_metric_calls=20, logger=logger, **given
    )  # fmt: skip
    return logger.lines


def streams(said: list[str]) -> bool:
    return any(line.startswith("flowevolve: ") for line in said)


@pytest.mark.parametrize("way", WAYS)
def test_a_library_that_looks_it_up_runs_as_a_stream(way: Callable[..., Any]) -> None:
    with installed():
        assert streams(lines(way))
    assert not streams(lines(way))


def test_everything_is_as_before_after_an_error_and_it_can_be_used_again() -> None:
    with pytest.raises(LookupError), installed():
        raise LookupError
    assert not streams(lines())
    with installed():
        assert streams(lines())


def test_our_own_arguments_are_said_once_for_all_calls() -> None:
    with installed(adapter_concurrency=3):
        assert "up to 3 adapter calls run at a time" in lines()[0]
        assert "up to 2 adapter calls run at a time" in lines(adapter_concurrency=2)[0]


def test_inside_each_other_the_inner_one_says_the_arguments() -> None:
    with installed(adapter_concurrency=3):
        with installed(adapter_concurrency=2):
            assert "up to 2 adapter" in lines()[0]
        assert "up to 3 adapter" in lines()[0]


def test_blocks_may_be_closed_in_any_order() -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(installed(adapter_concurrency=2))
    second.enter_context(installed(adapter_concurrency=3))
    first.close()
    assert "up to 3 adapter" in lines()[0]
    second.close()
    assert not streams(lines())


def test_it_is_there_in_every_thread() -> None:
    said: list[str] = []
    with installed():
        thread = threading.Thread(target=lambda: said.extend(lines()))
        thread.start()
        thread.join()
    assert streams(said)


def test_who_kept_the_function_from_inside_calls_gepas_afterwards() -> None:
    with installed():
        kept = PACKAGE.optimize
    assert not streams(lines(kept))


def test_a_wrapper_put_around_it_meanwhile_stays() -> None:
    with installed():
        ours = PACKAGE.optimize
        PACKAGE.optimize = wrapper = lambda **given: ours(**given)
        assert streams(lines())
    assert PACKAGE.optimize is wrapper
    assert not streams(lines())
    PACKAGE.optimize = GEPAS


def test_what_is_wrong_is_said_before_anything_is_replaced() -> None:
    with (
        pytest.raises(InputError, match="adapter_concurrency is 0, but has to be at least 1"),
        installed(adapter_concurrency=0),
    ):
        pass
