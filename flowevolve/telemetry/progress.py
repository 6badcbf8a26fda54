"""Shows the progress of a run: a live table on a terminal, plain lines elsewhere. For most of it events are enough;
what it shows of requests needs the records of finished calls as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from threading import Lock
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from flowevolve._util.clock import Clock
from flowevolve._util.intervals import score_said
from flowevolve._util.threads import under_way
from flowevolve._util.waits import waited_for
from flowevolve._util.words import counted
from flowevolve.core.budget import Budget
from flowevolve.core.calls import HELD_OUT, CallRecord
from flowevolve.core.event_kinds import (
    PoolCommitted,
    RunFruitless,
    RunStopping,
)
from flowevolve.core.events import Event
from flowevolve.core.stop_reasons import INTERRUPTED
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.scheduler import SchedulerStats
from flowevolve.telemetry.call_figures import CallFigures
from flowevolve.telemetry.failed_rollouts import FAILED
from flowevolve.telemetry.result_words import changed_nothing
from flowevolve.telemetry.role_replies import many_poor, roles_cut, roles_empty
from flowevolve.telemetry.run_figures import ProgressFigures, used

LINE_SECONDS = 30.0
"""The longest time without a line, in seconds of the run's clock, if nothing better is found; and after which it is
said that nothing happens.
"""
MANY_PERFECT = 10
"""After this many minibatches in a row that leave nothing to improve, the progress display says so."""
_FAILURE_CHARACTERS = 160
_FAILURES: Mapping[str, str] = {
    FAILED: "reason",
    "endpoint.ejected": "reason",
    "memory.unavailable": "error",
    "server.died": "detail",
    "server.gave_up": "detail",
}
"""Events that report a failure, each with the name of the field that says what it was."""


class Progress(AbstractContextManager["Progress"]):
    """Shows the progress of a run while it is entered. ``budget`` is what the run may spend."""

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._figures = ProgressFigures()
        self._calls = CallFigures()
        self._traffic: Traffic | None = None
        self._busy = 0.0
        """When something last happened, or a request was under way or waiting, in seconds of the run's clock."""
        self._failure: str | None = None
        """The error of the last call, rollout or server that failed, in one line."""
        self._test_calls = 0
        """How many calls of the test on held-out examples have finished, which follows the run."""

    def event(self, event: Event) -> None:
        """An event sink."""
        self._figures.take(event)
        self._busy = self._figures.seconds
        if event.kind in _FAILURES:
            self._failed(str(event.data.get(_FAILURES[event.kind])))

    def call(self, record: CallRecord) -> None:
        """An observer of calls."""
        self._calls.take(record)
        self._busy = self._figures.seconds
        self._test_calls += record.scope.stage == HELD_OUT
        if record.error:
            self._failed(record.error)

    def watch(self, traffic: Traffic) -> None:
        """Report what holds the requests of this traffic back from now on."""
        self._traffic = traffic

    def tick(self, seconds: float, requests: SchedulerStats) -> None:
        """Note the time, and how many requests wait and are under way. This is to be called regularly, even if nothing
        happens.
        """
        self._figures.seconds = max(seconds, self._figures.seconds)
        self._calls.tick(self._figures.seconds, requests)
        if self._traffic is not None:
            self._calls.held = self._traffic.limits.held_back()
        if requests.in_flight or requests.waiting:
            self._busy = self._figures.seconds

    def _failed(self, error: str) -> None:
        self._failure = _shortened(error)

    def _standstill(self) -> str:
        """How long nothing has happened, though no request is under way, and what is waited for, in words; empty if
        that is not long, or the run is paused.
        """
        seconds = self._figures.seconds - self._busy
        if seconds < LINE_SECONDS or self._figures.pause():
            return ""
        what = waited_for() or next(iter(under_way()), "")
        return f"nothing new for {seconds:.0f} s" + (f", waiting for {what}" if what else "")

    def _used(self) -> str:
        """How much of each limit is used."""
        figures = self._figures
        return used(self._budget.raised(figures.limits), figures.seconds, figures.spent)

    def _poor_replies(self) -> list[str]:
        since = " since the resume" if self._figures.resumed else ""
        counts = self._calls.replies.by_role
        return [f"{warning}{since}" for warning in many_poor(roles_cut(counts), roles_empty(counts))]

    def _test(self) -> str:
        """What is being done after the run, in words."""
        finished = counted(self._test_calls, "call")
        return f"scoring the first and the best candidate on the test examples: {finished} finished"

    def _waits(self) -> str:
        return ", ".join(f"{stage} {items}" for stage, items in self._figures.waiting().items())


