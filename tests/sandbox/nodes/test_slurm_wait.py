"""What a user is told of jobs that wait, on the virtual clock."""

from __future__ import annotations

from pathlib import Path

import anyio

from flowevolve._util import clock
from flowevolve.sandbox.nodes.slurm_wait import Wait

JOBS = ["12", "13"]
FIRST = "the run waits for the first as long as it takes, and Ctrl-C cancels them"


def told(*at_work: int, every: float = 2.0, jobs: list[str] = JOBS) -> list[str]:
    """What is said over looks with so many seconds between them, each with the time at which it is."""
    lines: list[str] = []

    async def go() -> None:
        start = clock.now()
        wait = Wait(len(jobs), lambda line: lines.append(f"{clock.now() - start:g}: {line}"))
        for number in at_work:
            wait.look(jobs, number, Path("/logs"))
            await anyio.sleep(every)

    clock.run(go, clock="virtual")
    return lines


def test_nothing_is_said_where_all_begin_at_once() -> None:
    assert told(0, 1, 2, 2, 2, 2, 2) == []


def test_jobs_that_wait_are_told_once_and_so_is_the_first_that_begins() -> None:
    waits, begins, all_there = told(0, 0, 0, 0, 0, 1, 2, 2, 2, 2)
    assert waits == f"6: Slurm: jobs at work: none of 2 for 6 s (12, 13; logs in /logs); {FIRST}"
    assert begins == "10: Slurm: jobs at work: 1 of 2; the others join as they begin"
    assert all_there == "18: Slurm: jobs at work: 2 of 2"


def test_a_long_wait_is_told_again_every_ten_minutes() -> None:
    lines = told(*[0] * 50, every=30)
    assert [line.partition(" (")[0] for line in lines] == [
        "30: Slurm: jobs at work: none of 2 for 30 s",
        "630: Slurm: jobs at work: none of 2 for 10 min",
        "1230: Slurm: jobs at work: none of 2 for 20 min",
    ]


def test_what_is_left_of_jobs_in_mid_run_is_told() -> None:
    one, none = told(2, 1, 1, 1, 1, 0, 0, 0, 0)
    assert one == "8: Slurm: jobs at work: 1 of 2; the others join as they begin"
    assert none == "16: Slurm: jobs at work: none of 2 for 6 s (12, 13; logs in /logs)"


def test_of_many_jobs_the_first_are_named() -> None:
    (line,) = told(0, 0, every=10, jobs=[str(number) for number in range(100)])
    assert "none of 100 for 10 s (0, 1, 2, 3, 4, …; logs in" in line
