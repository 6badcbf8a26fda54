"""The cheapest path to each destination, the same for every part of the data."""

import heapq
from itertools import pairwise

# EVOLVE-BLOCK-START
HOP = 0.0
"""What passing a link costs beyond its price."""
SHARED = 1.0
"""Of a link's price, what it still costs once another destination has been given a path over it."""


def cheapest_path(
    source: str, destination: str, prices: dict[str, dict[str, float]], used: set[tuple[str, str]]
) -> list[str]:
    """Dijkstra's algorithm."""
    queue: list[tuple[float, list[str]]] = [(0.0, [source])]
    done = set()
    while queue:
        cost, path = heapq.heappop(queue)
        here = path[-1]
        if here == destination:
            return path
        if here in done:
            continue
        done.add(here)
        for there, price in prices.get(here, {}).items():
            if there not in done:
                share = SHARED if (here, there) in used else 1.0
                heapq.heappush(queue, (cost + share * price + HOP, [*path, there]))
    raise ValueError(f"there is no path from {source} to {destination}")


def broadcast(
    source: str, destinations: list[str], parts: int, links: list[tuple[str, str, float, float]]
) -> dict[str, list[list[str]]]:
    prices: dict[str, dict[str, float]] = {}
    for here, there, price, _ in links:
        prices.setdefault(here, {})[there] = price
    used: set[tuple[str, str]] = set()
    paths = {}
    for destination in destinations:
        path = cheapest_path(source, destination, prices, used)
        used.update(pairwise(path))
        paths[destination] = [path] * parts
    return paths


# EVOLVE-BLOCK-END
