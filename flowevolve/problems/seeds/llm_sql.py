"""The same order of columns for all rows: those that repeat most come first. Then the rows, in alphabetical order."""

# EVOLVE-BLOCK-START
LENGTH_COUNTS = 0.0
"""How much the mean length of a column's cells counts beside how often they repeat."""


def worth(cells: list[str]) -> float:
    """How early a column should come."""
    repeated = len(cells) / len(set(cells))
    return repeated + LENGTH_COUNTS * sum(map(len, cells)) / len(cells)


def reorder(columns: list[str], rows: list[list[str]]) -> list[list[object]]:
    order = sorted(range(len(columns)), key=lambda column: -worth([row[column] for row in rows]))
    numbers = sorted(range(len(rows)), key=lambda number: [rows[number][column] for column in order])
    return [[number, order] for number in numbers]


# EVOLVE-BLOCK-END
