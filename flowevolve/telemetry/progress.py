"""Shows the progress of a run: a live table on a terminal, plain lines elsewhere. Events are enough for it; what is
said of requests needs the records of finished calls as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from flowevolve._util.clock import Clock
from flowevolve._util.intervals import score_said
from flowevolve.core.acts import Pause, RaiseBudget
from flowevolve.core.budget import DIMENSIONS, Budget, Cost
from flowevolve.core.calls import CallRecord
from flowevolve.core.discard_reasons import PERFECT, UNCHANGED
from flowevolve.core.event_kinds import (
    FlowClosed,
    FlowOpened,
    ItemDone,
    ItemHeld,
    ItemSent,
    ItemTaken,
    PhaseEnded,
    PoolCommitted,
    RepairJudged,
    RunFruitless,
    RunPaused,
    RunResumed,
    RunSteered,
    RunStopping,
    RunUnpaused,
)
from flowevolve.core.events import Event
from flowevolve.core.item_ids import ItemId
from flowevolve.core.stop_reasons import INTERRUPTED, UNPRODUCTIVE
from flowevolve.engine.counters import accepts
from flowevolve.engine.fruitless import top_reasons
from flowevolve.llm.scheduling.scheduler import SchedulerStats
from flowevolve.telemetry.call_figures import CallFigures
from flowevolve.telemetry.cut_replies import many_cut
from flowevolve.telemetry.failed_rollouts import FAILED
from flowevolve.telemetry.result_words import stopped_by

LINE_SECONDS = 30.0
"""The longest time, by the run's clock, without a line where nothing better is found."""
MANY_PERFECT = 10
"""After so many minibatches in a row that leave nothing to improve, it is told."""
_FAILURE_CHARACTERS = 160
_FAILURES: Mapping[str, str] = {
    FAILED: "reason",
    "endpoint.ejected": "reason",
    "memory.unavailable": "error",
    "server.died": "detail",
    "server.gave_up": "detail",
}
"""Events that tell of a failure, and which of their fields says what it was."""


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
    perfect: int = 0
    """Minibatches in a row that left nothing to improve: since something was last proposed."""
    best: str | None = None
    best_score: float | None = None
    seed_score: float | None = None
    in_vain: str | None = None
    """Why nothing came of the first flows."""
    stopping: str | None = None
    limits: dict[str, float] = field(default_factory=dict)
    """Limits of the budget that somebody has raised, as `Budget.by_name` has them."""
    spent: Cost = field(default_factory=Cost)
    """What work that has ended cost."""
    resumed: bool = False
    _paused_since: float | None = None
    _paused_by: str = ""
    """Who asked for the pause, where it was somebody who watches the run."""
    _last_stage: str | None = None
    """Where an item ended last."""
    _closed_at: Counter[str] = field(default_factory=Counter)
    """At which stages flows ended, since something was last proposed or committed."""
    _waiting: dict[ItemId, str] = field(default_factory=dict)
    """Items that were handed on and not taken yet, with the stage that they wait for."""

    def waiting(self) -> Mapping[str, int]:
        """How many items wait for each stage for which any do, the most first."""
        return dict(Counter(self._waiting.values()).most_common())

    def stopped_by(self) -> str:
        """Why the run is stopping, in words."""
        said = stopped_by(self.stopping or "", self.perfect)
        if self.stopping != UNPRODUCTIVE or self.perfect or not self._closed_at:
            return said
        ((stage, count),) = self._closed_at.most_common(1)
        most = 2 * count > self._closed_at.total()
        return f"{said}, {f'most of which ended at {stage!r}' if most else 'which ended at several stages'}"

    def pause(self) -> str:
        """Words on for how long the run has been paused; empty if it is not."""
        if self._paused_since is None:
            return ""
        by = f" by {self._paused_by}" if self._paused_by else ""
        return f"paused for {self.seconds - self._paused_since:.0f} s{by}"

    def end_pause(self) -> None:
        self._paused_since, self._paused_by = None, ""

    def rate(self) -> str:
        """Proposals per minute."""
        return f"{self.proposals * 60 / self.seconds:.1f}/min" if self.seconds > 0 else "-"

    def take(self, event: Event) -> None:
        self.seconds = event.time
        if isinstance(event.body, ItemDone | PhaseEnded):
            self.spent += event.body.cost
            if event.body.cost.proposals:
                self.perfect = 0
                self._closed_at.clear()
        match event.body:
            case FlowOpened():
                self.open_flows += 1
            case FlowClosed():
                self.open_flows -= 1
                if self._last_stage is not None:
                    self._closed_at[self._last_stage] += 1
            case ItemSent(item=item, stage=stage):
                self._waiting[item] = stage
            case ItemTaken(item=item) | ItemHeld(item=item):
                self._waiting.pop(item, None)
            case ItemDone(item=item, stage=stage, reason=reason):
                self._waiting.pop(item, None)
                self._last_stage = stage
                self.stale += reason == "stale"
                self.unchanged += reason == UNCHANGED
                self.perfect += reason == PERFECT
            case RepairJudged(verdict=verdict):
                self.repaired += verdict == "orthogonal"
            case PoolCommitted() as commit:
                self._commit(commit)
                self._closed_at.clear()
            case RunResumed() as before:
                self.version, self.unchanged, self.accepted = before.version, before.unchanged, before.accepted
                self.open_flows, self.best, self.best_score = before.flows, before.best, before.best_score
                self.spent, self.resumed = before.spent, True
                self.end_pause()
            case RunPaused() if self._paused_since is None:
                self._paused_since = event.time
            case RunUnpaused():
                self.end_pause()
            case RunSteered(by=by, act=Pause(), refused=None):
                self._paused_by = by
            case RunFruitless(reasons=reasons):
                self.in_vain = top_reasons(reasons)
            case RunStopping(reason=reason):
                self.stopping = reason
            case RunSteered(act=RaiseBudget() as raised, refused=None):
                self.limits.update(raised.by_name())
                self.stopping = None
            case _:
                pass

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
    """Shows the progress of a run while it is entered. ``budget`` is what the run may spend."""

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._figures = ProgressFigures()
        self._calls = CallFigures()
        self._failure: str | None = None
        """What was said of the last call, rollout or server that failed, in one line."""

    def event(self, event: Event) -> None:
        """An event sink."""
        self._figures.take(event)
        if event.kind in _FAILURES:
            self._failed(str(event.data.get(_FAILURES[event.kind])))

    def call(self, record: CallRecord) -> None:
        """An observer of calls."""
        self._calls.take(record)
        if record.error:
            self._failed(record.error)

    def tick(self, seconds: float, requests: SchedulerStats) -> None:
        """Told of the time, and of the requests that wait and are under way, also where nothing happens."""
        self._figures.seconds = max(seconds, self._figures.seconds)
        self._calls.tick(self._figures.seconds, requests)

    def _failed(self, said: str) -> None:
        self._failure = _shortened(said)

    def _used(self) -> str:
        """How much of each limit is used."""
        figures = self._figures
        return used(self._budget.raised(figures.limits), figures.seconds, figures.spent)

    def _waits(self) -> str:
        return ", ".join(f"{stage} {items}" for stage, items in self._figures.waiting().items())


