"""Transactions are appended one by one, the one that ends soonest of those looked at."""


def end_time(transaction: list[list[object]], used: dict[object, int], written: dict[object, int]) -> int:
    """When a transaction would end if it came next, after the last use and the last write of each key."""
    begin = 1
    for place, (kind, key) in enumerate(transaction):
        if kind != "*":
            busy = used if kind == "w" else written
            begin = max(begin, busy.get(key, 0) + 1 - place)
    return begin + len(transaction) - 1


def take(transaction: list[list[object]], used: dict[object, int], written: dict[object, int]) -> None:
    """Note when a transaction that comes next uses and writes its keys."""
    begin = end_time(transaction, used, written) - len(transaction) + 1
    for place, (kind, key) in enumerate(transaction):
        if kind != "*":
            used[key] = max(used.get(key, 0), begin + place)
            if kind == "w":
                written[key] = max(written.get(key, 0), begin + place)


# EVOLVE-BLOCK-START
LOOK_AHEAD = 4
"""How many of the transactions left are looked at."""
END = 1.0
"""What it counts when a transaction would end."""
LENGTH = 0.0
"""What its length counts."""
WRITES = 0.0
"""What the number of its writes counts."""


def worth(transaction: list[list[object]], used: dict[object, int], written: dict[object, int]) -> float:
    """The lower, the better."""
    writes = sum(kind == "w" for kind, _ in transaction)
    return END * end_time(transaction, used, written) + LENGTH * len(transaction) + WRITES * writes


def schedule(transactions: list[list[list[object]]]) -> list[int]:
    used: dict[object, int] = {}
    written: dict[object, int] = {}
    left = list(range(len(transactions)))
    order = []
    while left:
        seen = left[:LOOK_AHEAD]
        best = min(seen, key=lambda each: worth(transactions[each], used, written))
        take(transactions[best], used, written)
        left.remove(best)
        order.append(best)
    return order


# EVOLVE-BLOCK-END
