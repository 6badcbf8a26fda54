"""First come, best fit: the fuller a bin will be, the better."""

# EVOLVE-BLOCK-START
LEFT = -1.0
"""What a unit of room counts that stays free."""
FULL = 0.0
"""What it counts that a bin becomes full."""
NEW = 0.0
"""What it counts that no new bin is begun."""
USELESS = 20
"""Room below which hardly any item fits."""
WASTE = 0.0
"""What it costs, in hundreds, that so little room is left, and not none."""


def value(left: int, room: int, largest: int) -> float:
    """Of putting an item where there is this much room, so that some is left."""
    worth = LEFT * left
    if left == 0:
        worth += FULL
    elif left < USELESS:
        worth -= 100 * WASTE
    if room < largest:
        worth += NEW
    return worth


def priority(item: int, rooms: list[int]) -> list[float]:
    return [value(room - item, room, rooms[-1]) for room in rooms]


# EVOLVE-BLOCK-END
