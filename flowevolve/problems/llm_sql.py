"""Tables whose rows are read by an LLM one after another: an order in which a cache of prefixes is hit most."""

from __future__ import annotations

import csv
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import list_of, permutation, whole_number
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict, WrongResultError


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class LlmSql(ShippedProblem):
    """An order of a table's rows, and of the columns in each. Value of a case: the share of characters that are hits.

    This is ADRS's LLM-SQL: the text of a row is its cells, one behind the other, and a hit is a character of the
    longest beginning that the text shares with that of any earlier row. ADRS's score also has a term for running time,
    and LEVI's is scaled between the hits of the table as it is and 100 %: a score of 78.09 there is a hit rate of
    79.1 % (`adrs_score`). Their five tables are not shipped; ours are drawn, so there is no reference.
    """

    name = "llm_sql"
    entry = "reorder"

    def __init__(
        self,
        data: Path | None = None,
        rows: int = 240,
        tables: int = 3,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(limits)
        check_least(2, rows=rows)
        check_least(1, tables=tables)
        self._tables = read_tables(data) if data is not None else drawn_tables(tables, rows, seed)
        self.cases = [
            Case(str(place), {"columns": [*table.columns], "rows": [[*row] for row in table.rows]})
            for place, table in enumerate(self._tables)
        ]
        self.statement = (
            "An LLM reads the rows of a table one after another. What a row's text shares with the beginning of an "
            "earlier row's text is in its cache and costs nothing. Put the rows, and the columns in each row, into an "
            "order in which as much as possible is in the cache.\n\n"
            "Write `reorder(columns, rows)`, called once for each table with the names of the columns and a list of "
            "rows, each a list of texts. It returns a list with one entry for each row, in the new order: [number of "
            "the row, order of its columns], where the order is a list of the columns' numbers; numbers begin at 0. "
            "Each row must be there once, and each of its columns once; rows may have their columns in different "
            "orders.\n\n"
            "The text of a row is its cells in the new order, one directly behind the other. A hit is a character of "
            "the longest beginning that this text shares with the text of any one row before it. The score is the "
            f"share of all characters that are hits; the mean counts over {len(self.cases)} tables. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        table = self._tables[int(case.id)]
        entries = list_of(result, "the rows", len(table.rows))
        texts, numbers = [], []
        for place, entry in enumerate(entries):
            pair = list_of(entry, f"row {place}", 2)
            number = whole_number(pair[0], f"row {place}'s number", len(table.rows))
            order = permutation(pair[1], f"row {place}'s columns", len(table.columns))
            numbers.append(number)
            texts.append("".join(table.rows[number][column] for column in order))
        twice = next((number for number in numbers if numbers.count(number) > 1), None) if repeats(numbers) else None
        if twice is not None:
            raise WrongResultError(f"row {twice} is there twice; each row must be there once")
        rate, given = hit_rate(texts), hit_rate(["".join(row) for row in table.rows])
        return Verdict(
            rate,
            f"{rate:.4%} of the characters are hits; as it was given, the table has {given:.4%}.",
            metrics={"hit_rate": rate, "given_hit_rate": given},
        )


def repeats(numbers: Sequence[int]) -> bool:
    return len(set(numbers)) < len(numbers)


def hit_rate(texts: Sequence[str]) -> float:
    """The share of characters that are shared with the beginning of an earlier text.

    The earlier text that shares most is a neighbour of the text if all earlier ones are in alphabetical order.
    """
    earlier: list[str] = []
    hits = 0
    for text in texts:
        place = bisect_left(earlier, text)
        hits += max((shared(text, other) for other in earlier[max(0, place - 1) : place + 1]), default=0)
        earlier.insert(place, text)
    return hits / max(1, sum(map(len, texts)))


def shared(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginnings."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def adrs_score(hit_rate: float, given_hit_rate: float, seconds: float) -> float:
    """LEVI's score, from 0 to 100, for the mean hit rate, the mean hit rate of the unchanged tables, and the mean
    running time.
    """
    gained = max(0.0, (hit_rate - given_hit_rate) / (1 - given_hit_rate))
    return 95 * gained + 5 * max(0.0, 1 - seconds / 10)


def read_tables(data: Path) -> list[Table]:
    """Read a CSV file whose first line has the names of the columns, or all such files of a folder.

    Raises:
        InputError: naming the file that can't be used.
    """
    files = sorted(data.glob("*.csv")) if data.is_dir() else [data]
    if not files:
        raise InputError(f"{data}: there is no CSV file (*.csv) in this folder")
    tables = []
    for file in files:
        try:
            with file.open(encoding="utf-8", newline="") as opened:
                first, *rows = [tuple(row) for row in csv.reader(opened) if row] or [()]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{file} can't be read as CSV: {reason_of(error)}") from error
        if not rows:
            raise InputError(f"{file}: there are no rows below the names of the columns")
        for place, row in enumerate(rows, 2):
            if len(row) != len(first):
                raise InputError(
                    f"{file}: row {place} has another number of cells ({len(row)}) than row 1 ({len(first)})"
                )
        tables.append(Table(first, tuple(rows)))
    return tables


def drawn_tables(tables: int, rows: int, seed: int) -> list[Table]:
    """Draw tables of reviews: some columns follow from others, some repeat often, and some never."""
    return [drawn_table(random.Random(f"llm_sql {seed} {number}"), rows) for number in range(tables)]


def drawn_table(rng: random.Random, rows: int) -> Table:
    makers = [_words(rng, 1) for _ in range(6)]
    things = [
        (str(1000 + k), _words(rng, 3), rng.choice(makers), _words(rng, 25)) for k in range(rng.randrange(12, 40))
    ]
    people = [_words(rng, 2) for _ in range(rows // 5 + 1)]
    drawn = []
    for place in range(rows):
        number, name, maker, about = rng.choice(things)
        stars = str(rng.choice([1, 3, 4, 4, 5, 5]))
        kind = "Fresh" if stars >= "4" else "Rotten"
        drawn.append((str(place), stars, _words(rng, 12), number, name, rng.choice(people), kind, maker, about))
    columns = ("review", "stars", "text", "product", "name", "author", "kind", "maker", "description")
    order = rng.sample(range(len(columns)), len(columns))
    return Table(tuple(columns[k] for k in order), tuple(tuple(row[k] for k in order) for row in drawn))


def _words(rng: random.Random, count: int) -> str:
    syllables = ("ba", "den", "fo", "gil", "ka", "lum", "mi", "nor", "pe", "ras", "su", "tor", "ve", "zan")
    return " ".join("".join(rng.choices(syllables, k=rng.randrange(1, 4))) for _ in range(count))
