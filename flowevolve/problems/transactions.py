"""Transaction scheduling: ordering transactions so that their locks keep each other waiting as little as possible."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import permutation
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict

OTHER_WORK: Final = "*"
Operation = tuple[Literal["r", "w", "*"], int]
"""Reading a key, writing a key, or work that needs no key."""
Transaction = tuple[Operation, ...]

LEVI_MAKESPAN = 224
"""LEVI's total for the three real workloads (its table 1 has 4464.29, which is 10^6 / 224)."""


class TransactionsRow(Row):
    """A workload, with ADRS's fields. A transaction is a text of operations such as ``r-17``, separated by spaces."""

    workload: str
    txns: dict[str, str]


class TransactionScheduling(ShippedProblem):
    """An order of all transactions of a workload. Value of a case: 1 - makespan / time without any overlap.

    The makespan is that of ADRS's simulator. An operation takes 1, and the operations of a transaction follow each
    other without a pause. A write waits for all earlier operations on its key, and a read for all earlier writes. Each
    transaction in turn begins as soon as this holds for all of its operations. The makespan is divided by the same
    number for all workloads: the time that the longest workload takes with one transaction after another. The mean
    value thus gives the total makespan, of which published scores are functions. With the three real workloads, LEVI's
    best total, 224, is the reference. LEVI's seed has 352 and the unchanged order 537, which are 41.9 and 0 in LEVI's
    scale from 0 to 100.
    """

    name = "transaction_scheduling"
    entry = "schedule"
    worst = -1.0

    def __init__(
        self,
        data: Path | None = None,
        transactions: int = 100,
        instances: int = 3,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(limits)
        self._workloads = real_workloads(data) if data is not None else drawn_workloads(transactions, instances, seed)
        self._serial = max(sum(map(len, workload)) for workload in self._workloads)
        if data is not None and [len(workload) for workload in self._workloads] == [100] * 3:
            self.reference = 1 - LEVI_MAKESPAN / (3 * self._serial)
        self.cases = [
            Case(str(place), {"transactions": [[[*operation] for operation in each] for each in workload]})
            for place, workload in enumerate(self._workloads)
        ]
        self.statement = (
            "Put the transactions of a database into an order in which they keep each other waiting as little as "
            "possible.\n\n"
            "Write `schedule(transactions)`, called once for each workload. A transaction is a list of operations "
            '["r", key] (read), ["w", key] (write) or ["*", 0] (work that needs no key). It returns a list of all '
            "transactions' numbers, from 0, in the order of your choice.\n\n"
            "Each operation takes one unit of time, and the operations of a transaction follow each other without a "
            "pause. In your order, each transaction begins as early as it can, at time 1 or later, such that each of "
            "its writes comes after all operations on the key by transactions before it in the order, and each of its "
            "reads after all their writes of the key. Transactions overlap where that allows it.\n\n"
            f"The score of a workload is 1 - (the time at which the last transaction ends) / {self._serial}, and the "
            f"mean counts over {len(self.cases)} workloads of {len(self._workloads[0])} transactions or so. "
            f"{self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        workload = self._workloads[int(case.id)]
        order = permutation(result, "the order", len(workload))
        begins = begin_times(order, workload)
        ends = [begin + len(workload[each]) - 1 for begin, each in zip(begins, order, strict=True)]
        makespan = max(ends)
        last = ends.index(makespan)
        return Verdict(
            1 - makespan / self._serial,
            f"The last transaction ends at {makespan}; all of them one after another would take "
            f"{sum(map(len, workload))}. The last is transaction {order[last]}, at place {last} of the order, which "
            f"begins at {begins[last]}.",
            metrics={"makespan": float(makespan)},
        )


def begin_times(order: Sequence[int], workload: Sequence[Transaction]) -> list[int]:
    """The time at which each transaction of this order begins, the earliest being 1."""
    used: dict[int, int] = {}
    written: dict[int, int] = {}
    begins = []
    for number in order:
        operations = [(place, kind, key) for place, (kind, key) in enumerate(workload[number]) if kind != OTHER_WORK]
        begin = 1
        for place, kind, key in operations:
            free = (used if kind == "w" else written).get(key, 0) + 1
            begin = max(begin, free - place)
        for place, kind, key in operations:
            used[key] = max(used.get(key, 0), begin + place)
            if kind == "w":
                written[key] = max(written.get(key, 0), begin + place)
        begins.append(begin)
    return begins


def drawn_workloads(transactions: int, instances: int, seed: int) -> list[tuple[Transaction, ...]]:
    """Draw workloads of three kinds in turn: with very popular keys, with some idle work, and with mixed lengths."""
    check_least(1, transactions=transactions, instances=instances)
    rng = random.Random(f"transactions {seed}")
    return [tuple(_transaction(rng, workload % 3) for _ in range(transactions)) for workload in range(instances)]


def _transaction(rng: random.Random, workload: int) -> Transaction:
    length = 16 if workload < 2 else rng.choice((5, 8, 20))
    busy = (1.2, 2.0, 1.5)[workload]
    keys: list[int] = []
    while len(keys) < length:
        key = int(rng.paretovariate(1 / busy))
        if key < 10_000 and key not in keys:
            keys.append(key)
    idle = 0.0 if workload == 0 else 0.2
    operations: list[Operation] = []
    for key in keys:
        if rng.random() < idle:
            operations.append((OTHER_WORK, 0))
        else:
            operations.append(("w" if rng.random() < 0.5 else "r", key))
    return tuple(operations)


def real_workloads(data: Path) -> list[tuple[Transaction, ...]]:
    return [
        tuple(_parsed(text, f"{data}: row {place}, {name}") for name, text in row.txns.items())
        for place, row in enumerate(read_rows(data, TransactionsRow), 1)
    ]


def _parsed(text: str, where: str) -> Transaction:
    """Read a transaction.

    Raises:
        InputError: if the text is not a list of operations.
    """
    found: list[Operation] = []
    for word in text.split():
        kind, _, key = word.partition("-")
        if word == OTHER_WORK:
            found.append((OTHER_WORK, 0))
        elif kind in ("r", "w") and key.isdecimal():
            found.append(("r" if kind == "r" else "w", int(key)))
        else:
            raise InputError(f"{where}: {word!r} is not an operation; give r-KEY, w-KEY or *")
    if not found:
        raise InputError(f"{where}: there are no operations; give at least one")
    return tuple(found)
