"""Items come one by one; a program gives the bins that an item fits in priorities."""

from collections.abc import Callable, Sequence


def harness_pack(items: Sequence[int], capacity: int, choose: Callable[[int, dict[int, int]], int]) -> list[int]:
    """For each item the bin chosen, as the room that was left in it. A bin with all its room left is a new one.

    ``choose`` gets an item and how many bins in use there are by the room left in them; it returns such a room, or the
    capacity.
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
    """The different rooms that an item fits in, ascending."""
    return sorted({room for room in in_use if room >= item} | {capacity})


def harness_choice(item: int, rooms: list[int]) -> int:
    """The room with the highest priority, the least of several."""
    priorities = [float(value) for value in globals()["priority"](item, list(rooms))]
    if len(priorities) != len(rooms):
        raise ValueError(f"priority must return one number for each room: {len(rooms)}, not {len(priorities)}")
    return rooms[priorities.index(max(priorities))]


def harness_play(items: list[int], capacity: int) -> list[int]:
    return harness_pack(items, capacity, lambda item, used: harness_choice(item, harness_rooms(item, used, capacity)))


def harness_ask_again(asked: list[tuple[int, list[int]]]) -> list[int]:
    return [harness_choice(item, rooms) for item, rooms in asked]
