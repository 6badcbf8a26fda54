"""What the shipped problems have in common."""

from __future__ import annotations

import inspect
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from flowevolve.artifact import Artifact
from flowevolve.llm.types import JSON
from flowevolve.problems.checks import list_of
from flowevolve.programs import Case, FunctionProblem, Verdict, WrongResultError
from flowevolve.programs.problem import PROGRAM, failed
from flowevolve.sandbox import Sandbox


class ShippedProblem(FunctionProblem):
    """One of ours."""

    timeout: float | None = 5.0
    reference: float | None = None
    """The best value known to the papers, in the scale of `Verdict.value`; None where theirs can't be compared."""

    @property
    def rules(self) -> str:
        """What every statement ends with."""
        return (
            "The program is one Python file. It may use the standard library and numpy, nothing else; it has no "
            f"network and no files. A call may take {self.timeout:g} seconds. Equal calls must return equal results: "
            "seed whatever is random. Results must be plain Python numbers, texts, lists and dicts."
        )


class PlayedProblem(ShippedProblem):
    """Programs are a function that is asked again and again, by a harness that runs beside it.

    The harness shares a process with a stranger: what it returns is checked as any other result.
    """

    harness: ModuleType

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        return await super().judge(self.with_harness(artifact), case, sandbox)

    def with_harness(self, artifact: Artifact) -> Artifact:
        text = f"{artifact[PROGRAM]}\n\n{inspect.getsource(self.harness)}"
        return Artifact({**artifact, PROGRAM: text}, artifact.kind)


@dataclass(frozen=True, slots=True)
class Moment:
    """What a program was asked, and its answer."""

    asked: list[JSON]
    answer: JSON


class OnlineProblem(PlayedProblem):
    """Programs choose without knowing what comes next.

    What comes next lies in the memory of the process that a program runs in, so it could look. Therefore choices are
    functions of what the program is told, and a random sample of n moments is put to the program again, in a new
    process that holds no more than the sample: where an answer differs, the program failed. One that looks ahead in a
    share s of its choices gets by with probability (1 - s) ** n in each case. The sample is drawn anew each time, for
    no program to know it; of a program that keeps to the rules, the verdict does not depend on it. What this can't tell
    is a program that knows the instances by heart; other instances can (setting ``seed``).
    """

    ask_again: str
    """The harness's function that takes a list of what was asked, and returns the answers."""

    def moments(self, case: Case, result: JSON, rng: random.Random) -> Sequence[Moment]:
        """A sample of the choices that led to a result which `score` has accepted.

        Taken together, they must not tell what came after one of them.
        """
        raise NotImplementedError

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        source = self.with_harness(artifact)[PROGRAM]
        first = await sandbox.run(
            source, call=self.entry, arguments=case.arguments, timeout=self.timeout, memory_mb=self.memory_mb
        )
        if first.status != "ok":
            return failed(self.worst, first)
        try:
            verdict = self.score(case, first.result)
            sample = self.moments(case, first.result, secrets.SystemRandom())
            asked: list[JSON] = [list(moment.asked) for moment in sample]
            second = await sandbox.run(
                source, call=self.ask_again, arguments=[asked], timeout=self.timeout, memory_mb=self.memory_mb
            )
            if second.status != "ok":
                return failed(self.worst, second)
            check_answers(sample, second.result)
        except WrongResultError as error:
            reason = str(error)
            return Verdict(self.worst, f"The result is no solution: {reason}", reason, {"seconds": first.seconds})
        return Verdict(verdict.value, verdict.feedback, None, {**verdict.metrics, "seconds": first.seconds})


def check_answers(moments: Sequence[Moment], again: JSON) -> None:
    """Hold a program to what it answered before.

    Raises:
        WrongResultError: if it now answers something else.
    """
    for moment, answer in zip(moments, list_of(again, "the answers", len(moments)), strict=True):
        if answer != moment.answer:
            raise WrongResultError(
                f"asked again, the program chose {str(answer)[:40]!r}, not {str(moment.answer)[:40]!r} as before; "
                "a choice must depend on the arguments alone: not on chance, earlier calls or what is still to come"
            )


def seed_text(name: str) -> str:
    """The text of a seed."""
    return Path(__file__).with_name("seeds").joinpath(f"{name}.py").read_text(encoding="utf-8")
