"""The course of a simulated run: what it had used at each time, and what it will have used when its budget is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from flowevolve.core.budget import DIMENSIONS, Budget
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.runner.result import Result
from flowevolve.telemetry.run_figures import ProgressFigures

BEGINNING = 0.3
"""The share of the simulated calls that counts as the beginning, when a run behaves differently than later."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a run has used up to some time."""

    seconds: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    dollars: float = 0.0
    """NaN where the price of a model is not known."""
    proposals: float = 0.0
    rollouts: float = 0.0
    evaluations: float = 0.0
    calls: float = 0.0
    call_seconds: float = 0.0
    """The sum of the times that its calls were in flight."""

    @property
    def tokens(self) -> float:
        return self.input_tokens + self.output_tokens

    def plus(self, other: Amounts, times: float) -> Amounts:
        """The sum of this and ``times`` times the other."""
        sums = {each.name: getattr(self, each.name) + times * getattr(other, each.name) for each in fields(self)}
        return Amounts(**sums)


@dataclass(frozen=True, slots=True)
class Course:
    """What a simulated run had used after each of its calls. ``end`` is None if it was cut short."""

    marks: Sequence[Amounts]
    end: Amounts | None
    stop_reason: str

    @property
    def seconds(self) -> float:
        """How long the run was simulated."""
        return self.marks[-1].seconds

    @property
    def late(self) -> Amounts:
        """What the calls used that came after the beginning."""
        return self.marks[-1].plus(self.marks[round(BEGINNING * len(self.marks))], -1.0)

    def when_spent(self, budget: Budget) -> tuple[Amounts, str]:
        """What the run uses in total, and which limit ends it.

        A run that was cut short is extrapolated from how it went after its beginning.
        """
        if self.end is not None:
            by_budget = self.stop_reason in (*DIMENSIONS, "seconds")
            return self.end, _said(budget, self.stop_reason) if by_budget else self.stop_reason
        last, late = self.marks[-1], self.late
        limits = {str(name): limit for name, limit in budget.limits().items()}
        if (time := budget.time_limit()) is not None:
            limits["seconds"] = time
        turns = {
            name: (limit - getattr(last, name)) / taken
            for name, limit in limits.items()
            if (taken := getattr(late, name)) > 0
        }
        if not turns:
            return last, ""
        first = min(turns, key=turns.__getitem__)
        return last.plus(late, max(0.0, turns[first])), _said(budget, first)


def _said(budget: Budget, limit: str) -> str:
    """The setting of a limit in the configuration; for a time limit, the one in the unit that was given."""
    units = () if limit in DIMENSIONS else ("hours", "minutes")
    return f"budget.{next((unit for unit in units if getattr(budget, unit) is not None), limit)}"


@dataclass(slots=True)
class CourseTaker:
    """Listens to a run's calls and events, and records its course."""

    origin: float = 0.0
    """The loop's time at which the run began."""
    marks: list[Amounts] = field(default_factory=lambda: [Amounts()])
    _figures: ProgressFigures = field(default_factory=ProgressFigures)

    def event(self, event: Event) -> None:
        self._figures.take(event)

    def call(self, record: CallRecord) -> None:
        before, spent = self.marks[-1], self._figures.spent
        usage = record.failed_usage if record.reply is None else record.reply.usage
        dollars = None if record.reply is None else record.reply.dollars
        self.marks.append(
            Amounts(
                seconds=record.finished - self.origin,
                input_tokens=before.input_tokens + usage.prompt_tokens,
                output_tokens=before.output_tokens + usage.completion_tokens,
                dollars=before.dollars + (float("nan") if dollars is None else dollars),
                proposals=spent.proposals,
                rollouts=spent.rollouts,
                evaluations=spent.evaluations,
                calls=before.calls + 1,
                call_seconds=before.call_seconds + record.finished - record.started,
            )
        )

    def taken(self, result: Result, *, whole: bool) -> Course:
        """The course of a run that has ended. ``whole`` is False if it was cut short."""
        spent, usage, dollars = result.report.spent, result.llm.usage, result.llm.dollars
        end = replace(
            self.marks[-1],
            seconds=result.wall_seconds,
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            dollars=float("nan") if dollars is None else dollars,
            proposals=result.proposals,
            rollouts=spent.rollouts,
            evaluations=spent.evaluations,
        )
        return Course(self.marks, end if whole else None, str(result.stop_reason))
