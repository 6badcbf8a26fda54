"""Problems that programs solve. They score a program outside of its process, from the data that it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from flowevolve._util import clock
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.programs import loader
from flowevolve.sandbox import Outcome, Sandbox

PROGRAM = "program.py"
"""The component of a program that is run. Most programs have no other."""
_LOADER = Path(loader.__file__).read_text(encoding="utf-8")
_LAST_WORDS = 1500
"""The most characters of a failed program's standard error that feedback quotes."""


class WrongResultError(ValueError):
    """A program's result is not a valid solution. The message says why; it is feedback for the program's author."""


@dataclass(frozen=True, slots=True)
class Case:
    """An instance of a problem: the arguments of the program's function. ``id`` is unique within the problem."""

    id: str
    arguments: Mapping[str, JSON] | Sequence[JSON] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The evaluation of a program on one case."""

    value: float
    """The score; higher is better. A failure has the problem's ``worst``."""
    feedback: str
    failure: str | None = None
    """Why the program failed, in one line: ``timeout``, say, or what is wrong with its result. None if it did not."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Further numbers; ``seconds`` is always the program's running time."""
    measured_on: str | None = None
    """The class of machines that the score was measured on, where it depends on that."""


class Problem(Protocol):
    """A problem. Implementations have no state that changes between cases."""

    name: str
    statement: str
    """What a program has to do, what it may use and how it is scored, as prompts show it."""

    @property
    def cases(self) -> Sequence[Case]: ...

    @property
    def worst(self) -> float:
        """The score of a failure; no working program scores lower."""
        ...

    def seed(self) -> Artifact:
        """The program evolution starts from, of kind ``program``: components are files."""
        ...

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        """Run a program on one case, and score its result."""
        ...


class ScoredProblem:
    """The base of `FunctionProblem` and `CommandProblem`: a seed, limits, and a score of the program's result."""

    name: str
    statement: str
    source: str
    """The source of the seed."""
    file: str = PROGRAM
    """The name of the seed's file."""
    cases: Sequence[Case] = (Case("one"),)
    worst: float = 0.0
    timeout: float | None = None
    """The time limit of a case in seconds; None: that of the sandbox."""
    memory_mb: int | None = None
    """The memory limit of a case in megabytes; None: that of the sandbox."""
    packages: Sequence[str] | None = None
    """What a Python program may import besides the standard library; None: whatever is installed."""
    in_thread: bool = False
    """Whether `score` is so slow that the event loop should not wait for it."""

    def seed(self) -> Artifact:
        return Artifact({self.file: self.source}, kind="program")

    def score(self, case: Case, result: JSON) -> Verdict:
        """Evaluate a result, which is untrusted: it may have any shape and any numbers.

        Raises:
            WrongResultError: if the result is not a valid solution.
        """
        raise NotImplementedError

    async def scored(self, case: Case, result: JSON, sandbox: Sandbox) -> Verdict:
        """Call `score` in this process; a subclass may call it where the evaluators of ``sandbox`` run.

        Raises:
            WrongResultError: as `score`.
        """
        return await clock.in_thread(self.score, case, result) if self.in_thread else self.score(case, result)

    async def run(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Outcome:
        """Run a program on one case."""
        raise NotImplementedError

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        outcome = await self.run(artifact, case, sandbox)
        if outcome.status != "ok":
            return failed(self.worst, outcome)
        seconds = {"seconds": outcome.seconds}
        try:
            verdict = await self.scored(case, outcome.result, sandbox)
        except WrongResultError as error:
            return Verdict(self.worst, f"The result is no solution: {error}", str(error), seconds)
        return Verdict(verdict.value, verdict.feedback, verdict.failure, {**verdict.metrics, **seconds})


class FunctionProblem(ScoredProblem):
    """Programs in Python, whose function ``entry`` is called once for each case. Subclasses define `score`.

    A problem with programs of several files overrides `seed` to return a component for each file; ``program.py`` has
    the function.
    """

    entry: str

    async def run(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Outcome:
        return await sandbox.run(
            one_source(artifact, self.file),
            call=self.entry,
            arguments=case.arguments,
            timeout=self.timeout,
            memory_mb=self.memory_mb,
            packages=None if self.packages is None else importable(self.packages, artifact),
        )


def entry_of(problem: Problem) -> str:
    """The function that a problem calls in its programs; empty if it doesn't say which."""
    return problem.entry if isinstance(problem, FunctionProblem) else ""


class CommandProblem(ScoredProblem):
    """Programs of one file in any language, run once for each case by a command to which the file's path is appended.

    They read the case's arguments as JSON from standard input, and print their result as JSON.
    """

    command: Sequence[str]

    async def run(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Outcome:
        return await sandbox.run(
            artifact[self.file],
            command=self.command,
            name=self.file,
            arguments=case.arguments,
            timeout=self.timeout,
            memory_mb=self.memory_mb,
        )


def importable(packages: Sequence[str], files: Mapping[str, str]) -> list[str]:
    """What a program may import besides the standard library: these packages, and its own files."""
    return [*packages, *(file.partition("/")[0].removesuffix(".py") for file in files)]


def one_source(files: Mapping[str, str], main: str) -> str:
    """Python source that runs the file ``main``, which can import the other files, but not open them."""
    if set(files) == {main}:
        return files[main]
    return f"{_LOADER}\n\nstart({dict(files)!r}, {main!r}, globals())\n"


def failed(worst: float, outcome: Outcome) -> Verdict:
    """The verdict on a program whose run failed."""
    words = outcome.stderr[-_LAST_WORDS:].strip()
    said = words.splitlines()[-2 if outcome.status == "denied" else -1 :]  # what was denied is said before why
    return Verdict(
        worst,
        f"The program failed ({outcome.status}):\n{words}",
        ": ".join([outcome.status, *said]),
        {"seconds": outcome.seconds},
    )
