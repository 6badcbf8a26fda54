"""Several runs at one simulated server: each gets its share of it."""

from __future__ import annotations

import pytest

from bench.sharing.measurements import FAIR, off
from bench.sharing.runs import SLOTS, Wanted, share_out
from bench.sharing.section import answer


def test_two_runs_get_tokens_by_their_shares_behind_a_gateway() -> None:
    runs = [Wanted(share=2.0), Wanted()]
    shared = share_out(runs, 7, gateway=True)
    assert max(map(abs, off(shared.tokens_per_second(), runs))) <= FAIR
    assert shared.most_in_flight == SLOTS
    assert shared.failures == 0


def test_how_far_runs_are_from_their_parts() -> None:
    assert off([300.0, 100.0], [Wanted(share=3.0), Wanted()]) == [0.0, 0.0]
    assert off([100.0, 300.0], [Wanted(), Wanted()]) == pytest.approx([-0.5, 0.5])


def test_the_answer_says_how_far_runs_are_apart_that_often_have_nothing_waiting() -> None:
    def case(name: str, runs: int, low: float, high: float, *, gateway: bool) -> dict[str, object]:
        return {"case": name, "gateway": gateway, "runs": runs, "least": {"low": low}, "most": {"high": high}}

    cases = [
        case("four equal runs", 4, -0.01, 0.02, gateway=True),
        case("twenty runs with the defaults", 20, -0.5, 0.5, gateway=False),
        case("twenty runs with the defaults", 20, -0.43, 0.39, gateway=True),
    ]
    said = answer({"cases": cases})
    assert "4 runs that always have requests waiting are each within 2.0 % of an equal part" in said
    assert "20 with the defaults, which often have none, are -43 to +39 % from theirs" in said
