"""Several runs at one simulated server: each gets its share of it."""

from __future__ import annotations

import pytest

from bench.sharing.measurements import FAIR, off
from bench.sharing.runs import SLOTS, Wanted, share_out


def test_two_runs_get_tokens_by_their_shares_behind_a_gateway() -> None:
    runs = [Wanted(share=2.0), Wanted()]
    shared = share_out(runs, 7, gateway=True)
    assert max(map(abs, off(shared.tokens_per_second(), runs))) <= FAIR
    assert shared.most_in_flight == SLOTS
    assert shared.failures == 0


def test_how_far_runs_are_from_their_parts() -> None:
    assert off([300.0, 100.0], [Wanted(share=3.0), Wanted()]) == [0.0, 0.0]
    assert off([100.0, 300.0], [Wanted(), Wanted()]) == pytest.approx([-0.5, 0.5])
