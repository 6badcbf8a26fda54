"""When a claim counts as confirmed or refuted."""

from __future__ import annotations

import numpy as np
import pytest

from bench.confirm.claims import CLAIMS, LEAST_REPEATS, Of, Verdict, answers, crossed_interval

ROWS = 40


def scores(**means: float) -> dict[Of, list[float]]:
    """Scores of one repeat: each of these has its mean, and about the same rows right."""
    of: dict[Of, float] = {"seed": 0.2, "gepa": 0.5, "defaults": 0.5, "half": 0.5, **means}  # type: ignore[dict-item]  # names of candidates
    return {name: [mean + 0.001 * (row % 2) for row in range(ROWS)] for name, mean in of.items()}


def verdicts(repeats: int = LEAST_REPEATS, **means: float) -> list[Verdict]:
    return [each.verdict for each in answers([scores(**means)] * repeats)]


def test_a_score_that_is_as_good_is_confirmed() -> None:
    assert verdicts() == ["confirmed"] * 4
    assert verdicts(defaults=0.485, half=0.485) == ["confirmed"] * 4


def test_a_score_that_is_worse_by_more_than_the_margin_is_refuted() -> None:
    assert verdicts(defaults=0.45, half=0.3) == ["confirmed", "confirmed", "refuted", "refuted"]


def test_a_seed_that_nobody_improves_confirms_nothing() -> None:
    """Whoever finds nothing is as good as gepa where gepa finds nothing."""
    assert verdicts(gepa=0.2, defaults=0.2, half=0.2) == ["can't tell"] * 4
    assert verdicts(gepa=0.1, defaults=0.2, half=0.05) == ["refuted", "can't tell", "can't tell", "refuted"]


def test_few_repeats_tell_nothing() -> None:
    assert verdicts(LEAST_REPEATS - 1) == ["can't tell"] * 4
    assert [each.figure for each in answers([])] == [None] * len(CLAIMS)


def test_an_interval_around_the_margin_tells_nothing() -> None:
    repeats = [scores(defaults=0.5 + shift) for shift in (-0.2, 0.0, 0.1)]
    answered = answers(repeats)[2]
    assert (answered.verdict, answered.reason) == ("can't tell", "the interval has -0.02 in it")


def test_a_repeat_without_the_candidate_is_left_out() -> None:
    without: dict[Of, list[float]] = {of: each for of, each in scores().items() if of != "half"}
    assert answers([scores(), scores(), without])[3].reason == f"2 of at least {LEAST_REPEATS} repeats"
    assert answers([scores(), scores(), without])[2].verdict == "confirmed"


def test_the_interval_is_for_other_rows_and_for_other_repeats() -> None:
    rows, repeats = np.tile([0.0, 1.0], (3, 10)), np.repeat([[0.0], [0.5], [1.0]], 20, axis=1)
    assert crossed_interval(rows).low < 0.35 < 0.65 < crossed_interval(rows).high
    assert crossed_interval(repeats).low < 0.25 < 0.75 < crossed_interval(repeats).high
    same = crossed_interval(np.full((3, 20), 0.25))
    assert [same.low, same.value, same.high] == pytest.approx([0.25, 0.25, 0.25])


@pytest.mark.parametrize("of_repeats", [0.02, 0.1])
def test_intervals_hold_the_true_difference_19_times_in_20(of_repeats: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.confirm.claims.RESAMPLES", 1000)
    generator = np.random.default_rng(0)

    def differences() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        of_rows, chance = generator.normal(0.0, 0.1, (1, 40)), generator.normal(0.0, 0.2, (3, 40))
        return generator.normal(0.0, of_repeats, (3, 1)) + of_rows + chance

    found = [crossed_interval(differences()) for _ in range(400)]
    assert 0.92 <= np.mean([each.low <= 0.0 <= each.high for each in found]) <= 0.99


def test_one_repeat_leaves_open_what_others_would_show() -> None:
    alone = crossed_interval(np.tile([0.0, 1.0], (1, 10)))
    assert (alone.value, alone.low, alone.high) == (0.5, -np.inf, np.inf)