class Lines(Progress):
    """Writes a line for each commit to the pool that changes the best score, one after each ``pause`` (in seconds
    of the run's clock) without one, and one when the run is to stop. Where no answer comes, lines say so.
    """

    def __init__(
        self, write: Callable[[str], None], *, pause: float = LINE_SECONDS, budget: Budget | None = None
    ) -> None:
        super().__init__(budget)
        self._write = write
        self._pause = pause
        self._written = 0.0
        self._told: str | None = None
        """The last failure that a line has told."""

    def event(self, event: Event) -> None:
        best, before, perfect = self._figures.best, self._figures.best_score, self._figures.perfect
        super().event(event)
        figures = self._figures
        better = isinstance(event.body, PoolCommitted) and figures.best_score != before
        if isinstance(event.body, RunFruitless):
            self._write(f"{figures.seconds:9.1f} s  nothing has come of any flow yet: {figures.in_vain}")
        elif isinstance(event.body, RunStopping):
            flows = _flows_said(figures.open_flows)
            cut = " (Ctrl-C once more cuts them off)" if figures.stopping == INTERRUPTED and figures.open_flows else ""
            self._write(f"{figures.seconds:9.1f} s  stopping: {figures.stopped_by()}; {flows} to finish{cut}")
        elif perfect < MANY_PERFECT <= figures.perfect:
            self._write(
                f"{figures.seconds:9.1f} s  {_nothing_to_improve(figures.perfect)}: all scores in them are perfect"
            )
        elif better:
            # The same candidate has another score where it was validated once more, and has the mean of its scores.
            self._write_figures(again=before is not None and best == figures.best)
        else:
            self._write_after_pause()

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
        if silence := calls.silence(figures.seconds):
            yield silence
        yield from many_cut(calls.cut.by_role())
        if self._failure != self._told:
            self._told = self._failure
            yield f"last failure: {self._failure}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The lines stay."""


