"""How soon a method has the score that another one ends with."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from bench._lib import house_style
from bench._lib.time_to_score import Afterwards, Row, Rows, TimeToScore, afterwards, reached, time_to_score
from bench.quality import runs as quality


def rows_of(**methods: Row) -> Rows:
    return {("aime", method): row for method, row in methods.items()}


def curves(*each: Sequence[tuple[float, float]]) -> Row:
    return {"curves": each}


def test_each_run_is_beside_each_run_of_the_best_of_the_others_and_the_score_that_it_ends_with() -> None:
    rows = rows_of(
        gepa_pxn_2x2=curves([(0.0, 0.1), (50.0, 0.4), (80.0, 0.6)], [(0.0, 0.1), (60.0, 0.5)]),  # mean 0.55
        gepa_pxn_4x4=curves([(0.0, 0.2), (20.0, 0.5)], [(0.0, 0.1), (40.0, 0.5)]),  # mean 0.5
        stream=curves([(0.0, 0.3), (10.0, 0.6)], [(0.0, 0.3), (5.0, 0.5)]),
        lucky=curves([(0.0, 0.6)], [(0.0, 0.2)]),
    )
    found = time_to_score(rows, "stream", ["gepa_pxn_2x2"])
    assert found.by_pair == [10 / 80, 10 / 60, math.inf, 5 / 60]
    assert (found.reached, found.pairs, found.sure) == (3, 4, 1)
    assert reached(found) == "reached in 3 of 4 pairs (all pairs of 1 of 2 runs)"
    assert reached(TimeToScore([[0.5], [math.inf]])) == "reached in 1 of 2 pairs", "a run has one pair"
    assert found.median == pytest.approx((10 / 80 + 10 / 60) / 2)
    both = time_to_score(rows, "stream", ["gepa_pxn_2x2", "gepa_pxn_4x4"])
    assert both.by_pair == [10 / 80, 10 / 20, math.inf, 5 / 20]  # 4x4 is sooner at 0.5, and never at 0.6
    all_of_them = time_to_score(rows, "stream", ["gepa_pxn_4x4"])
    assert all_of_them.by_pair == [0.5, 0.25, 0.25, 0.125]
    assert reached(all_of_them) == "reached in 4 of 4 pairs"
    assert time_to_score(rows, "lucky", ["gepa_pxn_2x2"]).pairs == 0


def test_scores_that_can_not_be_told_apart_count_as_equal() -> None:
    rows = rows_of(
        gepa_sync=curves([(0.0, 0.1), (40.0, 0.899), (100.0, 0.9)]),
        stream=curves([(0.0, 0.1), (20.0, 0.8985)], [(0.0, 0.1), (20.0, 0.897)]),
    )
    assert time_to_score(rows, "stream", ["gepa_sync"]).by_pair == [20 / 40, math.inf]
    assert house_style.PRECISION == quality.PRECISION


def test_a_time_may_be_to_a_part_of_the_gain() -> None:
    rows = rows_of(
        gepa_sync=curves([(0.0, 0.1), (50.0, 0.85), (100.0, 0.9)]),
        stream=curves([(0.0, 0.1), (20.0, 0.88)], [(0.0, 0.1), (20.0, 0.84)]),
    )
    assert time_to_score(rows, "stream", ["gepa_sync"]).reached == 0
    assert time_to_score(rows, "stream", ["gepa_sync"], gain=0.95).by_pair == [20 / 100, math.inf]


def test_tokens_may_stand_in_place_of_time_where_they_are_known() -> None:
    rows = rows_of(
        gepa_sync={"held_out": [[(0.0, 20, 10, 0.1), (100.0, 400, 900, 0.4)]]},
        stream={"held_out": [[(0.0, 20, 10, 0.1), (20.0, 300, 1800, 0.5)]]},
    )
    assert time_to_score(rows, "stream", ["gepa_sync"]).by_pair == [0.2]
    assert time_to_score(rows, "stream", ["gepa_sync"], spent="tokens").by_pair == [2.0]
    validated = rows_of(gepa_sync=curves([(0.0, 0.1), (9.0, 0.4)]), stream=curves([(0.0, 0.1), (9.0, 0.4)]))
    assert time_to_score(validated, "stream", ["gepa_sync"], spent="tokens").pairs == 0


def test_a_score_may_be_lost_again() -> None:
    rows = rows_of(
        gepa_sync=curves([(0.0, 0.1), (100.0, 0.4)]),
        stream=curves(
            [(0.0, 0.1), (20.0, 0.5), (30.0, 0.3), (40.0, 0.4)],
            [(0.0, 0.1), (20.0, 0.5), (30.0, 0.3)],
            [(0.0, 0.1), (20.0, 0.5), (30.0, 0.399)],
            [(0.0, 0.1), (20.0, 0.3)],
        ),
    )
    assert afterwards(rows, "stream", "gepa_sync") == Afterwards(pairs=4, reached=3, later=2, last=1)
    first, kept = (time_to_score(rows, "stream", ["gepa_sync"], kept=each).by_pair for each in (False, True))
    assert first == [0.2, 0.2, 0.2, math.inf]
    assert kept == [0.4, math.inf, 0.2, math.inf], "0.399 can't be told from 0.4"


def test_of_points_at_the_same_time_the_last_one_counts() -> None:
    rows = rows_of(
        gepa_sync=curves([(0.0, 0.1), (100.0, 0.4)]),
        stream=curves([(0.0, 0.1), (20.0, 0.3), (20.0, 0.5)], [(0.0, 0.1), (20.0, 0.3), (20.0, 0.5), (20.0, 0.3)]),
    )
    assert time_to_score(rows, "stream", ["gepa_sync"], kept=True).by_pair == [0.2, math.inf]
    assert afterwards(rows, "stream", "gepa_sync") == Afterwards(pairs=2, reached=2, later=1, last=1)


def test_a_score_that_gepas_own_run_loses_for_a_while_is_kept_from_when_on_it_has_it_again() -> None:
    rows = rows_of(
        gepa_sync=curves([(0.0, 0.1), (50.0, 0.4), (80.0, 0.2), (100.0, 0.4)]),
        stream=curves([(0.0, 0.1), (20.0, 0.5)]),
    )
    assert time_to_score(rows, "stream", ["gepa_sync"]).by_pair == [0.4]
    assert time_to_score(rows, "stream", ["gepa_sync"], kept=True).by_pair == [0.2]
