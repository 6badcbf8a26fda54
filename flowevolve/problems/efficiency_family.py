"""The efficiency problems that ship: three families of three problems each, with one idea that helps in all of a
family.

- blocks: keep results for parts of a list, and update them when the list changes;
- windows: update the result for a window as it moves, instead of computing it anew;
- rounds: stop after a round that changes nothing, or find the order in which one round is enough.

The seeds are slow but right, and consist of parts that can be improved one by one. Those of ``blocks`` use badly chosen
numbers, those of ``windows`` do needless work, and those of ``rounds`` do their work too often.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType

from flowevolve._util.errors import InputError
from flowevolve.problems.base import seed_text
from flowevolve.problems.efficiency import EfficiencyProblem, Procedure, Trial, rules
from flowevolve.problems.references import (
    counts_above,
    distances,
    distinct_windows,
    groups,
    longest_run,
    merged_spans,
    range_minimum,
    range_sums,
    window_maximum,
)
from flowevolve.problems.sizes import check_least

_ORDERS = (
    "The first line has the number of numbers, n, and the number of orders. The second line has the numbers, from 0 to "
    "9999. Each line after it is an order: `set I V` makes V of the number at place I (the first is 0)"
)
_WINDOWS = (
    "The first line has the number of numbers, n, and the size of a window, k. The second line has the numbers, all 0 "
    "or more."
)


TESTS = 6
"""How many tests are drawn."""
TIMEOUT = 5.0
BELOW = 10_000
"""All numbers are below this bound."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """A problem whose tests are still to be drawn."""

    name: str
    statement: str
    reference: ModuleType
    draw: Callable[[random.Random, int], str]
    """Draws one test of a given size."""
    edges: tuple[str, ...]
    """Edge cases, which are always among the tests."""
    size: int
    """The size of the largest test, unless the settings say otherwise."""

    def problem(
        self,
        tests: int = TESTS,
        size: int | None = None,
        seed: int = 0,
        timeout: float = TIMEOUT,
        memory_mb: int = 1024,
        runs: int = 5,
        together: int | None = None,
    ) -> EfficiencyProblem:
        """Draw ``tests`` tests in growing sizes up to ``size``, and create the problem. The other settings are
        `Procedure`'s.

        Raises:
            InputError: if there would be no tests, or tests of size 0.
        """
        procedure, size = Procedure(timeout, memory_mb, runs, together), self.size if size is None else size
        check_least(1, tests=tests)
        if size < tests:
            raise InputError(f"task.size is {size}, but has to be at least {tests}, the number of tests")
        rng = random.Random(f"{self.name} {seed}")
        texts = [*self.edges, *(self.draw(rng, size * (number + 1) // tests) for number in range(tests))]
        solve: Callable[[str], str] = self.reference.solve
        return EfficiencyProblem(
            name=self.name,
            statement=f"{self.statement}\n\n{rules(len(texts), procedure)}",
            source=seed_text(self.name),
            tests=[Trial(text, solve(text)) for text in texts],
            reference=inspect.getsource(self.reference),
            procedure=procedure,
        )


def orders(rng: random.Random, size: int, word: str) -> str:
    """``size`` numbers and half as many orders. A third of these set a number; the rest are queries named ``word``."""
    lines = [_line(rng.randrange(BELOW) for _ in range(size))]
    for _ in range(size // 2):
        if rng.random() < 1 / 3:
            lines.append(f"set {rng.randrange(size)} {rng.randrange(BELOW)}")
        else:
            first, last = sorted(rng.sample(range(size + 1), 2))
            lines.append(f"{word} {first} {last}")
    return "\n".join([f"{size} {len(lines) - 1}", *lines])


def numbers(rng: random.Random, size: int) -> str:
    """Numbers, some of which occur twice."""
    return f"{size}\n{_line(rng.randrange(BELOW) for _ in range(size))}"


def windows(rng: random.Random, size: int) -> str:
    """A list with few different numbers, and windows of a sixth of its length."""
    return f"{size} {max(1, size // 6)}\n{_line(rng.randrange(1 + size // 8) for _ in range(size))}"


def repeats(rng: random.Random, size: int) -> str:
    """Numbers that recur after a while, so that stretches without a repeat are some tens of numbers long."""
    return f"{size}\n{_line(rng.randrange(1 + size // 4) for _ in range(size))}"


def spans(rng: random.Random, size: int) -> str:
    """Spans, about half of which touch another."""
    starts = [rng.randrange(40 * size) for _ in range(size)]
    return _lines(f"{size}", ((start, start + rng.randint(1, 40)) for start in starts))


def roads(rng: random.Random, size: int) -> str:
    """A chain through a tenth of the towns in descending order of their numbers, and random roads."""
    pairs = [(place + 1, place) for place in reversed(range(size // 10))]
    pairs += [(rng.randrange(size), rng.randrange(size)) for _ in range(size // 2)]
    return _lines(f"{size} {len(pairs)}", pairs)


def lengths(rng: random.Random, size: int) -> str:
    """One-way roads, three from each town on average, with a chain through a tenth of the towns."""
    triples = [(place + 1, place, 1) for place in range(size // 10)]
    triples += [(rng.randrange(size), rng.randrange(size), rng.randint(1, 999)) for _ in range(3 * size)]
    rng.shuffle(triples)
    return _lines(f"{size} {len(triples)} {rng.randrange(size)}", triples)


def _line(values: Iterable[int]) -> str:
    return " ".join(map(str, values))


def _lines(first: str, rows: Iterable[Sequence[int]]) -> str:
    return "\n".join([first, *map(_line, rows)])


EXERCISES = (
    Exercise(
        "efficiency_range_sums",
        "Sums of parts of a list that changes.\n\n"
        f"{_ORDERS}, and `sum L R` asks for the sum of the numbers from place L on, up to but without place R. Print "
        "the answer to each `sum`, a line each.",
        range_sums,
        partial(orders, word="sum"),
        ("1 3\n5\nsum 0 1\nset 0 7\nsum 0 1", "2 1\n3 4\nsum 1 1"),
        4000,
    ),
    Exercise(
        "efficiency_range_minimum",
        "Smallest numbers in parts of a list that changes.\n\n"
        f"{_ORDERS}, and `min L R` asks for the smallest of the numbers from place L on, up to but without place R; L "
        "is below R. Print the answer to each `min`, a line each.",
        range_minimum,
        partial(orders, word="min"),
        ("1 3\n5\nmin 0 1\nset 0 7\nmin 0 1", "3 2\n9 2 2\nset 1 9\nmin 0 3"),
        1800,
    ),
    Exercise(
        "efficiency_counts_above",
        "For each number of a list, how many of those before it are greater.\n\n"
        "The first line has the number of numbers, the second the numbers, from 0 to 9999. Print the counts on one "
        "line.",
        counts_above,
        numbers,
        ("0\n", "1\n9999", "4\n3 3 2 3"),
        1800,
    ),
    Exercise(
        "efficiency_distinct_windows",
        "How many different numbers are in each window of a list.\n\n"
        f"{_WINDOWS} Print for each k numbers that follow each other how many different ones they are, on one line; an "
        "empty line if k is above n.",
        distinct_windows,
        windows,
        ("1 1\n0", "2 3\n1 1", "4 4\n2 0 2 0"),
        1200,
    ),
    Exercise(
        "efficiency_window_maximum",
        "The largest number in each window of a list.\n\n"
        f"{_WINDOWS} Print for each k numbers that follow each other the largest of them, on one line; an empty line "
        "if k is above n.",
        window_maximum,
        windows,
        ("1 1\n0", "2 3\n1 1", "4 2\n4 3 2 1"),
        1200,
    ),
    Exercise(
        "efficiency_longest_run",
        "The longest part of a list without a number twice.\n\n"
        "The first line has the number of numbers, the second the numbers. Print the length of the longest part of the "
        "list, numbers that follow each other, in which no number is there twice, and the first place where one of "
        "this length begins (the first is 0); `0 0` for an empty list.",
        longest_run,
        repeats,
        ("0\n", "1\n4", "5\n1 1 1 2 1"),
        1400,
    ),
    Exercise(
        "efficiency_merged_spans",
        "Spans that touch become one.\n\n"
        "The first line has the number of spans. Each line after it has a span: where it begins, and where it ends. "
        "Spans that overlap, or of which one ends where the other begins, belong together, and so does all that hangs "
        "together like this. Print how many there are then, and the sum of their lengths; `0 0` if there are no spans.",
        merged_spans,
        spans,
        ("0\n", "1\n3 4", "3\n5 9\n1 5\n20 30"),
        110,
    ),
    Exercise(
        "efficiency_groups",
        "Groups of towns that roads join.\n\n"
        "The first line has the number of towns and the number of roads. Each line after it has the numbers of two "
        "towns (the first is 0) that a road joins. Towns are in one group if one can go from one to the other. Print "
        "how many groups there are, and how many towns the largest has; `0 0` if there are no towns.",
        groups,
        roads,
        ("0 0", "1 0", "3 2\n2 1\n1 1"),
        400,
    ),
    Exercise(
        "efficiency_distances",
        "The lengths of the shortest ways from one town to all others.\n\n"
        "The first line has the number of towns, the number of roads, and the number of the town where all ways begin "
        "(the first is 0). Each line after it has a road: the town it leads from, the town it leads to, and its "
        "length, above 0; roads lead in one direction only. Print the length of the shortest way to each town, by "
        "number, on one line; -1 where there is none.",
        distances,
        lengths,
        ("1 0 0", "3 2 1\n1 2 5\n1 2 3"),
        250,
    ),
)
EFFICIENCY_PROBLEMS: Mapping[str, Callable[..., EfficiencyProblem]] = {each.name: each.problem for each in EXERCISES}
