"""Builds a tour town by town, as a program chooses the next one."""


def harness_tour(distances: list[list[float]]) -> list[int]:
    tour = [0]
    left = list(range(1, len(distances)))
    while left:
        town = globals()["next_town"](tour[-1], tour[0], list(left), distances)
        if town not in left:
            raise ValueError(f"next_town chose {town!r}, which is none of the {len(left)} towns left")
        left.remove(town)
        tour.append(int(town))
    return tour
