"""The pure policy behind rate limits."""

import pytest
from hypothesis import given, strategies as st

from flowevolve.llm.scheduling.model_rates import (
    FIRST_RATE,
    LEAST_PAUSE,
    LEAST_RATE,
    MOST_TOLERATED,
    TOLERATED,
    Bucket,
    ModelRates,
)
from flowevolve.llm.scheduling.rate_headers import LIMIT_KINDS, Allowance


def per_minute(**amounts):
    return ModelRates({kind: Bucket.per_minute(amounts[kind], 0.0) for kind in LIMIT_KINDS if kind in amounts})


def send(rates, now, tokens=0.0):
    """Wait for as long as the policy says and send; returns what was sent, and when."""
    while (wait := rates.wait(now, tokens)) > 0:
        now += wait
    return rates.take(now, tokens), now


def test_without_limits_nobody_waits() -> None:
    rates = ModelRates()
    assert [send(rates, 0.0)[1] for _ in range(1000)] == [0.0] * 1000
    assert rates.requests_per_minute is None


@given(st.floats(1, 5000), st.floats(0, 1e9), st.lists(st.floats(0, 10), min_size=1, max_size=100))
def test_no_minute_has_more_than_is_configured(amount, start, gaps) -> None:
    rates = ModelRates({"requests": Bucket.per_minute(amount, start)})
    now, times = start, []
    for gap in gaps:
        _, now = send(rates, now + gap)
        times.append(now)
    for index, first in enumerate(times):
        assert sum(first <= each < first + 60 for each in times[index:]) <= amount + max(1.0, amount / 60) + 1e-3


def test_tokens_are_counted_as_used_and_corrected_when_known() -> None:
    rates = per_minute(tokens=6000)
    sent, now = send(rates, 0.0, 1000)
    assert now == 0
    assert rates.wait(0.0, 100) == pytest.approx(10)  # 1,000 at 100 a second
    rates.answered(sent, 0.0, 200)
    assert rates.wait(0.0, 100) == pytest.approx(2)


def test_what_was_not_sent_after_all_is_given_back() -> None:
    rates = per_minute(requests=60)
    sent, _ = send(rates, 0.0)
    rates.give_back(sent)
    assert rates.wait(0.0, 0) == 0


# Headers


def test_headers_hold_requests_back_before_the_first_refusal() -> None:
    rates = ModelRates()
    sent, now = send(rates, 0.0)
    rates.note_headers(sent, now, {"requests": Allowance(60, 2, 58)})
    assert [round(send(rates, 0.0)[1], 6) for _ in range(4)] == [0, 0, 1, 2]
    assert rates.requests_per_minute == pytest.approx(60)


def test_tokens_in_headers_count_too() -> None:
    rates = ModelRates()
    sent, _ = send(rates, 0.0)
    rates.note_headers(sent, 0.0, {"tokens": Allowance(6000, 0, 60)})
    assert rates.counts_tokens
    assert rates.wait(0.0, 500) == pytest.approx(5)
    assert rates.tokens_per_minute == pytest.approx(6000)


def test_an_answer_from_before_does_not_undo_what_was_sent_since() -> None:
    """At a steady rate with long answers: the headers are those of the moment the request came in."""
    rates = ModelRates()
    first, _ = send(rates, 0.0)
    rates.note_headers(first, 0.0, {"requests": Allowance(60, 10, 50)})
    old, _ = send(rates, 0.0)
    for _ in range(9):
        send(rates, 0.0)
    rates.note_headers(old, 0.0, {"requests": Allowance(60, 9, 51)})
    assert rates.wait(0.0, 0) == pytest.approx(1)


def test_a_window_that_starts_anew_is_believed() -> None:
    rates = ModelRates()
    sent, _ = send(rates, 0.0)
    rates.note_headers(sent, 0.0, {"requests": Allowance(60, 0, 600)})
    late, now = send(rates, 0.0)
    rates.note_headers(late, now, {"requests": Allowance(60, 59, 60)})
    assert [send(rates, now)[1] for _ in range(59)] == [now] * 59


# Refusals


def test_a_refusal_pauses_all_for_as_long_as_the_server_asks() -> None:
    rates = ModelRates()
    sent, _ = send(rates, 0.0)
    assert rates.refused(sent, 1.0, 20.0)
    assert rates.wait(1.0, 0) == 20


def test_a_refusal_without_a_time_pauses_too() -> None:
    rates = ModelRates()
    sent, _ = send(rates, 0.0)
    rates.refused(sent, 1.0, None)
    assert rates.wait(1.0, 0) == LEAST_PAUSE


def test_no_pause_is_longer_than_the_longest() -> None:
    rates = ModelRates(longest_pause=300)
    sent, _ = send(rates, 0.0)
    rates.refused(sent, 0.0, 3600.0)
    assert rates.wait(0.0, 0) == 300


