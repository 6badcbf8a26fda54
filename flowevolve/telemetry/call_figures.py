"""What the LLM calls of a run add up to, for those who watch it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from flowevolve.core.calls import CallRecord
from flowevolve.llm.scheduling.scheduler import SchedulerStats
from flowevolve.telemetry.cut_replies import CutReplies

RECENT_SECONDS = 30.0
"""The time before the last finished call over which the requests in flight are averaged."""
SILENT_SECONDS = 20.0
"""So long a time without an answer is told."""


@dataclass(slots=True)
class CallFigures:
    """What the calls that have finished add up to."""

    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: CutReplies = field(default_factory=CutReplies)
    _recent: deque[tuple[float, float]] = field(default_factory=deque)
    """When the calls of the last while were sent and had their answers."""
    _under_way: int | None = None
    """As of the last `tick`; None before the first."""
    _silent_since: float | None = None
    """Since when answers are awaited and none has come, as far as `tick` was told; None if none is awaited."""

    def take(self, record: CallRecord) -> None:
        if record.reply is not None:
            self._silent_since = None
        self.cut.call(record)
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

    def tick(self, seconds: float, requests: SchedulerStats) -> None:
        """The requests that are under way at this time of the run."""
        self._under_way = requests.in_flight
        if not requests.in_flight and not requests.waiting:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = seconds

    def silence(self, seconds: float) -> str:
        """Words on how long no answer has come by this time; empty if that is not long, or none is awaited."""
        if self._silent_since is None or seconds - self._silent_since < SILENT_SECONDS:
            return ""
        under_way = f" ({self._under_way} requests under way)" if self._under_way else ""
        return f"no answer for {seconds - self._silent_since:.0f} s{under_way}"

    def in_flight(self) -> float:
        """How many requests are in flight; where no `tick` has told, how many there were at a time lately, on average,
        as far as they have finished.
        """
        if self._under_way is not None:
            return self._under_way
        if not self._recent:
            return 0.0
        end = self._recent[-1][1]
        begin = max(end - RECENT_SECONDS, min(started for started, _ in self._recent))
        busy = sum(finished - max(started, begin) for started, finished in self._recent)
        return busy / (end - begin) if end > begin else 0.0
