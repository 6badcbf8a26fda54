"""A problem that tells algorithms apart: programs are scored by their family and their numbers, and are not run."""

from __future__ import annotations

from flowevolve.core.artifact import Artifact
from flowevolve.programs import Case, Verdict
from flowevolve.programs.problem import PROGRAM, ScoredProblem
from flowevolve.sandbox import Sandbox
from flowevolve.tasks.families.catalog import CASES, PARTS, SEED, read_member


class Families(ScoredProblem):
    """Programs that spread copies of experts over GPUs (`flowevolve.tasks.families.catalog`).

    The score follows from a program's structure alone, so it is exact and costs no time. A program of no known family
    fails, so the problem is of use only where a simulated model writes the programs (the world `families`).
    """

    name = "families"
    statement = (
        "Experts of a model carry different loads. Write `copies(loads, slots)`, which says how many copies of each "
        "expert there are, and `place(loads, counts, gpus)`, which says which experts are on each GPU, so that GPUs "
        "carry equal loads; `solve` calls both. The score is out of 100."
    )
    source = str(SEED)

    def __init__(self) -> None:
        self.cases = [Case(name) for name in CASES]

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        member = read_member(artifact[PROGRAM])
        if member is None:
            return Verdict(self.worst, "This is a program of no known family.", "no known family", {"seconds": 0.0})
        lost = "; ".join(f"the numbers in `{part}` cost {member.lost(part, case.id):.3f}" for part in PARTS)
        return Verdict(member.score(case.id), f"Points lost: {lost}.", metrics={"seconds": 0.0})