def test_one_storm_is_one_cut_and_they_come_back_one_after_the_other() -> None:
    rates = ModelRates()
    storm = [send(rates, 0.0)[0] for _ in range(64)]
    begins = [rates.refused(sent, 0.5, 5.0) for sent in storm]
    assert begins.index(True) == int(MOST_TOLERATED)
    assert begins.count(True) == 1
    assert rates.storms == 1
    assert [round(send(rates, 0.5)[1], 6) for _ in range(4)] == [5.5, 6.5, 7.5, 8.5]  # at FIRST_RATE
    assert FIRST_RATE == 1


def test_a_few_refusals_among_many_requests_pause_and_slow_nobody() -> None:
    rates = ModelRates()
    for number in range(2000):
        sent, _ = send(rates, 0.0)
        if number % 100 >= 95:  # five in a row
            assert not rates.refused(sent, 0.0, 5.0)
    assert rates.free
    assert rates.wait(0.0, 0) == 0


@pytest.mark.parametrize("before", [0, 10, 1000])
def test_refusals_one_upon_the_other_are_a_storm_whatever_was_sent_before(before) -> None:
    rates = ModelRates()
    for _ in range(before):
        send(rates, 0.0)
    refusals = 0
    while not rates.storms:
        sent, _ = send(rates, 0.0)
        rates.refused(sent, 0.0, None)
        refusals += 1
    assert refusals <= 1 + (MOST_TOLERATED + 1) / (1 - TOLERATED)


def test_the_first_rate_is_half_of_what_was_seen() -> None:
    rates = ModelRates()
    for second in range(20):
        for _ in range(10):
            sent, _ = send(rates, float(second))
            rates.answered(sent, float(second), 0)
    while rates.requests_per_minute is None:
        sent, _ = send(rates, 20.0)
        rates.refused(sent, 20.0, None)
    assert rates.requests_per_minute == pytest.approx(60 * 10 / 2, rel=0.11)


def test_the_rate_recovers_even_from_a_long_outage() -> None:
    rates, now = ModelRates(), 0.0
    for _ in range(30):
        sent, now = send(rates, now)
        rates.refused(sent, now, None)
    assert rates.requests_per_minute == pytest.approx(60 * LEAST_RATE)
    began = now
    for _ in range(100):
        sent, now = send(rates, now)
        rates.answered(sent, now + 0.01, 0)
    assert now - began < 120
    assert (rates.requests_per_minute or 0) > 120


def test_a_rate_that_is_not_made_use_of_does_not_grow() -> None:
    rates = ModelRates()
    sent, _ = send(rates, 0.0)
    rates.refused(sent, 0.0, None)
    for minute in range(1, 50):
        sent, now = send(rates, 60.0 * minute)
        rates.answered(sent, now + 30, 0)
    assert rates.requests_per_minute == 60 * FIRST_RATE


@pytest.mark.parametrize("per_second", [0.5, 3.0, 20.0])
def test_it_settles_near_what_a_silent_server_bears(per_second) -> None:
    """Against a server that tells nothing but 429: nearly all it would bear is used, with few refusals."""
    rates, server = ModelRates(), Bucket(per_second, max(1.0, per_second), 0.0, 0.0)
    now, answered, refused = 0.0, 0, 0
    while now < 1200:
        sent, now = send(rates, now)
        if server.wait(now, 1.0) > 0:
            refused += now > 300
            rates.refused(sent, now + 0.01, None)
        else:
            server.take(1.0)
            answered += now > 300
            rates.answered(sent, now + 0.01, 0)
        now += 0.01
    assert answered > 0.6 * 900 * per_second
    assert refused < 0.1 * answered


def test_requests_that_were_not_sent_make_no_refusal_bearable() -> None:
    rates = ModelRates()
    for _ in range(50):
        rates.give_back(rates.take(0.0, 0.0))
    assert rates.refused(rates.take(1.0, 0.0), 1.0, None), "one of one is a storm"


def test_requests_that_were_not_sent_cost_nothing_of_what_earlier_ones_allowed() -> None:
    rates = ModelRates()
    for _ in range(round(MOST_TOLERATED / TOLERATED) + 1):
        rates.take(0.0, 0.0)
    for sent in [rates.take(1.0, 0.0) for _ in range(50)]:
        rates.give_back(sent)
    refusals = [rates.refused(rates.take(1.0, 0.0), 1.0, None) for _ in range(int(MOST_TOLERATED))]
    assert not any(refusals), "as many are bearable as without those that were not sent"


def slowed() -> ModelRates:
    """Rates that storms have cut as far as they can be cut."""
    rates = ModelRates()
    for hour in range(20):
        while not rates.refused(rates.take(3600.0 * hour, 0.0), 3600.0 * hour + 1, None):
            pass
    return rates


def test_requests_counted_before_a_storm_and_not_sent_cost_nothing_of_what_is_allowed_after_it() -> None:
    """As those that waited for a slot when it began, and now wait again. They count against the new rate only then."""
    rates, now = slowed(), 3600.0 * 20
    first, *waiting = [rates.take(now, 0.0) for _ in range(12)]
    while not rates.refused(first, now, None):
        pass
    for sent in waiting:
        rates.give_back(sent)
    sent, after = send(rates, now)
    assert after - now == pytest.approx(1 / LEAST_RATE)
    assert not rates.refused(sent, after + 1, None), "a single one may be chance"
