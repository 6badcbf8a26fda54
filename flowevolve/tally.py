"""What a run counts for its report: a function of its event log, so that a resumed run goes on counting.

What init and finish do themselves is no stage's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import cast

from flowevolve.budget import Cost
from flowevolve.core.policies import PAST, Batch
from flowevolve.counts import RacingCounts, SpeculationCounts, StageCounts, StalenessCounts
from flowevolve.events import Event
from flowevolve.llm.types import JSON
from flowevolve.pool import DEFAULT_POOL
from flowevolve.stage import Graph

Change = Mapping[str, JSON]
_EARLY = "Released"
"""Payload of what is handed on ahead of an item's result, which counts when it comes."""


def accepts(change: Change) -> bool:
    """Whether a change, as an event has it, accepts something that was made in the run.

    What it started from is not, and a copy is no more of it. What else is evolved beside the artifacts, in a pool of
    its own, does not count.
    """
    return (
        change.get("status") == "confirmed"
        and change.get("operator") not in ("seed", "migrate")
        and change.get("pool", DEFAULT_POOL) == DEFAULT_POOL
    )


class Tally:
    """Facts for reports; nothing decides by them."""

    def __init__(self, graph: Graph) -> None:
        self.stages = {stage.name: StageCounts() for stage in graph.stages}
        self.staleness = StalenessCounts()
        self.speculation = SpeculationCounts()
        self.racing = RacingCounts()
        self.accepted = 0
        self.batches: dict[str, deque[Batch]] = {
            stage.name: deque(maxlen=PAST) for stage in graph.stages if stage.gather_by is not None
        }
        """What stages with a policy for that were handed together lately."""
        self.steps: deque[Batch] = deque(maxlen=PAST)
        """Lately, lockstep's."""
        self._gathered: dict[str, int] = {}
        """Sizes of batches that are worked on, by their first item."""
        self._repair = graph.repair
        self._unread: set[str] = set()
        """Items at the repair stage whose verdict could not be read: they go on as they were."""

    def take(self, event: Event) -> None:
        """An event sink."""
        counts = self.stages.get(str(event.data.get("stage")))
        match event.kind:
            case "item.taken":
                self._taken(event, counts)
            case "item.sent":
                self._sent(event.data)
            case "repair.unparsable":
                self._unread.add(str(event.data["item"]))
            case "items.gathered":
                items = cast("list[str]", event.data["items"])
                if str(event.data["stage"]) in self.batches:
                    self._gathered[items[0]] = len(items)
            case "item.done":
                self._done(event, counts)
            case "step.ended":
                self.steps.append(Batch(cast(int, event.data["flows"]), cast(float, event.data["seconds"])))
            case "rollouts.saved":
                self._saved(cast(int, event.data["rollouts"]), counts)
            case "pool.commit":
                if event.data["stage"] != "init":  # what a run starts from was not accepted by it
                    for change in cast("list[Change]", event.data["changes"]):
                        self.accepted += accepts(change)
                        self._committed(change)

    def _taken(self, event: Event, counts: StageCounts | None) -> None:
        gap, judged = cast(int, event.data["gap"]), event.data["judged"]
        if counts is not None:
            counts.items_in += 1
            counts.gaps += gap
        if judged is not None:
            self.staleness.seen += 1
            self.staleness.max_gap = max(self.staleness.max_gap, gap)
            self.staleness.discarded += judged == "discard"

    def _sent(self, data: Mapping[str, JSON]) -> None:
        source, parent = str(data["source"]), str(data["item"]).rpartition(".")[0]
        if source == self._repair:
            self.staleness.repaired += parent not in self._unread
            self._unread.discard(parent)
        to_repair = data["stage"] == self._repair
        if source in self.stages and not to_repair and data["payload"] != _EARLY:
            self.stages[source].items_out += 1

    def _done(self, event: Event, counts: StageCounts | None) -> None:
        if counts is None:
            return
        size = self._gathered.pop(str(event.data["item"]), 0)
        if size:
            self.batches[str(event.data["stage"])].append(Batch(size, cast(float, event.data["seconds"])))
        if event.data["outcome"] == "discarded":
            counts.discarded += 1
            counts.reasons[str(event.data["reason"])] += 1
        else:
            counts.consumed += 1
        counts.busy_seconds += cast(float, event.data["seconds"])
        cost = Cost.of(event.data["cost"])
        counts.rollouts += cost.rollouts
        counts.tokens += cost.tokens

    def _saved(self, rollouts: int, counts: StageCounts | None) -> None:
        self.racing.stopped += 1
        self.racing.rollouts_saved += rollouts
        if counts is not None and counts.rollouts:
            self.racing.tokens_saved += round(rollouts * counts.tokens / counts.rollouts)

    def _committed(self, change: Change) -> None:
        match change:
            case {"add": _, "status": "speculative"}:
                self.speculation.released += 1
            case {"move": _, "status": "confirmed"}:
                self.speculation.confirmed += 1
            case {"move": _, "status": "revoked"}:
                self.speculation.revoked += 1
            case _:
                pass
