"""Packs items one by one into bins, as a program's priorities for the bins say."""

from collections.abc import Callable, Sequence


def harness_pack(items: Sequence[int], capacity: int, choose: Callable[[int, dict[int, int]], int]) -> list[int]:
    """Return for each item the chosen bin, given by the room that was left in it; for a new bin this is the capacity.

    ``choose`` gets an item and the number of bins in use by the room left in them. It returns one of these rooms, or
    the capacity for a new bin.
    """
    in_use: dict[int, int] = {}
    chosen = []
    for item in items:
        room = choose(item, in_use)
        if room != capacity:
            in_use[room] -= 1
            if not in_use[room]:
                del in_use[room]
        left = room - item
        in_use[left] = in_use.get(left, 0) + 1
        chosen.append(room)
    return chosen


def harness_rooms(item: int, in_use: dict[int, int], capacity: int) -> list[int]:
    """The different rooms that an item fits into, in ascending order."""
    return sorted({room for room in in_use if room >= item} | {capacity})


def harness_choice(item: int, rooms: list[int]) -> int:
    """The room with the highest priority; the smallest one of several."""
    priorities = [float(value) for value in globals()["priority"](item, list(rooms))]
    if len(priorities) != len(rooms):
        raise ValueError(f"priority must return one number for each room: {len(rooms)}, not {len(priorities)}")
    return rooms[priorities.index(max(priorities))]


def harness_play(items: list[int], capacity: int) -> list[int]:
    return harness_pack(items, capacity, lambda item, used: harness_choice(item, harness_rooms(item, used, capacity)))


def harness_ask_again(asked: list[tuple[int, list[int]]]) -> list[int]:
    return [harness_choice(item, rooms) for item, rooms in asked]
