"""The mean of a number that goes up and down."""

from __future__ import annotations

from flowevolve._util.gauge import Gauge


def test_a_gauge_has_the_mean_over_the_time_since_it_was_last_asked() -> None:
    now = 10.0
    gauge = Gauge(lambda: now)
    gauge.add(3)
    assert gauge.take_mean() == 3.0, "no time has gone by"
    with gauge:
        now = 12.0
        assert gauge.value == 4
    now = 14.0
    assert gauge.take_mean() == 3.5
    now = 15.0
    gauge.add(-3)
    now = 17.0
    assert gauge.take_mean() == 1.0


def test_a_gauge_has_its_integral_and_its_mean_since_it_began_or_was_restarted() -> None:
    now = 10.0
    gauge = Gauge(lambda: now, began=6.0)
    gauge.add(2)
    now = 12.0
    assert (gauge.mean(), gauge.integral()) == (4.0 / 6.0, 4.0)
    gauge.restart()
    now = 13.0
    gauge.add(-2)
    now = 14.0
    assert (gauge.mean(), gauge.integral()) == (1.0, 2.0)
