"""Figures of a run's progress, from its events, for those who show or report them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from flowevolve.core.acts import Pause, RaiseBudget
from flowevolve.core.budget import DIMENSIONS, Budget, Cost
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
from flowevolve.core.stop_reasons import UNPRODUCTIVE
from flowevolve.engine.counters import accepts
from flowevolve.engine.fruitless import top_reasons
from flowevolve.telemetry.result_words import stopped_by


@dataclass(slots=True)
class ProgressFigures:
    """Figures of a run's progress, from its events up to now."""

    seconds: float = 0.0
    version: int = 0
    unchanged: int = 0
    accepted: int = 0
    open_flows: int = 0
    repaired: int = 0
    stale: int = 0
    perfect: int = 0
    """How many minibatches in a row left nothing to improve, since something was last proposed."""
    best: str | None = None
    best_score: float | None = None
    seed_score: float | None = None
    in_vain: str | None = None
    """Why the first flows were all in vain."""
    stopping: str | None = None
    limits: dict[str, float] = field(default_factory=dict)
    """The limits of the budget that somebody has raised, as `Budget.by_name` has them."""
    spent: Cost = field(default_factory=Cost)
    """What work that has ended cost."""
    resumed: bool = False
    _paused_since: float | None = None
    _paused_by: str = ""
    """Who asked for the pause, if it was somebody who watches the run."""
    _last_stage: str | None = None
    """The stage at which an item ended last."""
    _closed_at: Counter[str] = field(default_factory=Counter)
    """How many flows ended at each stage since something was last proposed or committed."""
    _waiting: dict[ItemId, str] = field(default_factory=dict)
    """Items that were handed on but not taken yet, with the stage that they wait for."""

    def waiting(self) -> Mapping[str, int]:
        """How many items wait for each stage, the most first. Stages for which none wait are left out."""
        return dict(Counter(self._waiting.values()).most_common())

    def stopped_by(self) -> str:
        """Why the run is stopping, in words."""
        sentence = stopped_by(self.stopping or "", self.perfect)
        if self.stopping != UNPRODUCTIVE or self.perfect or not self._closed_at:
            return sentence
        ((stage, count),) = self._closed_at.most_common(1)
        most = 2 * count > self._closed_at.total()
        return f"{sentence}, {f'most of which ended at {stage!r}' if most else 'which ended at several stages'}"

    def pause(self) -> str:
        """For how long the run has been paused, in words; empty if it is not."""
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
        """The proposals of work that has ended."""
        return self.spent.proposals

    def _commit(self, commit: PoolCommitted) -> None:
        self.version, self.best, self.best_score = commit.version, commit.best, commit.best_score
        if commit.version == 1:
            self.seed_score = commit.best_score
        elif commit.stage != "init":
            self.accepted += sum(map(accepts, commit.changes))


def used(budget: Budget, seconds: float, spent: Cost, counted: Collection[str] = DIMENSIONS) -> str:
    """How much of each limit of the budget is used, in words; empty if there is no limit. Of the dimensions of the
    cost, only those in ``counted`` are named.
    """
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
