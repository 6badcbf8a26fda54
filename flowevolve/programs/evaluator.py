"""Problems with an evaluator that runs the program itself.

Where that works, the evaluator runs in a sandbox of its own and imports a stand-in for the program, which runs in a
second sandbox (`SandboxPair`). Otherwise the two share one sandbox: the program can't get out of it, but it could forge
its own score. Problems that score outside of the sandbox, such as `FunctionProblem` and `CallableProblem`, don't have
this weakness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.programs.inside import driver
from flowevolve.programs.modules import imported_modules
from flowevolve.programs.problem import Case, Verdict, WrongResultError, failed
from flowevolve.sandbox import Outcome, Sandbox, SandboxPair, SandboxSettings

TRIED_AT_START = (
    "whether the evaluator works in a sandbox of its own is tried on the seed as the run begins; if it doesn't, it "
    "shares the program's sandbox, where a program could forge its own score, but not get out"
)
"""A note for users who run such a problem."""
_DRIVER = Path(driver.__file__).read_text(encoding="utf-8")
_ENTRY = "_evaluation.py"
_LONGEST = 3000
"""The most characters of one text that feedback quotes."""
_MOST = 12
"""The most texts that feedback quotes."""


@dataclass(frozen=True, slots=True)
class Report:
    """An evaluator's report on a program: metrics, texts for feedback, and why it failed (None if it did not)."""

    metrics: Mapping[str, float]
    texts: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    notes: Sequence[str] = ()
    """What the evaluator needs but can't have while the program is isolated from it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a program, and the notes of the reports that it was computed from."""

    verdict: Verdict
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EvaluatorStep:
    """One run of an evaluator: a function of `flowevolve.programs.inside.driver`, and its further arguments."""

    call: str
    arguments: Mapping[str, JSON]
    label: str
    """The name of the step in messages."""
    at_least: float | None = None
    """A program with a score below this skips the remaining steps; None if it never does."""


MetricReader = Callable[[Mapping[str, float]], float | None]
"""Computes the score from the metrics; returns None if they don't contain one."""


@dataclass(eq=False)
class EvaluatorProblem:
    """Programs of one file that an evaluator in ``folder`` scores in steps. The metrics of all steps are merged.

    A program that skips the remaining steps keeps the score it has reached. One that fails in any step has failed.
    """

    name: str
    statement: str
    file: str
    source: str
    """The seed: the initial content of ``file``."""
    folder: Path
    steps: Sequence[EvaluatorStep]
    score: MetricReader
    worst: float = 0.0
    quoted: int = _LONGEST
    """The most characters of each text that feedback quotes."""
    notes: Sequence[str] = ()
    """Notes for users who run this problem, one line each."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """The files of ``folder`` that the seed imports, by their paths. A program that is isolated from the evaluator sees
    no other files of the folder.
    """
    cases: Sequence[Case] = (Case("evaluator"),)

    def seed(self) -> Artifact:
        return Artifact({self.file: self.source}, kind="program")

    def check_seed(self, score: float) -> None:
        """Raises:
        InputError: if the score of a working seed is below that of a failure.
        """
        if score < self.worst:
            raise InputError(
                f"{self.folder}: {self.file}, which evolution starts from, scores {score:.6g}, less than a failure's "
                f"{self.worst:.6g}; set task.worst below all scores of working programs"
            )

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        """Run the evaluator and the program together in one sandbox, and return the verdict."""
        return (await self.judged(artifact[self.file], sandbox)).verdict

    async def judged(self, program: str, sandboxes: Sandbox | SandboxPair) -> Judged:
        """Run the evaluator: in the program's sandbox, or in one of its own if ``sandboxes`` is a pair."""
        report = Report({})
        seconds = 0.0
        for step in self.steps:
            outcome = await self._run(step, program, sandboxes)
            seconds += outcome.seconds
            if outcome.status != "ok":
                verdict = failed(self.worst, outcome)
                words = f"{step.label}: {verdict.feedback}"
                return Judged(Verdict(self.worst, words, _with_remedy(verdict.failure), {"seconds": seconds}))
            try:
                report = _merged(report, read_report(outcome.result))
            except WrongResultError as error:
                return Judged(Verdict(self.worst, f"{step.label}: {error}", str(error), {"seconds": seconds}))
            value = self.score(report.metrics)
            if report.failure is not None or value is None:
                break
            if step.at_least is not None and value < step.at_least:
                break
        return Judged(self._verdict(report, seconds), report.notes)

    async def _run(self, step: EvaluatorStep, program: str, sandboxes: Sandbox | SandboxPair) -> Outcome:
        if isinstance(sandboxes, Sandbox):
            given = {"folder": sandboxes.readable_at(self.folder), "program": program, "name": self.file}
            return await sandboxes.run(_DRIVER, call=step.call, arguments={**given, **step.arguments}, name=_ENTRY)
        folder = sandboxes.evaluators.readable_at(self.folder)
        return await sandboxes.run(
            _DRIVER,
            call="apart",
            arguments={"entry": step.call, "folder": folder, "name": self.file, **step.arguments},
            program={"program": program, "name": self.file, "modules": dict(self.modules)},
            name=_ENTRY,
        )

    def _verdict(self, report: Report, seconds: float) -> Verdict:
        value = self.score(report.metrics)
        metrics = {**report.metrics, "seconds": seconds}
        feedback = describe_report(report, self.quoted)
        if report.failure is not None:
            return Verdict(self.worst, feedback, _one_line(report.failure), metrics)
        if value is None:
            why = f"no score among the metrics ({', '.join(report.metrics) or 'there is no finite number'})"
            return Verdict(self.worst, f"{why}\n{feedback}", why, metrics)
        return Verdict(value, feedback, None, metrics)


