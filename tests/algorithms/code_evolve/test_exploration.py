"""Exploration schedules, epoch by epoch."""

from __future__ import annotations

from math import cos, pi

import pytest
from hypothesis import given, strategies as st

from flowevolve.algorithms.code_evolve.exploration import ExplorationSettings, Exploring


def rates(schedule: ExplorationSettings, improved: str) -> list[float]:
    """The probability after every epoch; ``+`` is one that improved."""
    now, found = schedule.begin(), [schedule.begin().rate]
    for each in improved:
        now = schedule.after(now, improved=each == "+")
        found.append(now.rate)
    return found


def test_a_plateau_raises_it_every_fifth_stale_epoch() -> None:
    found = rates(ExplorationSettings(), "." * 11)
    assert found == [0.2] * 5 + [0.2 * 1.05] * 5 + [0.2 * 1.05 * 1.05] * 2


def test_an_improvement_lowers_it_and_begins_the_count_again() -> None:
    raised = 0.3 * 1.05
    found = rates(ExplorationSettings(initial=0.3), ".....+....+.....")
    assert found[5] == raised
    assert found[6:11] == [raised * 0.95] * 5
    assert found[11:16] == [pytest.approx(raised * 0.95 * 0.95)] * 5
    assert found[16] == pytest.approx(raised * 0.95 * 0.95 * 1.05)


@given(st.text("+.", max_size=400))
def test_a_plateau_stays_within_its_bounds(improved: str) -> None:
    assert all(0.2 <= rate <= 0.5 for rate in rates(ExplorationSettings(), improved))


def test_it_gets_to_both_bounds() -> None:
    found = rates(ExplorationSettings(), "." * 200 + "+" * 40)
    assert (max(found), found[-1]) == (0.5, 0.2)


def test_exponential_decay() -> None:
    found = rates(ExplorationSettings(schedule="exponential", least=0.2, most=0.5, factor=0.9), "." * 20)
    assert found[:3] == [0.5, 0.5 * 0.9, 0.5 * 0.9**2]
    assert found[-1] == 0.2


def test_cosine_decay() -> None:
    found = rates(ExplorationSettings(schedule="cosine", least=0.1, most=0.5, period=8), "." * 12)
    assert found[0] == 0.5
    assert found[4] == pytest.approx(0.3)
    assert found[2] == pytest.approx(0.1 + 0.4 * (1 + cos(pi / 4)) / 2)
    assert found[8:] == pytest.approx([0.1] * 5)


@pytest.mark.parametrize("name", ["plateau", "exponential", "cosine"])
def test_epochs_are_counted(name: str) -> None:
    schedule = ExplorationSettings.model_validate({"schedule": name})
    now = schedule.begin()
    for _ in range(7):
        now = schedule.after(now, improved=False)
    assert now.epochs == 7
    assert isinstance(now, Exploring)
