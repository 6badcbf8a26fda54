"""Shows the progress of a run: a live table on a terminal, plain lines elsewhere. Events are enough for it; what is
said of requests needs the records of finished calls as well.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from flowevolve._util.clock import Clock
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.calls import CallRecord
from flowevolve.core.discard_reasons import UNCHANGED
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import (
    FlowClosed,
    FlowOpened,
    ItemDone,
    PhaseEnded,
    PoolCommitted,
    RepairJudged,
    RunFruitless,
    RunResumed,
    RunStopping,
)
from flowevolve.core.events import Event
from flowevolve.engine.counters import accepts
from flowevolve.engine.fruitless import top_reasons

LINE_SECONDS = 30.0
"""The longest time, by the run's clock, without a line where nothing better is found, as long as anything happens."""
RECENT_SECONDS = 30.0
"""The time before the last finished call over which the requests in flight are averaged."""
_FAILURE_CHARACTERS = 160


@dataclass(slots=True)
class CallFigures:
    """What the calls that have finished add up to."""

    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    _recent: deque[tuple[float, float]] = field(default_factory=deque)
    """When the calls of the last while were sent and had their answers."""

    def take(self, record: CallRecord) -> None:
        if record.cached:
            return
        usage = record.failed_usage if record.reply is None else record.reply.usage
        self.requests += 1
        self.failed += record.error is not None
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self._recent.append((record.started, record.finished))
        while self._recent[0][1] < record.finished - RECENT_SECONDS:
            self._recent.popleft()

    def in_flight(self) -> float:
        """How many requests were in flight at a time lately, on average, as far as they have finished."""
        if not self._recent:
            return 0.0
        end = self._recent[-1][1]
        begin = max(end - RECENT_SECONDS, min(started for started, _ in self._recent))
        busy = sum(finished - max(started, begin) for started, finished in self._recent)
        return busy / (end - begin) if end > begin else 0.0


@dataclass(slots=True)
class ProgressFigures:
    """What the events up to now add up to."""

    seconds: float = 0.0
    version: int = 0
    unchanged: int = 0
    accepted: int = 0
    open_flows: int = 0
    repaired: int = 0
    stale: int = 0
    best: str | None = None
    best_score: float | None = None
    seed_score: float | None = None
    in_vain: str | None = None
    """Why nothing came of the first flows."""
    stopping: str | None = None
    spent: Cost = field(default_factory=Cost)
    """What work that has ended cost, since the last resume."""
    resumed: bool = False

    def take(self, event: Event) -> None:
        self.seconds = event.time
        if isinstance(event.body, ItemDone | PhaseEnded):
            self.spent += event.body.cost
        match event.body:
            case FlowOpened():
                self.open_flows += 1
            case FlowClosed():
                self.open_flows -= 1
            case ItemDone(reason=reason):
                self.stale += reason == "stale"
                self.unchanged += reason == UNCHANGED
            case RepairJudged(verdict=verdict):
                self.repaired += verdict == "orthogonal"
            case PoolCommitted() as commit:
                self._commit(commit)
            case RunResumed() as before:
                self.version, self.unchanged, self.accepted = before.version, before.unchanged, before.accepted
                self.open_flows, self.best, self.best_score = before.flows, before.best, before.best_score
                self.spent, self.resumed = Cost(proposals=before.proposals), True
            case RunFruitless(reasons=reasons):
                self.in_vain = top_reasons(reasons)
            case RunStopping(reason=reason):
                self.stopping = reason

    @property
    def proposals(self) -> int:
        """Those of work that has ended."""
        return self.spent.proposals

    def _commit(self, commit: PoolCommitted) -> None:
        self.version, self.best, self.best_score = commit.version, commit.best, commit.best_score
        if commit.version == 1:
            self.seed_score = commit.best_score
        elif commit.stage != "init":
            self.accepted += sum(map(accepts, commit.changes))


class Progress(AbstractContextManager["Progress"]):
    """Shows the progress of a run while it is entered."""

    def __init__(self) -> None:
        self._figures = ProgressFigures()
        self._calls = CallFigures()
        self._failure: str | None = None
        """What was said of the last call or rollout that failed."""

    def event(self, event: Event) -> None:
        """An event sink."""
        self._figures.take(event)
        if isinstance(event.body, OwnEvent) and event.kind == "rollout.failed":
            self._failure = str(event.body.data.get("reason"))

    def call(self, record: CallRecord) -> None:
        """An observer of calls."""
        self._calls.take(record)
        self._failure = record.error or self._failure


