"""All points with two coordinates that are 1 or -1, and 0 elsewhere."""

from itertools import combinations, product

# EVOLVE-BLOCK-START
SIZES = (1, -1)


def points(dimensions: int) -> list[list[int]]:
    found = []
    for i, j in combinations(range(dimensions), 2):
        for one, other in product(SIZES, repeat=2):
            point = [0] * dimensions
            point[i], point[j] = one, other
            found.append(point)
    return found


# EVOLVE-BLOCK-END
