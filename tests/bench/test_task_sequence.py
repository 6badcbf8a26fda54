"""CSE over a sequence of tasks: what is run, and what is made of it."""

from __future__ import annotations

import json

from bench._lib.algorithm_runs import Run, configure
from bench.task_sequence.passages import TASKS, Passage, job_of, pass_through, summarise
from bench.task_sequence.section import section
from flowevolve.runner.assemble import make_algorithm, make_task

FIRST, SECOND = TASKS[:2]


def run_of(task: str, best: float, seed: int) -> Run:
    return Run(task, "cse", "sync", seed, 1.0, best, 1000, 10, 2, 5.0, {"memory.recalled": 3})


def passage(seed: int, gain: float, *, remembers: bool) -> Passage:
    return Passage(seed, remembers, tuple(run_of(task, gain, seed) for task in (FIRST, SECOND)))


def test_a_sequence_compares_passages_of_equal_seeds() -> None:
    passages = [passage(seed, 3.0 if on else 1.5, remembers=on) for seed in range(3) for on in (False, True)]
    found = json.loads(json.dumps(summarise(passages)))
    assert [each["task"] for each in found["tasks"]] == [FIRST, SECOND]
    assert found["later"]["better"] == 3
    assert found["tasks"][1]["recalled"] == 3


def test_the_tasks_of_the_sequence_can_be_run() -> None:
    assert len(TASKS) >= 4
    for task in TASKS:
        job = job_of(task, 0, None, 5)
        config = configure(job)
        make_algorithm(config, make_task(config))


def test_the_section_has_every_task_and_those_after_the_first() -> None:
    passages = [passage(seed, 3.0 if on else 1.5, remembers=on) for seed in range(3) for on in (False, True)]
    settings = {"profile": "p", "world": "code", "seeds": 3, "evaluations": 12, "load": 1.0}
    made = section(json.loads(json.dumps({**summarise(passages), "settings": settings})))
    assert made.startswith("# A sequence of tasks: global memory\n")
    assert f"| 2. {SECOND} | 1.50 (1.50 to 1.50) | 3.00 (3.00 to 3.00) | 2.00 (2.00 to 2.00) | 3 / 0 / 0 |" in made
    assert "| all but the first | | | 2.00 (2.00 to 2.00) | 3 / 0 / 0 | | |" in made
    assert "over the later tasks: helps." in made


def test_a_memory_passes_from_task_to_task() -> None:
    tasks = ("efficiency_distances", "efficiency_distances")
    found = pass_through(0, True, tasks, 4)
    assert [run.problem for run in found.runs] == list(tasks)
    assert len(found.gains) == 2
    assert all(gain >= 0 for gain in found.gains)
    assert not found.runs[0].entries.get("memory.recalled")
