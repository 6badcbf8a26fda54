"""Figures of a run's LLM calls, for those who watch it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from flowevolve._util.words import counted
from flowevolve.core.calls import CallRecord
from flowevolve.llm.scheduling.held_back import HeldBack
from flowevolve.llm.scheduling.scheduler import SchedulerStats
from flowevolve.telemetry.role_replies import RoleReplyCounter

RECENT_SECONDS = 30.0
"""The time before the last finished call over which the requests in flight are averaged."""
SILENT_SECONDS = 20.0
"""After this many seconds without an answer, the progress display says so."""


@dataclass(slots=True)
class CallFigures:
    """Figures of the calls that have finished, and of the requests that are under way."""

    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    replies: RoleReplyCounter = field(default_factory=RoleReplyCounter)
    """The replies since the run began or was resumed."""
    held: HeldBack = field(default_factory=HeldBack)
    """What held requests back at the last `tick`."""
    _recent: deque[tuple[float, float]] = field(default_factory=deque)
    """When the calls that finished in the last `RECENT_SECONDS` were sent and answered."""
    _under_way: int | None = None
    """The number of requests in flight at the last `tick`; None before the first."""
    _silent_since: float | None = None
    """Since when requests have been waiting for answers and none has come, as far as `tick` knows; None if none wait.
    """

    def take(self, record: CallRecord) -> None:
        self.replies.call(record)
        if record.cached:
            return
        if record.reply is not None:
            self._silent_since = None
        usage = record.failed_usage if record.reply is None else record.reply.usage
        self.requests += 1
        self.failed += record.error is not None
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self._recent.append((record.started, record.finished))
        while self._recent[0][1] < record.finished - RECENT_SECONDS:
            self._recent.popleft()

    def tick(self, seconds: float, requests: SchedulerStats) -> None:
        """Note how many requests are under way at this time of the run."""
        self._under_way = requests.in_flight
        if not requests.in_flight and not requests.waiting:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = seconds

    def silence(self, seconds: float) -> str:
        """How long no answer has come by this time, in words; empty if that is not long, or if no answer is awaited."""
        if self._silent_since is None or seconds - self._silent_since < SILENT_SECONDS:
            return ""
        under_way = f" ({counted(self._under_way, 'request')} under way)" if self._under_way else ""
        return f"no answer for {seconds - self._silent_since:.0f} s{under_way}"

    def held_back(self) -> str:
        """What holds requests back, in words; empty if nothing does."""
        held, said = self.held, list[str]()
        if held.by_limits:
            refused = f" (the server has refused {held.refusals:,} so far)" if held.refusals else ""
            said.append(f"{counted(held.by_limits, 'request')} held back by rate limits{refused}")
        if held.after_errors:
            waiting = counted(held.after_errors, "request")
            said.append(f"{waiting} waiting to be sent again after errors of the server ({held.errors:,} so far)")
        return ", ".join(said)

    def in_flight(self) -> float:
        """How many requests are in flight. Before the first `tick`, this is the average number in flight over the last
        `RECENT_SECONDS`, as far as these requests have finished.
        """
        if self._under_way is not None:
            return self._under_way
        if not self._recent:
            return 0.0
        end = self._recent[-1][1]
        begin = max(end - RECENT_SECONDS, min(started for started, _ in self._recent))
        busy = sum(finished - max(started, begin) for started, finished in self._recent)
        return busy / (end - begin) if end > begin else 0.0