def lines(write: Callable[[str], None], clock: Clock, budget: Budget | None = None) -> Lines:
    """Lines on a run on this clock; virtual hours pass too fast for one every half minute."""
    return Lines(write, pause=math.inf if clock == "virtual" else LINE_SECONDS, budget=budget)


class LiveTable(Progress):
    """Shows a table that is redrawn a few times a second, in a thread of its own: a slow terminal keeps nobody up."""

    def __init__(self, console: Console, title: str, budget: Budget | None = None) -> None:
        super().__init__(budget)
        self._title = title
        self._figures_lock = Lock()
        """Held while the figures change, and while the table is made of them."""
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
        table = Table(title=self._title, show_header=False, title_justify="left")
        table.add_row("state", f"{state}, {figures.seconds:.0f} s, {_flows_said(figures.open_flows)} open")
        table.add_row(
            "best",
            f"{score_said(figures.best_score)}{_which(figures.best)}; seed {score_said(figures.seed_score)}",
        )
        if budget := self._used():
            table.add_row("budget", budget)
        unchanged = f"; {figures.unchanged} replies changed nothing" if figures.unchanged else ""
        table.add_row(
            "proposals",
            f"{figures.proposals} ({figures.rate()}), accepted {figures.accepted}, "
            f"pool version {figures.version}{unchanged}",
        )
        for row in self._requests():
            table.add_row(*row)
        for said in many_cut(self._calls.cut.by_role()):
            table.add_row("cut", said)
        if silence := self._calls.silence(figures.seconds):
            table.add_row("answers", silence)
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


def used(budget: Budget, seconds: float, spent: Cost, counted: Collection[str] = DIMENSIONS) -> str:
    """How much of each limit is used, as far as that is counted; empty if there is none."""
    parts, limit = list[str](), budget.time_limit()
    if limit is not None:
        left = max(0.0, limit - seconds)
        parts.append(f"{min(1.0, seconds / limit):.0%} of the time ({left / 60:.1f} min left)")
    parts += [
        f"{spent.amount(name) / most:.0%} of {most:,.12g} {name}"
        for name, most in budget.limits().items()
        if name in counted
    ]
    if budget.target_score is not None:
        parts.append(f"until a score of {budget.target_score:g}")
    return ", ".join(parts)


def _nothing_to_improve(perfect: int) -> str:
    return f"nothing to improve in the last {perfect} minibatches"


def _shortened(said: str) -> str:
    """In one line, and cut between words where it is too long."""
    line = " ".join(said.split())
    if len(line) <= _FAILURE_CHARACTERS:
        return line
    start = line[: _FAILURE_CHARACTERS - 1]
    return f"{start.rpartition(' ')[0] or start} …"


def _which(best: str | None) -> str:
    return "" if best is None else f" ({best})"


def _flows_said(number: int) -> str:
    return f"{number} flow{'' if number == 1 else 's'}"
