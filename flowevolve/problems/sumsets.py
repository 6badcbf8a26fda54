"""Sets of whole numbers with many differences and few sums."""

from __future__ import annotations

import math
from itertools import pairwise

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import list_of, whole_number
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError

MOST = 2048
"""The most numbers that a set may have, so that its two million sums fit into memory."""
LARGEST = 10**15


class SumsAndDifferences(ShippedProblem):
    """A set U of whole numbers with 0. Value: 1 + log(|U - U| / |U + U|) / log(2 max(U) + 1), which bounds C6 below.

    This is AlphaEvolve's B.6, after Gyarmati, Hennecart and Ruzsa (1.14465). AlphaEvolve has 1.1479 with 2,003 numbers
    and 1.1584 with 54,265; sets as large as the second are not taken here. Counts are exact.
    """

    name = "sums_and_differences"
    entry = "numbers"
    in_thread = True
    reference = 1.1584
    reference_source = "AlphaEvolve B.6, with 54,265 numbers; 1.1479 with 2,003"

    def __init__(self, limits: LimitsSetting = "quick") -> None:
        super().__init__(limits)
        self.statement = (
            "Find a set U of whole numbers that has many differences and few sums.\n\n"
            f"Write `numbers()`, which returns a list of 2 to {MOST} different whole numbers from 0 to {LARGEST:.0e}, "
            "one of them 0.\n\n"
            "The score is 1 + log(D / S) / log(2 m + 1), where D and S are how many different numbers there are among "
            f"all u - v and all u + v with u and v in U, and m is the largest number in U. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        numbers = self._read(result)
        sums, differences = count_sums(numbers), count_differences(numbers)
        value = 1 + math.log(differences / sums) / math.log(2 * numbers[-1] + 1)
        return Verdict(
            value,
            f"{len(numbers)} numbers up to {numbers[-1]} have {differences} differences and {sums} sums: C6 is at "
            f"least {value:.8f}.",
            metrics={"sums": float(sums), "differences": float(differences), "numbers": float(len(numbers))},
        )

    def _read(self, result: JSON) -> list[int]:
        """Read the numbers, and return them in ascending order.

        Raises:
            WrongResultError: if the result is not such a set.
        """
        entries = list_of(result, "numbers")
        if not 2 <= len(entries) <= MOST:
            raise WrongResultError(f"numbers must have 2 to {MOST} entries, not {len(entries)}")
        numbers = sorted(whole_number(entry, f"numbers[{place}]", LARGEST + 1) for place, entry in enumerate(entries))
        for one, other in pairwise(numbers):
            if one == other:
                raise WrongResultError(f"{one} is there twice; the numbers must differ")
        if numbers[0] != 0:
            raise WrongResultError("0 is missing; it must be one of the numbers")
        return numbers


def count_sums(numbers: list[int]) -> int:
    """How many different sums of two numbers there are."""
    return len({one + other for place, one in enumerate(numbers) for other in numbers[place:]})


def count_differences(numbers: list[int]) -> int:
    """How many different differences numbers in ascending order have: 0, and all others with both signs."""
    above = {other - one for place, one in enumerate(numbers) for other in numbers[place + 1 :]}
    return 2 * len(above) + 1
