"""Problems of efficiency: programs must be right, and are then scored by the integral of their memory over time.

The form is that of EffiBench-X: a script reads a test from standard input and prints the answer. Programs are measured
as in "Controlled Self-Evolution for Algorithmic Code Optimization" (CSE), appendices B (metrics) and C (raw signal and
reward).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from weakref import WeakKeyDictionary

import anyio

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.problems import native_tests
from flowevolve.problems.checks import kind, list_of
from flowevolve.problems.languages import PYTHON, Language
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict, WrongResultError
from flowevolve.programs.problem import failed, importable, one_source
from flowevolve.sandbox import Outcome, Sandbox, measure
from flowevolve.sandbox.measure import integral, middle
from flowevolve.sandbox.pool import RunOptions

EPSILON = 0.001
"""The constant in CSE's reward, 1 / (A + 0.001)."""
CLIP = 5.0
"""Ratios to the reference are clipped to this."""
LEAST_RUNS = 3
PACKAGES = ("numpy",)
"""What programs may import besides the standard library."""
SUBMISSION = "==Code Submission=="
"""The placeholder for the program in a runner, as in EffiBench-X."""
BUILD_SECONDS, BUILD_MB = 60.0, 2048
"""The limits of building a program."""
_BUILD_WORDS = 1500
"""The most characters of a compiler's messages that feedback quotes."""
_QUOTED, _LINE = 600, 200
"""The most characters of an input, and of a line of an answer, that feedback quotes."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One test: what a program reads, and what it must print."""

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Procedure:
    """How programs are measured. The defaults are the paper's, except for ``together``, on which it says nothing.

    Raises:
        InputError: if a setting is out of its range.
    """

    timeout: float = 10.0
    """The seconds that one process may take."""
    memory_mb: int = 1024
    runs: int = 5
    """How often all tests are measured, after one run that only checks whether the program is right."""
    together: int | None = None
    """How many tests one process runs, one after another; None for all of them."""

    def __post_init__(self) -> None:
        if self.runs < LEAST_RUNS:
            raise InputError(
                f"task.runs is {self.runs}, but has to be at least {LEAST_RUNS}, as the two extremes are left out"
            )
        if self.timeout <= 0:
            raise InputError(f"task.timeout is {self.timeout:g} s, but has to be above 0")
        check_least(1, memory_mb=self.memory_mb)
        if self.together is not None:
            check_least(1, together=self.together)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a program that has passed all tests, for all tests together.

    Each figure is the mean over the runs without the lowest and the highest. ``integral`` is in megabyte-seconds.
    """

    integral: float
    seconds: float
    peak_mb: float

    def __str__(self) -> str:
        return f"{self.seconds:.4g} s, {self.peak_mb:.4g} MB at its peak, {self.integral:.4g} MB·s"

    def over(self, other: Figures) -> dict[str, float]:
        """Return ET, MP and MI of a program with the figures ``other``, if these figures are the reference's.

        Higher is better. Each is the reference's figure over the program's, clipped to 5 (CSE, appendix B, equations 8,
        10 and 13). For a program's figure of 0 it is 5, or 1 if the reference's is 0 as well.
        """
        pairs = {
            "et": (self.seconds, other.seconds),
            "mp": (self.peak_mb, other.peak_mb),
            "mi": (self.integral, other.integral),
        }
        return {name: _ratio(ours, theirs) for name, (ours, theirs) in pairs.items()}


def _ratio(ours: float, theirs: float) -> float:
    if theirs <= 0:
        return CLIP if ours > 0 else 1.0
    return min(CLIP, ours / theirs)


def rules(tests: int, procedure: Procedure, language: Language = PYTHON) -> str:
    """The rules with which every problem statement ends."""
    together = procedure.together or tests
    whose, run = ("", "to run them in")
    if together < tests:
        whose, run = ("each " if together == 1 else f"each {together} of them ", "to run in")
    reads = " once for each test: it reads the test from standard input and prints the answer to standard output"
    return (
        f"{language.rules.format(times=reads)} There are {tests} tests; all must be right, {whose}with "
        f"{procedure.timeout:g} seconds and {procedure.memory_mb} MB of memory {run}. What counts then is the area "
        "below the curve of memory over time, A megabyte-seconds for all tests together, so that both time and memory "
        "matter. The score is 1 / (A + 0.001): higher is better."
    )


FAILED: Mapping[str, float] = {"et": 0.0, "mp": 0.0, "mi": 0.0}
"""ET, MP and MI of a program that fails."""


class _FailedError(Exception):
    """A program failed in some run. It carries the verdict on the program."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.failure)
        self.verdict = verdict