class Lines(Progress):
    """Writes a line for each commit to the pool that changes the best score, one whenever ``pause`` seconds of the
    run's clock have passed without one, and one when the run is about to stop. If no answers come, the lines say so.
    """

    def __init__(
        self, write: Callable[[str], None], *, pause: float = LINE_SECONDS, budget: Budget | None = None
    ) -> None:
        super().__init__(budget)
        self._write = write
        self._pause = pause
        self._written = 0.0
        self._told: str | None = None
        """The last failure that was written in a line."""
        self._test_began: float | None = None
        """When the test on held-out examples began, in seconds of the event loop's clock. Ticks have ended by then."""

    def event(self, event: Event) -> None:
        best, before, perfect = self._figures.best, self._figures.best_score, self._figures.perfect
        super().event(event)
        figures = self._figures
        better = isinstance(event.body, PoolCommitted) and figures.best_score != before
        if isinstance(event.body, RunFruitless):
            self._write(f"{figures.seconds:9.1f} s  nothing has come of any flow yet: {figures.in_vain}")
        elif isinstance(event.body, RunStopping):
            flows = counted(figures.open_flows, "flow")
            cut = (
                " (press Ctrl-C once more to cut them off)"
                if figures.stopping == INTERRUPTED and figures.open_flows
                else ""
            )
            self._write(f"{figures.seconds:9.1f} s  stopping: {figures.stopped_by()}; {flows} to finish{cut}")
        elif perfect < MANY_PERFECT <= figures.perfect:
            self._write(
                f"{figures.seconds:9.1f} s  {_nothing_to_improve(figures.perfect)}: all scores in them are perfect"
            )
        elif better:
            # A candidate that is validated once more then has the mean of its scores, so its score may change.
            self._write_figures(again=before is not None and best == figures.best)
        else:
            self._write_after_pause()

    def call(self, record: CallRecord) -> None:
        super().call(record)
        if record.scope.stage != HELD_OUT:
            return
        first = self._test_began is None
        self._test_began = record.queued if self._test_began is None else self._test_began
        seconds = self._figures.seconds + record.finished - self._test_began
        if first or seconds - self._written >= self._pause:
            self._written = seconds
            self._write(f"{seconds:9.1f} s  {self._test()}")

    def tick(self, seconds: float, requests: SchedulerStats) -> None:
        super().tick(seconds, requests)
        self._write_after_pause()

    def _write_after_pause(self) -> None:
        if self._figures.seconds - self._written >= self._pause:
            self._write_figures()

    def _write_figures(self, *, again: bool = False) -> None:
        self._written = self._figures.seconds
        self._write(f"{self._written:9.1f} s  " + "  ".join(self._parts(again=again)))

    def _parts(self, *, again: bool) -> Iterator[str]:
        figures, calls = self._figures, self._calls
        yield f"best {score_said(figures.best_score)}{_which(figures.best)}{' measured again' if again else ''}"
        yield f"version {figures.version}"
        yield f"proposals {figures.proposals} ({figures.rate()})"
        yield f"accepted {figures.accepted}"
        if pause := figures.pause():
            yield pause
        if budget := self._used():
            yield f"used {budget}"
        if calls.requests:
            yield f"in flight {calls.in_flight():.0f}"
            since = " since the resume" if figures.resumed else ""
            yield f"tokens {calls.prompt_tokens + calls.completion_tokens:,}{since}"
        if figures.spent.dollars:
            yield f"dollars {figures.spent.dollars:.4f}"
        if waits := self._waits():
            yield f"waiting {waits}"
        if figures.perfect >= MANY_PERFECT:
            yield _nothing_to_improve(figures.perfect)
        if held := calls.held_back():
            yield held
        if silence := calls.silence(figures.seconds):
            yield silence
        if standstill := self._standstill():
            yield standstill
        yield from self._poor_replies()
        if self._failure != self._told:
            self._told = self._failure
            yield f"last failure: {self._failure}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The lines stay."""


