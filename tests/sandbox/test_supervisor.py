"""What the process that watches a program reports."""

from __future__ import annotations

import pytest

from flowevolve.sandbox.inside.supervisor import whole_trace


@pytest.mark.parametrize("seen", [[[0.001, 0.0]], [[0.001, 0.0], [0.002, 0.0]]])
def test_a_program_that_was_gone_before_anyone_looked_has_its_peak_all_the_time(seen: list[list[float]]) -> None:
    assert whole_trace(seen, 0.003, 5e6) == [[0.0, 5e6], [0.003, 5e6]]


def test_a_trace_lasts_to_the_end() -> None:
    assert whole_trace([[0.001, 4e6], [0.003, 5e6]], 0.004, 6e6) == [[0.001, 4e6], [0.003, 5e6], [0.004, 5e6]]