@dataclass(eq=False)
class EfficiencyProblem:
    """Programs that print the answers to all ``tests``. If a program has several files, `Language.file` is the one that
    is run.

    Value: 1 / (A + 0.001), where A is the memory-time integral in MB·s over all tests; 0 for a program that fails any
    test in any run. Metrics: ``integral``, ``seconds``, ``peak_mb``, and with a reference ``et``, ``mp`` and ``mi``.

    Answers are checked outside of the sandbox, as the expected answers must not be in it.
    """

    name: str
    statement: str
    source: str
    """The seed."""
    tests: Sequence[Trial]
    reference: str | None = None
    """The program that others are compared with. It is measured in the same way, once in each sandbox."""
    procedure: Procedure = field(default_factory=Procedure)
    language: Language = PYTHON
    runner: str | None = None
    """The program that calls the evolved one, which replaces `SUBMISSION`; None if the evolved one is complete."""
    cases: Sequence[Case] = (Case("tests"),)
    worst: float = 0.0

    def __post_init__(self) -> None:
        self._reference_figures: WeakKeyDictionary[Sandbox, _ReferenceFigures] = WeakKeyDictionary()

    def seed(self) -> Artifact:
        return self._program(self.source)

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        """Check a program on all tests and, if it is right, measure it.

        Raises:
            InputError: if the reference fails.
        """
        reference = None if self.reference is None else await self._measured_reference(self.reference, sandbox)
        try:
            figures = await self._measured(artifact, sandbox)
        except _FailedError as error:
            lost = error.verdict
            metrics = {**lost.metrics, **({} if reference is None else FAILED)}
            return Verdict(self.worst, lost.feedback, lost.failure, metrics)
        raw = {"integral": figures.integral, "seconds": figures.seconds, "peak_mb": figures.peak_mb}
        return Verdict(
            1 / (figures.integral + EPSILON),
            f"All {len(self.tests)} tests are right. They take {figures}."
            + ("" if reference is None else f" A reference takes {reference}."),
            None,
            {**raw, **({} if reference is None else reference.over(figures))},
            sandbox.measured_on,
        )

    async def _measured(self, artifact: Artifact, sandbox: Sandbox) -> Figures:
        """Run all tests once without measuring and, if all answers are right, as often as the procedure says.

        Raises:
            _FailedError: at the first failure.
        """
        source = await self._runnable(artifact, sandbox)
        await self._pass(source, importable(PACKAGES, artifact), sandbox)
        totals = [Figures(0.0, 0.0, 0.0)] * self.procedure.runs
        for first, tests in self._batches():
            program, options = self._job(source, tests, tell=False)
            measurement = await measure(sandbox, program, runs=self.procedure.runs, **options)
            for outcome in measurement.outcomes:
                self._check(outcome, first, tests)
            totals = [
                Figures(total.integral + area, total.seconds + outcome.seconds, max(total.peak_mb, peak))
                for total, outcome in zip(totals, measurement.outcomes, strict=True)
                for area, peak in [self._memory(outcome)]
            ]
        return Figures(
            middle(total.integral for total in totals),
            middle(total.seconds for total in totals),
            middle(total.peak_mb for total in totals),
        )

    def _memory(self, outcome: Outcome) -> tuple[float, float]:
        """The integral of a run's memory, and its peak."""
        if not self.language.built:
            return integral(outcome.samples), outcome.peak_mb
        samples = native_tests.of_the_script(outcome.samples)
        return integral(samples), max((memory for _, memory in samples), default=0.0)

    def _job(self, source: str, tests: Sequence[Trial], *, tell: bool) -> tuple[str, RunOptions]:
        """What the sandbox is to run, and how."""
        inputs = [test.input for test in tests]
        limits: RunOptions = {"timeout": self.procedure.timeout, "memory_mb": self.procedure.memory_mb}
        if self.language.built:
            script = native_tests.script(source, inputs, tell=tell)
            return script, {**limits, "arguments": {}, "command": native_tests.COMMAND, "name": native_tests.NAME}
        arguments: Mapping[str, JSON] = {"program": source, "inputs": [*inputs], "tell": tell}
        return self.language.driver, {**limits, "call": "harness_run", "arguments": arguments}

    def _program(self, source: str) -> Artifact:
        return Artifact({self.language.file: source}, kind="program")

    async def _runnable(self, artifact: Artifact, sandbox: Sandbox) -> str:
        """Return what the driver runs: the source in its runner, or the machine code built from it.

        Raises:
            _FailedError: if it can't be built.
        """
        file = self.language.file
        files = {name: artifact[name] for name in artifact}
        if self.runner is not None:
            files[file] = self.language.header + self.runner.replace(SUBMISSION, files[file])
        if not self.language.built:
            return one_source(files, file)
        outcome = await sandbox.run(
            self.language.driver,
            call="harness_build",
            arguments={"program": files[file]},
            timeout=BUILD_SECONDS,
            memory_mb=BUILD_MB,
        )
        seconds = {"seconds": outcome.seconds}
        match outcome.result:
            case {"code": str(code)}:
                return code
            case {"errors": str(errors)}:
                first = next((line for line in errors.splitlines() if "error" in line), errors.splitlines()[0])
                words = f"The program can't be built:\n{errors[:_BUILD_WORDS]}"
                raise _FailedError(Verdict(self.worst, words, f"it can't be built: {first}", seconds))
        verdict = failed(self.worst, outcome)
        raise _FailedError(Verdict(self.worst, verdict.feedback, f"it can't be built: {verdict.failure}", seconds))

    async def _pass(self, source: str, packages: Sequence[str], sandbox: Sandbox) -> None:
        """Run all tests once to see whether the program is right.

        Imports that are not allowed are refused here, so they need no check while the program is measured. This run is
        pinned to a core, too; otherwise it could get a core on which another program is being measured.

        Raises:
            _FailedError: at the first failure.
        """
        for first, tests in self._batches():
            program, options = self._job(source, tests, tell=True)
            options["packages"] = packages
            (outcome,) = await sandbox.run_pinned(program, **options)
            self._check(outcome, first, tests)

    async def _measured_reference(self, source: str, sandbox: Sandbox) -> Figures:
        """The reference's figures. They are measured once in each sandbox, that is, once in a run; other calls wait."""
        reference = self._reference_figures.setdefault(sandbox, _ReferenceFigures())
        async with reference.lock:
            if reference.figures is None:
                try:
                    reference.figures = await self._measured(self._program(source), sandbox)
                except _FailedError as error:
                    raise InputError(f"problem {self.name!r}: the reference fails: {error}") from None
            return reference.figures

    def _batches(self) -> list[tuple[int, Sequence[Trial]]]:
        """The tests of each process, with the index of the first of them."""
        size = self.procedure.together or len(self.tests)
        return [(first, self.tests[first : first + size]) for first in range(0, len(self.tests), size)]

    def _check(self, outcome: Outcome, first: int, tests: Sequence[Trial]) -> None:
        """Check that a run came to its end with the right answers.

        Raises:
            _FailedError: if it did not.
        """
        seconds = {"seconds": outcome.seconds}
        if outcome.status != "ok":
            verdict = failed(self.worst, outcome)
            begun = min(outcome.stdout.count("."), len(tests))  # none in measured runs, which report no progress
            words = verdict.feedback
            if begun:
                words += f"\nIt was at {self._named(first + begun - 1)}, which reads\n{_shown(tests[begun - 1].input)}"
            raise _FailedError(Verdict(self.worst, words, verdict.failure, seconds))
        try:
            result = native_tests.answers(outcome.stdout) if self.language.built else outcome.result
            for place, answer in enumerate(list_of(result, "the answers", len(tests))):
                wrong = difference(tests[place].output, answer)
                if wrong is not None:
                    name = self._named(first + place)
                    words = f"The answer to {name} is wrong: {wrong}. It reads\n{_shown(tests[place].input)}"
                    raise _FailedError(Verdict(self.worst, words, f"{name}: {wrong}", seconds))
        except WrongResultError as error:
            raise _FailedError(Verdict(self.worst, str(error), str(error), seconds)) from None

    def _named(self, place: int) -> str:
        return f"test {place + 1} of {len(self.tests)}"


@dataclass
class _ReferenceFigures:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    figures: Figures | None = None


def difference(expected: str, answer: JSON) -> str | None:
    """Say in one line what is wrong with an answer; None if nothing is. Space at the ends of lines does not count."""
    if not isinstance(answer, str):
        return f"what was printed must be a text, not {kind(answer)}"
    pairs = zip_longest(normalised(expected), normalised(answer))
    for number, (wanted, given) in enumerate(pairs, 1):
        if wanted != given:
            return f"line {number} must be {_quoted(wanted)}, not {_quoted(given)}"
    return None


def normalised(text: str) -> list[str]:
    """The lines of a text without space at their ends, and without empty lines at the end of the text."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _quoted(line: str | None) -> str:
    if line is None:
        return "missing"
    return repr(line) if len(line) <= _LINE else f"{line[:_LINE]!r} and {len(line) - _LINE} characters more"


def _shown(text: str) -> str:
    text = text.rstrip()
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}\n… and {len(text) - _QUOTED} characters more"
