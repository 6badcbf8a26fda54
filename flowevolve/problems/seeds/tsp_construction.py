"""To the nearest town, with an eye on the way home."""

# EVOLVE-BLOCK-START
NEAR = 1.0
"""What the distance to a town counts."""
HOME = 0.0
"""What its distance from the start counts."""
ALONE = 0.0
"""What its distance from the nearest other town left counts."""


def worth(town: int, here: int, start: int, left: list[int], distances: list[list[float]]) -> float:
    """The lower, the better."""
    others = [distances[town][other] for other in left if other != town]
    alone = min(others) if others else 0.0
    return NEAR * distances[here][town] + HOME * distances[town][start] + ALONE * alone


def next_town(here: int, start: int, left: list[int], distances: list[list[float]]) -> int:
    return min(left, key=lambda town: worth(town, here, start, left, distances))


# EVOLVE-BLOCK-END
