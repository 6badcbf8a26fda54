import pytest
from hypothesis import given, strategies as st

from flowevolve.llm.scheduling.response_times import AT_LEAST, ResponseTimes

lengths = st.lists(st.integers(1, 8000), min_size=AT_LEAST, max_size=60, unique=True)


@given(lengths, st.floats(0.1, 100), st.floats(0.001, 1))
def test_waiting_is_told_from_writing(tokens, wait, per_token) -> None:
    response_times = ResponseTimes()
    for each in tokens:
        response_times.answered(wait + per_token * each, each)
    observed = response_times.take_sample()
    usual = sum(tokens) / len(tokens)
    assert observed.answered == len(tokens)
    assert observed.wait_seconds == pytest.approx(wait, rel=1e-3, abs=1e-3)
    assert observed.latency_seconds == pytest.approx(wait + per_token * usual, rel=1e-3)
    assert observed.seconds_per_token == pytest.approx(per_token + wait / usual, rel=1e-3)


@given(st.lists(st.tuples(st.floats(0, 1000), st.integers(0, 5000)), max_size=60))
def test_figures_are_never_negative(calls) -> None:
    response_times = ResponseTimes()
    for seconds, tokens in calls:
        response_times.answered(seconds, tokens)
    observed = response_times.take_sample()
    assert observed.answered == sum(tokens > 0 for _, tokens in calls)
    figures = [observed.latency_seconds, observed.seconds_per_token]
    assert observed.wait_seconds is None or observed.wait_seconds > 0
    if observed.answered:
        assert all(figure is not None and figure >= 0 for figure in figures)
    else:
        assert figures == [None] * 2


def test_answers_of_one_length_do_not_tell_waiting_from_writing() -> None:
    response_times = ResponseTimes()
    for _ in range(AT_LEAST):
        response_times.answered(3.0, 100)
    observed = response_times.take_sample()
    assert observed.latency_seconds == pytest.approx(3.0)
    assert observed.wait_seconds is None


def test_a_look_starts_anew() -> None:
    response_times = ResponseTimes()
    response_times.answered(1.0, 10)
    response_times.refused()
    assert (response_times.take_sample().answered, response_times.take_sample().refused) == (1, 0)
    assert response_times.take_sample().latency_seconds is None