def with_readable_evaluator(settings: SandboxSettings, problem: object) -> SandboxSettings:
    """The settings with the folder of the problem's evaluator, if there is one, in ``readable``. It is the last there,
    so that programs find all others at the same paths in a sandbox without it.
    """
    if not isinstance(problem, EvaluatorProblem):
        return settings
    others = without_evaluator(settings, problem).readable
    return settings.model_copy(update={"readable": (*others, problem.folder)})


def without_evaluator(settings: SandboxSettings, problem: EvaluatorProblem) -> SandboxSettings:
    """The settings of a sandbox for programs that are isolated from their evaluator: they can't read its folder."""
    return settings.model_copy(
        update={"readable": tuple(folder for folder in settings.readable if folder.resolve() != problem.folder)}
    )


def read_report(result: JSON) -> Report:
    """Read the driver's report, which a program may have forged. Raises WrongResultError if it has another form."""
    if not isinstance(result, dict):
        raise WrongResultError("the evaluator's report is no object")
    metrics, texts, failure = result.get("metrics"), result.get("texts"), result.get("failure")
    if not isinstance(metrics, dict) or not isinstance(texts, dict) or not isinstance(failure, str | None):
        raise WrongResultError("the evaluator's report lacks metrics, texts or failure")
    notes = result.get("notes")
    numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
    noted = [str(note) for note in notes] if isinstance(notes, list) else []
    return Report(numbers, {name: str(value) for name, value in texts.items()}, failure, noted)


def metric(key: str) -> MetricReader:
    """Return a reader that takes the metric of this name as the score."""
    return lambda metrics: metrics.get(key)


def metric_or_mean(key: str, but: Sequence[str]) -> MetricReader:
    """Return a reader that takes the metric of this name as the score or, without one, the mean of the metrics not in
    ``but``, or else of all metrics, as in OpenEvolve.
    """

    def read(metrics: Mapping[str, float]) -> float | None:
        if key in metrics:
            return metrics[key]
        counted = [value for name, value in metrics.items() if name not in but] or list(metrics.values())
        return math.fsum(counted) / len(counted) if counted else None

    return read


def describe_report(report: Report, quoted: int) -> str:
    """A report as feedback for a model: the metrics in one line, and the texts below it."""
    lines = [", ".join(f"{name} {value:.6g}" for name, value in report.metrics.items())]
    if report.failure is not None:
        lines.insert(0, f"The evaluator says that it failed: {report.failure[:quoted]}")
    shown = [(name, text) for name, text in report.texts.items() if text.strip()][:_MOST]
    lines += [f"{name}: {_shortened(text.strip(), quoted)}" for name, text in shown]
    return "\n".join(line for line in lines if line)


def command_problem(
    command: tuple[str, ...],
    program: Path,
    statement: str = "",
    folder: Path | None = None,
    worst: float = 0.0,
) -> EvaluatorProblem:
    """Programs scored by a command that runs in the sandbox. ``{program}`` in it stands for the program's path.

    The command prints a number, or JSON with ``score`` and other metrics; an ``error`` in it means that the program
    failed. ``folder``, by default the folder of ``program`` (the seed), is readable in the sandbox, and the working
    directory has links to its entries.

    Raises:
        InputError: if the seed can't be read, or no word of the command contains ``{program}``.
    """
    if not any("{program}" in word for word in command):
        raise InputError(f"task.command is {' '.join(command)!r}, but has to contain {{program}}, the program's path")
    place = (program.parent if folder is None else folder).resolve()
    return EvaluatorProblem(
        name=program.stem,
        statement=statement or f"Improve {program.name}, so that it scores higher.",
        file=program.name,
        source=read_text(program),
        folder=place,
        steps=(EvaluatorStep("command", {"words": list(command)}, command[0]),),
        score=metric("score"),
        worst=worst,
        notes=(TRIED_AT_START,),
        modules=imported_modules(place, read_text(program), program.suffix, {Path(word).name for word in command}),
    )


def read_text(file: Path) -> str:
    """Read a text file. Raises InputError if it can't be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read: {reason_of(error)}") from None


def _merged(before: Report, after: Report) -> Report:
    """Two reports as one, in which the later report overrides the earlier one."""
    notes = [*before.notes, *after.notes]
    return Report({**before.metrics, **after.metrics}, {**before.texts, **after.texts}, after.failure, notes)


def _with_remedy(failure: str | None) -> str:
    """A failure on one line, with a remedy where one is known."""
    reason = _one_line(failure or "it failed")
    if "No module named" in reason:
        return f"{reason} (install it where flowevolve is installed)"
    if reason.startswith("timeout"):
        return f"{reason} (sandbox.timeout allows more)"
    return f"{reason} (sandbox.memory_mb allows more)" if reason.startswith("memory") else reason


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


def _shortened(text: str, limit: int) -> str:
    """The beginning and the end of a text, since the end of a traceback says most."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n...\n{text[-(limit - limit // 2) :]}"
