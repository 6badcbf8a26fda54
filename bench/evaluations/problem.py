"""A problem whose programs burn a known time of a core."""

from __future__ import annotations

import time

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.programs import Case, FunctionProblem, Verdict, WrongResultError
from flowevolve.sandbox import Outcome, Sandbox

BURN = """\
import time


def solve(milliseconds):
    until = time.process_time() + milliseconds / 1000
    while time.process_time() < until:
        pass
    return guess()
"""
SEED = f"""\
# EVOLVE-BLOCK-START
GUESS = 1.0


def guess():
    return GUESS


# EVOLVE-BLOCK-END
{BURN}"""


class Burning(FunctionProblem):
    """Return a number near 2. Whatever the number, the program first burns this many milliseconds of CPU time."""

    name = "burning"
    entry = "solve"
    source = SEED
    worst = -1e9
    statement = "Write guess(), which returns a number. The score is minus its distance from 2."

    def __init__(self, milliseconds: float) -> None:
        self.cases = (Case("one", {"milliseconds": milliseconds}),)
        self.ends: list[tuple[float, bool]] = []
        """When each program ended, by `time.monotonic`, and whether it had burnt all of its time."""
        self._burnt = milliseconds / 1000

    async def run(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Outcome:
        outcome = await super().run(artifact, case, sandbox)
        self.ends.append((time.monotonic(), outcome.cpu_seconds >= self._burnt))
        return outcome

    def score(self, case: Case, result: JSON) -> Verdict:
        if not isinstance(result, int | float) or not abs(result) < -self.worst:
            raise WrongResultError("give a number")
        return Verdict(-abs(result - 2), f"{result} it is.")
