"""The base classes of the shipped problems."""

from __future__ import annotations

import inspect
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.problems.checks import list_of
from flowevolve.problems.limits import LimitsSetting, in_words, limits_for
from flowevolve.programs import Case, FunctionProblem, Verdict, WrongResultError
from flowevolve.programs.problem import PROGRAM, failed
from flowevolve.sandbox import Outcome, Sandbox


class ShippedProblem(FunctionProblem):
    """A problem that ships with the package. It has the setting ``limits``, and its statement says what they are."""

    reference: float | None = None
    """The best value in published papers, in the scale of `Verdict.value`; None if no published value is comparable."""
    reference_source: str = ""
    """Where that value is from and, if the paper uses another scale, what it is there."""
    seed_name: str | None = None
    """The name of the seed, if it is not the problem's name."""

    def __init__(self, limits: LimitsSetting) -> None:
        self.limits = limits_for(self.name, limits)
        self.timeout = self.limits.timeout
        self.memory_mb = self.limits.memory_mb
        self.packages = self.limits.packages

    def seed(self) -> Artifact:
        return Artifact({PROGRAM: seed_text(self.seed_name or self.name)}, kind="program")

    @property
    def rules(self) -> str:
        """The rules with which every problem statement ends."""
        target = ""
        if self.reference is not None:
            source = f" ({self.reference_source})" if self.reference_source else ""
            target = f"The best published score is {self.reference:.7g}{source}. "
        memory = "" if self.memory_mb is None else f" and {self.memory_mb} MB of memory"
        return (
            f"Higher is better. {target}"
            f"The program is one Python file. It may import {in_words(self.limits.packages)}, nothing else; it has no "
            f"network and no files. A call may take {self.timeout:g} seconds{memory}. Equal calls must return equal "
            "results: seed whatever is random. Results must be plain Python numbers, texts, lists and dicts."
        )


class DrivenProblem(ShippedProblem):
    """A problem whose programs are one function, ``entry``, that a driver calls again and again in the same process.

    The program could tamper with the driver, so what the driver returns is checked like any other result.
    """

    driver: ModuleType
    play: str
    """The name of the driver's function that is called for a case."""

    async def run(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Outcome:
        return await self.drive(self.play, artifact, case.arguments, sandbox)

    async def drive(
        self, function: str, artifact: Artifact, arguments: Mapping[str, JSON] | Sequence[JSON], sandbox: Sandbox
    ) -> Outcome:
        """Call a function of the driver on a program."""
        return await sandbox.run(
            self.with_driver(artifact),
            call=function,
            arguments=arguments,
            timeout=self.timeout,
            memory_mb=self.memory_mb,
            packages=self.packages,
        )

    def with_driver(self, artifact: Artifact) -> str:
        """The source of a program with that of the driver after it."""
        return f"{artifact[PROGRAM]}\n\n{inspect.getsource(self.driver)}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a program: the arguments that it was given, and its answer."""

    arguments: list[JSON]
    answer: JSON


class OnlineProblem(DrivenProblem):
    """A problem whose programs must choose without knowing what comes next.

    What comes next lies in the memory of the process that a program runs in, so a program could look ahead. Choices
    must therefore be functions of their arguments. The program is asked again for a random sample of n choices, in a
    new process that knows nothing but the sample, and it fails if any answer differs. A program that looks ahead in a
    share s of its choices passes with probability (1 - s) ** n in each case. The sample is drawn anew each time, so
    that no program can know it; the verdict on a program that follows the rules does not depend on the sample. This
    does not detect a program that has memorized the instances; its value on other instances (setting ``seed``) does.
    """

    ask_again: str
    """The name of the driver's function that takes a list of the arguments of choices and returns the answers."""

    def sample_choices(self, case: Case, result: JSON, rng: random.Random) -> Sequence[Choice]:
        """Draw a sample of the choices that led to a result which `score` has accepted.

        The sample as a whole must not reveal what came after any of its choices.
        """
        raise NotImplementedError

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        first = await self.run(artifact, case, sandbox)
        if first.status != "ok":
            return failed(self.worst, first)
        try:
            verdict = self.score(case, first.result)
            sample = self.sample_choices(case, first.result, secrets.SystemRandom())
            asked: list[JSON] = [list(choice.arguments) for choice in sample]
            second = await self.drive(self.ask_again, artifact, [asked], sandbox)
            if second.status != "ok":
                return failed(self.worst, second)
            check_answers(sample, second.result)
        except WrongResultError as error:
            return Verdict(self.worst, f"The result is no solution: {error}", str(error), {"seconds": first.seconds})
        return Verdict(verdict.value, verdict.feedback, None, {**verdict.metrics, "seconds": first.seconds})


def check_answers(choices: Sequence[Choice], again: JSON) -> None:
    """Check that a program answers the same when it is asked again.

    Raises:
        WrongResultError: if an answer differs.
    """
    for choice, answer in zip(choices, list_of(again, "the answers", len(choices)), strict=True):
        if answer != choice.answer:
            raise WrongResultError(
                f"asked again, the program chose {str(answer)[:40]!r}, not {str(choice.answer)[:40]!r} as before; "
                "a choice must depend on the arguments alone: not on chance, earlier calls or what is still to come"
            )


def seed_text(name: str) -> str:
    """The program text of the seed with this name."""
    return Path(__file__).with_name("seeds").joinpath(f"{name}.py").read_text(encoding="utf-8")
