"""The rule behind learnt rates against servers that refuse at random, at a rate, or both."""

import pytest

from tests.support.rate_servers import Callers, at_random, fixed_window, rising, token_bucket

FEW_FAST, MANY, MANY_SLOW = (16, 1.0), (256, 5.0), (512, 30.0)
"""Callers, and the seconds an answer takes them on average."""


@pytest.mark.parametrize("callers", [FEW_FAST, MANY, MANY_SLOW])
@pytest.mark.parametrize("retry_after", [None, 1.0])
@pytest.mark.parametrize("share", [0.01, 0.04])
def test_refusals_at_random_cost_hardly_any_throughput(callers, retry_after, share) -> None:
    asked = None if retry_after is None else lambda now: retry_after
    undisturbed = Callers(lambda now: True, *callers).go(300).rate
    assert Callers(at_random(share), *callers, retry_after=asked).go(300).rate > 0.9 * undisturbed


@pytest.mark.parametrize("callers", [FEW_FAST, MANY, MANY_SLOW])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_tenth_refused_at_random_is_no_collapse(callers, seed) -> None:
    undisturbed = Callers(lambda now: True, *callers).go(600).rate
    assert Callers(at_random(0.1, seed=seed), *callers).go(600).rate > 0.4 * undisturbed


@pytest.mark.parametrize("callers", [(64, 2.0), MANY_SLOW])
@pytest.mark.parametrize("per_second", [0.5, 3.0, 15.0])
@pytest.mark.parametrize("share", [0.0, 0.04])
def test_a_limit_is_found_with_few_refusals(callers, per_second, share) -> None:
    seen = Callers(at_random(share, token_bucket(per_second)), *callers).go(1200, after=300)
    assert seen.rate > 0.6 * per_second
    assert seen.share_refused < 0.1 + share


@pytest.mark.parametrize("callers", [(64, 2.0), MANY_SLOW])
@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize(("requests", "window"), [(60, 60), (10, 1)])
def test_a_limit_by_windows_is_found(callers, tells, requests, window) -> None:
    rest = (lambda now: window - now % window) if tells else None
    seen = Callers(fixed_window(requests, window), *callers, retry_after=rest).go(1200, after=300)
    assert seen.rate > 0.75 * requests / window
    assert seen.share_refused < 0.1


@pytest.mark.parametrize("callers", [(64, 2.0), MANY_SLOW])
def test_a_limit_that_rises_is_followed(callers) -> None:
    server = rising(token_bucket(2), token_bucket(15), at=600)
    assert Callers(server, *callers).go(1500, after=900).rate > 0.75 * 15


@pytest.mark.parametrize("callers", [FEW_FAST, MANY, MANY_SLOW])
def test_after_an_outage_they_come_back_one_after_the_other(callers) -> None:
    """For a minute all is refused, and asked for little more than once a second. Then no second has more requests than a
    tenth of the callers.
    """
    server = rising(lambda now: True, rising(lambda now: False, lambda now: True, at=160), at=100)
    going = Callers(server, *callers)
    going.go(400)
    during = [at for at in going.times if 101 < at < 160]
    assert len(during) < 90
    after = [at for at in going.times if 160 <= at < 175]
    assert max(sum(start <= at < start + 1 for at in after) for start in after) <= max(2.0, 0.1 * callers[0])
    assert going.go(700, after=500).rate > 0.9 * callers[0] / callers[1]


def test_a_storm_waits_for_as_long_as_the_server_asks() -> None:
    going = Callers(rising(lambda now: True, lambda now: False, at=50), 64, 2.0, retry_after=lambda now: 20.0)
    going.go(200)
    storm = min(at for at in going.times if at >= 50)
    assert not [at for at in going.times if storm + 1 < at < storm + 20]
