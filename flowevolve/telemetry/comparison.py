"""Compares two runs. It measures them by their events and calls alone, so that either may still be going on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flowevolve.core.budget import Cost
from flowevolve.core.event_kinds import FlowOpened, ItemDone, ItemSent, ItemTaken, PhaseEnded, PoolCommitted
from flowevolve.core.events import Event
from flowevolve.core.graph import Graph
from flowevolve.core.item_ids import ItemId, ticket_id
from flowevolve.engine.counters import RunCounters
from flowevolve.llm.client.accounting import Totals


@dataclass(frozen=True, slots=True)
class StageFigures:
    """One stage: how many items it took, and for how many seconds in total these were worked on and had waited."""

    items: int
    busy_seconds: float
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run had done by its last event."""

    wall_seconds: float
    spent: Cost
    """The cost of the items that were done and of the phases that had ended."""
    accepted: int
    best_score: float | None
    llm: Totals
    stages: Mapping[str, StageFigures]

    def per_minute(self, count: int) -> float:
        return 60 * count / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def mean_in_flight(self) -> float:
        """The mean number of requests in flight over the whole run, without those that were cancelled."""
        return self.llm.latency_seconds / self.wall_seconds if self.wall_seconds else 0.0


class Measurement:
    """Adds up the events of a run."""

    def __init__(self, graph: Graph) -> None:
        self._counters = RunCounters(graph)
        self._spent = Cost()
        self._seconds = 0.0
        self._best_score: float | None = None
        self._sent: dict[ItemId, float] = {}
        self._waited: defaultdict[str, float] = defaultdict(float)

    def event(self, event: Event) -> None:
        """Take the next event of the run. This is an event sink."""
        self._counters.take(event)
        self._seconds = event.time
        match event.body:
            case FlowOpened(flow=flow):
                self._sent[ticket_id(flow)] = event.time
            case ItemSent(item=item):
                self._sent[item] = event.time
            case ItemTaken(item=item, stage=stage):
                self._waited[stage] += event.time - self._sent.pop(item, event.time)
            case ItemDone(cost=cost) | PhaseEnded(cost=cost):
                self._spent += cost
            case PoolCommitted(best_score=best_score):
                self._best_score = best_score

    def figures(self, llm: Totals) -> Figures:
        """The figures up to now. ``llm`` has the totals of the run's calls."""
        stages = {
            name: StageFigures(counts.items_in, counts.busy_seconds, self._waited[name])
            for name, counts in self._counters.stages.items()
        }
        return Figures(self._seconds, self._spent, self._counters.accepted, self._best_score, llm, stages)


def compare(recorded: Figures, replayed: Figures, *, scores: bool, notes: Sequence[str]) -> RenderableType:
    """Tables that compare a recorded run with its replay. Without ``scores`` they leave out the best score, which
    depends on the texts of replies.
    """
    table = Table("", "recorded", "replayed", "ratio")
    for name, format_, value in _ROWS:
        old, new = value(recorded), value(replayed)
        if name == "best score" and not scores:
            continue
        ratio = "-" if not old or new is None else f"{new / old:.2f}"
        table.add_row(name, *("-" if each is None else format(each, format_) for each in (old, new)), ratio)
    return Group(table, _stages(recorded, replayed), *(Text(note) for note in notes))


_ROWS: Sequence[tuple[str, str, Callable[[Figures], float | None]]] = (
    ("wall seconds", ".1f", lambda run: run.wall_seconds),
    ("proposals", "d", lambda run: run.spent.proposals),
    ("proposals per minute", ".1f", lambda run: run.per_minute(run.spent.proposals)),
    ("validations", "d", lambda run: run.spent.evaluations),
    ("validations per minute", ".1f", lambda run: run.per_minute(run.spent.evaluations)),
    ("accepted", "d", lambda run: run.accepted),
    ("best score", ".4f", lambda run: run.best_score),
    ("requests", "d", lambda run: run.llm.requests),
    ("requests per minute", ".0f", lambda run: run.per_minute(run.llm.requests)),
    ("prompt tokens", "d", lambda run: run.llm.usage.prompt_tokens),
    ("completion tokens", "d", lambda run: run.llm.usage.completion_tokens),
    ("dollars", ".4f", lambda run: run.llm.dollars),
    ("requests in flight, mean", ".1f", lambda run: run.mean_in_flight),
)


def _stages(recorded: Figures, replayed: Figures) -> Table:
    table = Table("stage", "items", "→", "busy s", "→", "waited s", "→")
    for name, old in recorded.stages.items():
        new = replayed.stages[name]
        table.add_row(
            name,
            *(str(count) for count in (old.items, new.items)),
            *(f"{seconds:.1f}" for seconds in (old.busy_seconds, new.busy_seconds, old.wait_seconds, new.wait_seconds)),
        )
    return table
