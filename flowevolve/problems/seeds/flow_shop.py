"""Some jobs seem longer than they are, so that they are put elsewhere."""

# EVOLVE-BLOCK-START
SHARE = 0.25
"""Of the jobs that may be moved."""
LONGER = 1.2
"""How much longer these jobs seem."""


def jobs_to_move(order: list[int], times: list[list[float]]) -> list[int]:
    """The first ones."""
    return order[: max(1, round(SHARE * len(order)))]


def perturb(order: list[int], times: list[list[float]]) -> tuple[list[list[float]], list[int]]:
    jobs = jobs_to_move(order, times)
    changed = [[time * (LONGER if job in jobs else 1.0) for time in row] for job, row in enumerate(times)]
    return changed, jobs


# EVOLVE-BLOCK-END
