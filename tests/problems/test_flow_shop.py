"""Orders of jobs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from flowevolve.problems.drivers.flow_shop import harness_makespan
from flowevolve.problems.flow_shop import FlowShop, least_time
from tests.problems.conftest import Court
from tests.support.problem_checks import refusal, score

ROW = '{"proc_times": [[3, 2], [1, 4], [2, 2]]}\n'


@pytest.fixture
def three(tmp_path: Path) -> FlowShop:
    """Johnson's rule: jobs that are shorter on the first machine first, ascending."""
    path = tmp_path / "three.jsonl"
    path.write_text(ROW, encoding="utf-8")
    return FlowShop(data=path, rounds=1)


def test_an_order_takes_what_it_takes(three: FlowShop, court: Court) -> None:
    johnson = score(three, [1, 2, 0])
    assert johnson.metrics["makespan"] == 9
    assert johnson.value == 1.0
    assert score(three, [0, 1, 2]).metrics["makespan"] == 11
    assert court.judge(three).value == 1.0


times = st.integers(1, 4).flatmap(
    lambda machines: st.lists(st.tuples(*[st.integers(1, 9)] * machines), min_size=2, max_size=5)
)


@given(times)
def test_no_order_is_below_the_bound_and_times_are_those_of_the_longest_way(rows: list[tuple[int, ...]]) -> None:
    jobs = range(len(rows))
    spans = {order: harness_makespan(order, rows) for order in itertools.permutations(jobs)}
    assert least_time(tuple(rows)) <= min(spans.values())
    for order, span in list(spans.items())[:3]:
        assert span == _longest_way([rows[job] for job in order])


def _longest_way(rows: Sequence[Sequence[int]]) -> int:
    """The longest path from the first job on the first machine to the last job on the last machine.

    A path goes on by one job or one machine at a time.
    """
    jobs, machines = len(rows), len(rows[0])
    longest = 0
    for turns in itertools.combinations(range(jobs + machines - 2), machines - 1):
        job = machine = 0
        total = rows[0][0]
        for step in range(jobs + machines - 2):
            job, machine = (job, machine + 1) if step in turns else (job + 1, machine)
            total += rows[job][machine]
        longest = max(longest, total)
    return longest


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ([0, 1], "the order of jobs must have 3 entries, not 2"),
        ([0, 1, 1], "the order of jobs has 1 twice"),
        ({"order": [0, 1, 2]}, "the order of jobs must be a list, not an object"),
    ],
)
def test_wrong_orders_are_refused(three: FlowShop, order: object, says: str) -> None:
    assert refusal(three, order).startswith(says)


@pytest.mark.parametrize(
    ("returns", "failure"),
    [
        ("times[:1], [0]", "must return times for every job and machine"),
        ("[[float('nan')] * 2] * 3, [0]", "a time that is no number below 1e9"),
        ("times, [3]", "must return jobs, numbers from 0 to 2"),
        ("times", "ValueError"),
        ("None", "TypeError"),
    ],
)
def test_a_program_that_returns_no_times_and_jobs_fails(
    three: FlowShop, court: Court, returns: str, failure: str
) -> None:
    verdict = court.judge(three, f"def perturb(order, times):\n    return {returns}\n")
    assert verdict.value == 0.0
    assert verdict.failure is not None
    assert failure in verdict.failure


def test_leading_the_search_on_helps(court: Court) -> None:
    """A program that shuffles jobs and times does better than the seed, which is meant to leave room for improvement."""
    source = """
import random

def perturb(order, times):
    rng = random.Random(str(order))
    changed = [[time * rng.uniform(0.8, 1.2) for time in row] for row in times]
    return changed, rng.sample(order, 8)
"""
    problem = FlowShop(instances=2)
    assert court.mean(problem, source) >= court.mean(problem)


def test_real_instances_are_read(data_dir: Path, court: Court) -> None:
    problem = FlowShop(data=data_dir / "eoh" / "flowshop_eoh_seed2024.jsonl", rounds=1)
    assert len(problem.cases) == 16
    assert 0.85 < court.judge(problem).value <= 1
