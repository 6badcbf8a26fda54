"""Shows the progress of a run: a live table on a terminal, plain lines elsewhere. Only events are needed for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from flowevolve.core.event_kinds import (
    CandidateProposed,
    FlowClosed,
    FlowOpened,
    ItemDone,
    PoolCommitted,
    RepairJudged,
    RunResumed,
    RunStopping,
)
from flowevolve.core.events import Event
from flowevolve.engine.counters import accepts


@dataclass(slots=True)
class ProgressFigures:
    """What the events up to now add up to."""

    seconds: float = 0.0
    version: int = 0
    proposals: int = 0
    accepted: int = 0
    open_flows: int = 0
    repaired: int = 0
    stale: int = 0
    best: str | None = None
    best_score: float | None = None
    seed_score: float | None = None
    stopping: str | None = None

    def take(self, event: Event) -> None:
        self.seconds = event.time
        match event.body:
            case FlowOpened():
                self.open_flows += 1
            case FlowClosed():
                self.open_flows -= 1
            case CandidateProposed(operator=operator, adopted=False):
                self.proposals += operator not in ("seed", "repair", "migrate", "meta")
            case ItemDone(reason=reason):
                self.stale += reason == "stale"
            case RepairJudged(verdict=verdict):
                self.repaired += verdict == "orthogonal"
            case PoolCommitted() as commit:
                self._commit(commit)
            case RunResumed() as before:
                self.version, self.proposals, self.accepted = before.version, before.proposals, before.accepted
                self.open_flows, self.best, self.best_score = before.flows, before.best, before.best_score
            case RunStopping(reason=reason):
                self.stopping = reason

    def _commit(self, commit: PoolCommitted) -> None:
        self.version, self.best, self.best_score = commit.version, commit.best, commit.best_score
        if commit.version == 1:
            self.seed_score = commit.best_score
        elif commit.stage != "init":
            self.accepted += sum(map(accepts, commit.changes))


class Progress(AbstractContextManager["Progress"]):
    """Shows the progress of a run while it is entered."""

    @abstractmethod
    def event(self, event: Event) -> None:
        """An event sink."""


class Lines(Progress):
    """Writes a line for each commit to the pool that changes the best candidate, and one when the run is to stop."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._figures = ProgressFigures()

    def event(self, event: Event) -> None:
        before = self._figures.best
        self._figures.take(event)
        figures = self._figures
        if isinstance(event.body, PoolCommitted) and figures.best != before:
            self._write(
                f"{figures.seconds:9.1f} s  best {_score(figures.best_score)} ({figures.best})"
                f"  version {figures.version}  proposals {figures.proposals}  accepted {figures.accepted}"
            )
        elif isinstance(event.body, RunStopping):
            self._write(f"{figures.seconds:9.1f} s  stopping: {figures.stopping}; {figures.open_flows} flows to finish")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The lines stay."""


class LiveTable(Progress):
    """Shows a table that is redrawn a few times a second."""

    def __init__(self, console: Console, title: str) -> None:
        self._figures = ProgressFigures()
        self._title = title
        self._live = Live(get_renderable=self._table, console=console, refresh_per_second=4)

    def event(self, event: Event) -> None:
        self._figures.take(event)

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
        table.add_row(
            "proposals", f"{figures.proposals} ({rate}), accepted {figures.accepted}, pool version {figures.version}"
        )
        table.add_row("stale", f"discarded {figures.stale}, repaired {figures.repaired}")
        return table


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.4f}"
