"""A local search for a short schedule that a program leads out of local optima."""

from collections.abc import Sequence


def harness_makespan(order: Sequence[int], times: Sequence[Sequence[float]]) -> float:
    """The time when the last machine is done with the jobs in this order. ``times`` are ``times[job][machine]``."""
    done = [0.0] * len(times[0])
    for job in order:
        ready = 0.0
        for machine, time in enumerate(times[job]):
            ready = max(ready, done[machine]) + time
            done[machine] = ready
    return done[-1]


def harness_search(order: list[int], times: Sequence[Sequence[float]], jobs: Sequence[int]) -> list[int]:
    """Move single jobs of ``jobs`` to other places as long as that makes the schedule shorter."""
    best = harness_makespan(order, times)
    better = True
    while better:
        better = False
        for job in jobs:
            rest = [other for other in order if other != job]
            tries = [[*rest[:place], job, *rest[place:]] for place in range(len(order))]
            lengths = [harness_makespan(each, times) for each in tries]
            if min(lengths) < best - 1e-9:
                best = min(lengths)
                order = tries[lengths.index(best)]
                better = True
    return order


def harness_play(times: list[list[float]], rounds: int) -> list[int]:
    """Search with the true times; then in each round with the program's times and jobs and with the true ones again."""
    jobs = list(range(len(times)))
    order = harness_search(sorted(jobs, key=lambda job: -sum(times[job])), times, jobs)
    best = order
    for _ in range(rounds):
        changed, some = globals()["perturb"](list(order), [list(row) for row in times])
        matrix = [[float(time) for time in row] for row in changed]
        if [len(row) for row in matrix] != [len(row) for row in times]:
            raise ValueError("perturb must return times for every job and machine")
        if any(not abs(time) < 1e9 for row in matrix for time in row):
            raise ValueError("perturb returned a time that is no number below 1e9")
        if any(job not in jobs for job in some):
            raise ValueError(f"perturb must return jobs, numbers from 0 to {len(jobs) - 1}")
        order = harness_search(order, matrix, [int(job) for job in some])
        order = harness_search(order, times, jobs)
        if harness_makespan(order, times) < harness_makespan(best, times):
            best = order
    return best
