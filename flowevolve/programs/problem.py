"""What programs are written for. A problem scores outside of the program's process, from data that came out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from flowevolve.artifact import Artifact
from flowevolve.llm.types import JSON
from flowevolve.programs.files import one_source
from flowevolve.sandbox import Outcome, Sandbox

PROGRAM = "program.py"
"""The component of a program that is run; of most programs the only one."""
NEEDS_A_SEED = 'levi can begin with a seed that fails (algorithm.name = "levi")'
"""What to say where an algorithm needs a program to start from, and what there is fails."""
_LAST_WORDS = 1500
"""Characters of a failed program's errors that feedback quotes."""


class WrongResultError(ValueError):
    """What a program returned is no solution; the message says why, in words for who wrote it."""


@dataclass(frozen=True, slots=True)
class Case:
    """An instance of a problem: what the program's function is called with. ``id`` is unique within the problem."""

    id: str
    arguments: Mapping[str, JSON] | Sequence[JSON] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a program is worth on one case."""

    value: float
    """Higher is better. Of a failure it is the problem's ``worst``."""
    feedback: str
    failure: str | None = None
    """Why there is no solution: one line, such as ``timeout`` or what is wrong with the result."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Further numbers; ``seconds`` is always the program's running time."""


class Problem(Protocol):
    """Implementations hold no state that changes between cases."""

    name: str
    statement: str
    """What a program has to do, what it may use and how it is scored: the words a model gets."""

    @property
    def cases(self) -> Sequence[Case]: ...

    @property
    def worst(self) -> float:
        """The value of a failure; nothing that works is worth less."""
        ...

    def seed(self) -> Artifact:
        """The program evolution starts from, of kind ``program``: components are files."""
        ...

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        """Run a program on one case, and score what came out of it."""
        ...


class ScoredProblem:
    """What `FunctionProblem` and `CommandProblem` share: a seed, limits, and a score of what a program makes."""

    name: str
    statement: str
    source: str
    """The seed."""
    file: str = PROGRAM
    """Its name."""
    cases: Sequence[Case] = (Case("one"),)
    worst: float = 0.0
    timeout: float | None = None
    """Seconds a case may take; None: what the sandbox allows."""
    memory_mb: int | None = None

    def seed(self) -> Artifact:
        return Artifact({self.file: self.source}, kind="program")

    def score(self, case: Case, result: JSON) -> Verdict:
        """What a result is worth. It is data that a stranger chose: of any shape, with any numbers.

        Raises:
            WrongResultError: if it is no solution.
        """
        raise NotImplementedError

    async def scored(self, case: Case, result: JSON) -> Verdict:
        """`score`, which must not block for long; whoever's may, calls it elsewhere.

        Raises:
            WrongResultError: as `score`.
        """
        return self.score(case, result)

    async def run(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Outcome:
        """Run a program on one case."""
        raise NotImplementedError

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        outcome = await self.run(artifact, case, sandbox)
        if outcome.status != "ok":
            return failed(self.worst, outcome)
        seconds = {"seconds": outcome.seconds}
        try:
            verdict = await self.scored(case, outcome.result)
        except WrongResultError as error:
            return Verdict(self.worst, f"The result is no solution: {error}", str(error), seconds)
        return Verdict(verdict.value, verdict.feedback, verdict.failure, {**verdict.metrics, **seconds})


class FunctionProblem(ScoredProblem):
    """Programs in Python, whose function ``entry`` is called once a case. Subclasses say what `score` is.

    One of several files has a seed of its own, with a component for each; ``program.py`` has the function.
    """

    entry: str

    async def run(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Outcome:
        return await sandbox.run(
            one_source(artifact, self.file),
            call=self.entry,
            arguments=case.arguments,
            timeout=self.timeout,
            memory_mb=self.memory_mb,
        )


class CommandProblem(ScoredProblem):
    """Programs of one file in any language, which a command runs once a case, followed by the path of ``file``.

    They read a case's arguments as JSON from standard input, and print their result as JSON.
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


def failed(worst: float, outcome: Outcome) -> Verdict:
    """The verdict on a program that did not come to its end."""
    words = outcome.stderr[-_LAST_WORDS:].strip()
    said = words.splitlines()[-1] if words else ""
    return Verdict(
        worst,
        f"The program failed ({outcome.status}):\n{words}",
        f"{outcome.status}: {said}" if said else outcome.status,
        {"seconds": outcome.seconds},
    )
