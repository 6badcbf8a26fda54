"""The bandit finds the better model, and the cheaper one where they are equally good."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, strategies as st

from flowevolve.llm.client.ensemble import Arm
from flowevolve.policies.bandits import UCB


def play(chances: list[float], rounds: int, dollars: list[float] | None = None, under_way: int = 1) -> Counter[int]:
    """Draws of each arm, where outcomes come in ``under_way`` at a time."""
    rng, arms = Random(0), [Arm(1.0) for _ in chances]
    for _ in range(rounds // under_way):
        drawn = []
        for _ in range(under_way):
            place = UCB().choose(arms, 0.0)
            arms[place].drawn += 1
            drawn.append(place)
        for place in drawn:
            arms[place].judged += 1
            arms[place].gain += rng.random() < chances[place]
            if dollars is not None:
                arms[place].paid += 1
                arms[place].dollars += dollars[place]
    return Counter({place: arm.drawn for place, arm in enumerate(arms)})


def test_every_model_is_drawn_once_first() -> None:
    arms = [Arm(1.0) for _ in range(3)]
    order = []
    for _ in range(3):
        order.append(UCB().choose(arms, 0.0))
        arms[order[-1]].drawn += 1
    assert order == [0, 1, 2]


@pytest.mark.parametrize("under_way", [1, 16])
def test_the_better_model_is_drawn_most(under_way: int) -> None:
    drawn = play([0.1, 0.6, 0.1], 1600, under_way=under_way)
    assert drawn[1] > 1000
    assert min(drawn.values()) > 20


def test_calls_under_way_spread_over_models_nothing_is_known_of() -> None:
    assert play([0.5, 0.5, 0.5, 0.5], 64, under_way=64) == {0: 16, 1: 16, 2: 16, 3: 16}


def test_gain_counts_by_the_dollar_where_prices_are_known() -> None:
    assert play([0.4, 0.5], 1000)[1] > 500
    assert play([0.4, 0.5], 1000, dollars=[0.01, 0.05])[0] > 900


def test_beside_a_free_model_prices_do_not_count() -> None:
    assert play([0.0, 0.5], 1000, dollars=[0.0, 0.05])[1] > 500


@given(
    st.lists(
        st.builds(
            Arm, st.just(1.0), drawn=st.integers(0, 50), judged=st.integers(0, 50), gain=st.floats(0, 50),
            paid=st.integers(1, 50), dollars=st.floats(0, 10),
        ),
        min_size=1,
        max_size=6,
    )
)  # fmt: skip
def test_it_always_answers_and_always_the_same(arms: list[Arm]) -> None:
    place = UCB().choose(arms, 0.3)
    assert 0 <= place < len(arms)
    assert UCB().choose(arms, 0.9) == place


def test_a_model_of_which_nothing_is_known_yet_has_gained_nothing() -> None:
    judged, open_calls = Arm(1.0, drawn=4, judged=4, gain=2.0), Arm(1.0, drawn=4)
    assert UCB().choose([open_calls, judged], 0.0) == 1
