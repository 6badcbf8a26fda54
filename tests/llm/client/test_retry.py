import random

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.model import OverloadedError, RefusedError, RejectedError, ServerError, UnreachableError
from flowevolve.llm.client.retry import RetryPolicy

STEADY = RetryPolicy(
    base_seconds=1, max_seconds=8, multiplier=2, jitter=0, server_error_attempts=3, patience_seconds=60
)
policies = st.builds(
    RetryPolicy,
    base_seconds=st.floats(0.01, 2),
    max_seconds=st.floats(2, 100),
    multiplier=st.floats(1, 5),
    jitter=st.floats(0, 1),
)


def decide(error, failures=1, silent=0.0, policy=STEADY, **how):
    return policy.decide(error, failures, silent, random.Random(0), **how)


@pytest.mark.parametrize("error", [UnreachableError("gone"), OverloadedError("busy"), ServerError("oops")])
def test_waits_grow_up_to_the_longest(error) -> None:
    policy = RetryPolicy(base_seconds=1, max_seconds=8, jitter=0, server_error_attempts=100)
    waits = [decide(error, failures, policy=policy) for failures in range(1, 7)]
    assert waits == [1, 2, 4, 8, 8, 8]


@pytest.mark.parametrize("error", [RejectedError("bad"), RefusedError("never")])
def test_a_request_turned_down_is_not_repeated(error) -> None:
    assert decide(error) is None


@pytest.mark.parametrize("error", [UnreachableError("gone"), OverloadedError("busy")])
def test_a_silent_backend_is_waited_for_as_long_as_patience_lasts(error) -> None:
    assert decide(error, 1000, 59.9) == 8
    assert decide(error, 1, 60.0) is None


def test_server_errors_end_after_so_many_attempts_however_short_the_time() -> None:
    assert decide(ServerError("oops"), 2) == 2
    assert decide(ServerError("oops"), 3) is None


def test_server_errors_of_a_server_that_answers_nobody_are_waited_for_as_long_as_patience_lasts() -> None:
    assert decide(ServerError("oops"), 1000, 59.9, answers_nobody=True) == 8
    assert decide(ServerError("oops"), 1, 60.0, answers_nobody=True) is None


def test_a_lost_answer_counts_against_the_request_if_others_are_answered() -> None:
    error = UnreachableError("no answer in time")
    assert decide(error, 2, lost_answers=2) == 2
    assert decide(error, 3, lost_answers=3) is None
    assert decide(error, 3) == 4


def test_attempts_at_a_backend_that_answered_nobody_do_not_count_against_the_request() -> None:
    assert decide(UnreachableError("connection refused"), 9, lost_answers=1) == 8


def test_an_overloaded_backend_that_answers_others_is_waited_for() -> None:
    assert decide(OverloadedError("busy"), 3, lost_answers=3) == 4


@given(policies, st.integers(1, 10**6), st.none() | st.floats(0, 200), st.integers())
def test_jitter_only_ever_adds_and_by_no_more_than_its_share(policy, failures, retry_after, seed) -> None:
    error = OverloadedError("busy", retry_after=retry_after)
    wait = policy.decide(error, failures, 0.0, random.Random(seed))
    backoff = decide(
        UnreachableError("gone"),
        failures,
        policy=RetryPolicy(policy.base_seconds, policy.max_seconds, policy.multiplier, jitter=0),
    )
    least = backoff if retry_after is None else retry_after
    assert least <= wait <= least + policy.jitter * max(backoff, least / 2)


def test_calls_told_to_come_back_together_do_not() -> None:
    rng = random.Random(0)
    policy = RetryPolicy(base_seconds=1, jitter=0.5)
    decided = [policy.decide(OverloadedError("busy", retry_after=10), 1, 0.0, rng) for _ in range(50)]
    waits = {wait for wait in decided if wait is not None}
    assert len(waits) == 50
    assert min(waits) >= 10
    assert max(waits) > 12  # over a quarter of the time
    assert max(waits) > 10.4


def test_a_server_that_asks_for_more_than_our_patience_is_asked_once_more_when_patience_ends() -> None:
    assert decide(OverloadedError("busy", retry_after=86400)) == 60


@pytest.mark.parametrize(
    "values",
    [
        {"base_seconds": 0},
        {"base_seconds": 5, "max_seconds": 4},
        {"multiplier": 0.5},
        {"jitter": 1.5},
        {"jitter": -0.1},
        {"server_error_attempts": 0},
        {"patience_seconds": -1},
    ],
)
def test_values_out_of_range_are_refused_by_name(values) -> None:
    with pytest.raises(InputError, match=next(iter(values))):
        RetryPolicy(**values)