class Lines(Progress):
    """Writes a line for each commit to the pool that changes the best candidate, one after each ``pause`` (in seconds
    of the run's clock) without one, and one when the run is to stop.
    """

    def __init__(self, write: Callable[[str], None], *, pause: float = LINE_SECONDS) -> None:
        super().__init__()
        self._write = write
        self._pause = pause
        self._written = 0.0

    def event(self, event: Event) -> None:
        before = self._figures.best
        super().event(event)
        figures = self._figures
        better = isinstance(event.body, PoolCommitted) and figures.best != before
        if isinstance(event.body, RunFruitless):
            self._write(f"{figures.seconds:9.1f} s  nothing has come of any flow yet: {figures.in_vain}")
        elif isinstance(event.body, RunStopping):
            self._write(f"{figures.seconds:9.1f} s  stopping: {figures.stopping}; {figures.open_flows} flows to finish")
        elif better or figures.seconds - self._written >= self._pause:
            self._written = figures.seconds
            self._write(
                f"{figures.seconds:9.1f} s  best {_score(figures.best_score)} ({figures.best})"
                f"  version {figures.version}  proposals {figures.proposals}  accepted {figures.accepted}"
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The lines stay."""


def lines(write: Callable[[str], None], clock: Clock) -> Lines:
    """Lines on a run on this clock; virtual hours pass too fast for one every half minute."""
    return Lines(write, pause=math.inf if clock == "virtual" else LINE_SECONDS)


class LiveTable(Progress):
    """Shows a table that is redrawn a few times a second. ``budget`` is what the run may spend."""

    def __init__(self, console: Console, title: str, budget: Budget | None = None) -> None:
        super().__init__()
        self._title = title
        self._budget = budget or Budget()
        self._live = Live(get_renderable=self._table, console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def _table(self) -> Table:
        figures = self._figures
        minutes = figures.seconds / 60
        rate = f"{figures.proposals / minutes:.1f}/min" if minutes > 0 else "-"
        state = f"stopping: {figures.stopping}" if figures.stopping else "running"
        table = Table(title=self._title, show_header=False, title_justify="left")
        table.add_row("state", f"{state}, {figures.seconds:.0f} s, {figures.open_flows} flows open")
        table.add_row("best", f"{_score(figures.best_score)} ({figures.best}); seed {_score(figures.seed_score)}")
        if used := ", ".join(_used(self._budget, figures)):
            table.add_row("budget", used)
        unchanged = f"; {figures.unchanged} replies changed nothing" if figures.unchanged else ""
        table.add_row(
            "proposals",
            f"{figures.proposals} ({rate}), accepted {figures.accepted}, pool version {figures.version}{unchanged}",
        )
        for row in self._requests():
            table.add_row(*row)
        table.add_row("stale", f"discarded {figures.stale}, repaired {figures.repaired}")
        if figures.in_vain and not figures.proposals:
            table.add_row("in vain", Text(figures.in_vain))
        if self._failure:
            table.add_row("last failure", Text(" ".join(self._failure.split())[:_FAILURE_CHARACTERS]))
        return table

    def _requests(self) -> Iterator[tuple[str, str]]:
        """Rows on the calls that have finished, if there are any."""
        calls, dollars = self._calls, self._figures.spent.dollars
        if not calls.requests:
            return
        since = ", since the resume" if self._figures.resumed else ""
        yield "requests", f"{calls.requests} ({calls.failed} failed), about {calls.in_flight():.0f} in flight{since}"
        cost = f", {dollars:.4f} dollars" if dollars else ""
        yield "tokens", f"{calls.prompt_tokens:,} prompt, {calls.completion_tokens:,} completion{cost}{since}"


def _used(budget: Budget, figures: ProgressFigures) -> Iterator[str]:
    """How much of each limit is used. After a resume, only of those of which the earlier part is known."""
    limit = budget.time_limit()
    if limit is not None:
        left = max(0.0, limit - figures.seconds)
        yield f"{min(1.0, figures.seconds / limit):.0%} of the time ({left / 60:.1f} min left)"
    for name, most in budget.limits().items():
        if name == "proposals" or not figures.resumed:
            yield f"{figures.spent.amount(name) / most:.0%} of {most:,g} {name}"
    if budget.target_score is not None:
        yield f"until a score of {budget.target_score:g}"


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.4f}"
