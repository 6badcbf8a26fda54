"""Small problems for tests."""

from __future__ import annotations

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.programs import Case, FunctionProblem, Verdict, WrongResultError

SEED = """\
import math

# EVOLVE-BLOCK-START
POINT = [9.0, -7.5, 4.0, 20.0]
SCALE = 3.0


def guess(shift):
    point = [SCALE * x for x in POINT]
    return [x + shift for x in point]
# EVOLVE-BLOCK-END
"""
FILES = {
    "program.py": """\
from place import POINT

# EVOLVE-BLOCK-START
SCALE = 3.0


def guess(shift):
    point = [SCALE * x for x in POINT]
    return [x + shift for x in point]
# EVOLVE-BLOCK-END
""",
    "place.py": """\
from __future__ import annotations

# EVOLVE-BLOCK-START
POINT = [9.0, -7.5, 4.0, 20.0]
# EVOLVE-BLOCK-END
""",
}
"""The same in two files."""
TARGET = (1.0, 2.0, 3.0, 5.0)


class Nearest(FunctionProblem):
    """A point as near as can be to one that the program does not know; the score is minus the squared distance."""

    name = "nearest"
    statement = "Write guess(shift), which returns a list of four numbers. Nobody tells which; the score grows as they get near."
    entry = "guess"
    source = SEED
    worst = -1e6

    def __init__(self, cases: int = 1, source: str = SEED) -> None:
        self.cases = [Case(f"case{number}", {"shift": float(number)}) for number in range(cases)]
        self.source = source

    def score(self, case: Case, result: JSON) -> Verdict:
        if not isinstance(result, list) or len(result) != len(TARGET):
            raise WrongResultError(f"give a list of {len(TARGET)} numbers")
        numbers = [float(x) for x in result if isinstance(x, int | float)]
        if len(numbers) < len(TARGET):
            raise WrongResultError("not all are numbers")
        squares = sum((x - y) ** 2 for x, y in zip(numbers, TARGET, strict=True))
        return Verdict(-squares, f"squared distance {squares:.6g}", metrics={"distance": squares**0.5})


class NearestInFiles(Nearest):
    """The same, in programs of two files."""

    name = "nearest_in_files"

    def seed(self) -> Artifact:
        return Artifact(FILES, kind="program")


def all_but_the_seed(result: JSON) -> float:
    """Scores what `SEED` returns not at all."""
    value = Nearest().score(Case("case0"), result).value
    if result == [27.0, -22.5, 12.0, 60.0]:
        raise ValueError("the seed will not do")
    return value