def lines(write: Callable[[str], None], clock: Clock, budget: Budget | None = None) -> Lines:
    """Lines for a run on this clock. On a virtual clock hours pass too fast for a line every half minute."""
    return Lines(write, pause=math.inf if clock == "virtual" else LINE_SECONDS, budget=budget)


class LiveTable(Progress):
    """Shows a table that is redrawn a few times a second, in a thread of its own, so that a slow terminal does not hold
    up the run.
    """

    def __init__(self, console: Console, budget: Budget | None = None) -> None:
        super().__init__(budget)
        self._figures_lock = Lock()
        """Held while the figures change, and while the table is made from them."""
        self._live = Live(get_renderable=self._table, console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def event(self, event: Event) -> None:
        with self._figures_lock:
            super().event(event)

    def call(self, record: CallRecord) -> None:
        with self._figures_lock:
            super().call(record)

    def tick(self, seconds: float, requests: SchedulerStats) -> None:
        with self._figures_lock:
            super().tick(seconds, requests)

    def _table(self) -> Table:
        with self._figures_lock:
            return self._table_now()

    def _table_now(self) -> Table:
        figures = self._figures
        state = f"stopping: {figures.stopped_by()}" if figures.stopping else figures.pause() or "running"
        if self._test_calls:
            state = self._test()
        table = Table(show_header=False)
        table.add_row("state", f"{state}, {figures.seconds:.0f} s, {counted(figures.open_flows, 'flow')} open")
        table.add_row(
            "best",
            f"{score_said(figures.best_score)}{_which(figures.best)}; seed {score_said(figures.seed_score)}",
        )
        if budget := self._used():
            table.add_row("budget", budget)
        table.add_row(
            "proposals",
            f"{figures.proposals} ({figures.rate()}), accepted {figures.accepted}, "
            f"pool version {figures.version}{changed_nothing(figures.unchanged)}",
        )
        for row in self._requests():
            table.add_row(*row)
        for warning in self._poor_replies():
            table.add_row("take care", warning)
        if held := self._calls.held_back():
            table.add_row("held back", held)
        if silence := self._calls.silence(figures.seconds):
            table.add_row("answers", silence)
        if standstill := self._standstill():
            table.add_row("standstill", Text(standstill))
        if waits := self._waits():
            table.add_row("waiting", waits)
        table.add_row("stale", f"discarded {figures.stale}, repaired {figures.repaired}")
        if figures.perfect >= MANY_PERFECT:
            table.add_row("perfect", _nothing_to_improve(figures.perfect))
        if figures.in_vain and not figures.proposals:
            table.add_row("in vain", Text(figures.in_vain))
        if self._failure:
            table.add_row("last failure", Text(self._failure))
        return table

    def _requests(self) -> Iterator[tuple[str, str]]:
        """Rows on the calls that have finished, if there are any."""
        calls, dollars = self._calls, self._figures.spent.dollars
        if not calls.requests:
            return
        since = ", since the resume" if self._figures.resumed else ""
        yield "requests", f"{calls.requests} ({calls.failed} failed), about {calls.in_flight():.0f} in flight{since}"
        yield "tokens", f"{calls.prompt_tokens:,} prompt, {calls.completion_tokens:,} completion{since}"
        if dollars:
            yield "dollars", f"{dollars:.4f}"


def _nothing_to_improve(perfect: int) -> str:
    return f"nothing to improve in the last {perfect} minibatches"


def _shortened(text: str) -> str:
    """The text in one line, and cut between words if it is too long."""
    line = " ".join(text.split())
    if len(line) <= _FAILURE_CHARACTERS:
        return line
    start = line[: _FAILURE_CHARACTERS - 1]
    return f"{start.rpartition(' ')[0] or start} …"


def _which(best: str | None) -> str:
    return "" if best is None else f" ({best})"
