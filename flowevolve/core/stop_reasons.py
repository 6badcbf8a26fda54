"""Why runs stop, and what follows from each reason."""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve.core.budget import DIMENSIONS


class StopReason(str):
    """Why a run stopped: one of the reasons below, the name of a limit that was reached, or a policy's own reason."""

    __slots__ = ()

    @property
    def leaves_work(self) -> bool:
        """Whether the run still has work to do, so that it can be resumed as it is."""
        return self in (INTERRUPTED, CANCELLED, STOPPED, FAILED, STOP_FILE)

    @property
    def is_of_budget(self) -> bool:
        """Whether the run reached a limit of its budget, other than the target score."""
        return self == TIME or self in DIMENSIONS

    @property
    def at_once(self) -> bool:
        """Whether somebody wants the run to end now, without a test on held-out examples."""
        return self in (INTERRUPTED, CANCELLED)

    @property
    def said(self) -> str:
        """The reason in words that fit after "stopped by". A time limit has no unit here: the user may give any."""
        return _SAID.get(self, str(self))

    @property
    def exit_code(self) -> int:
        """The exit code of the command that ran it; the code of a failure comes from its error instead."""
        return 130 if self == INTERRUPTED else 0


CANCELLED = StopReason("cancelled")
EXHAUSTED = StopReason("exhausted")
"""The algorithm has no more work."""
FAILED = StopReason("failed")
INTERRUPTED = StopReason("interrupted")
"""A signal ended the run."""
NO_IMPROVEMENT = StopReason("no_improvement")
"""So many proposals in a row did not raise the best score."""
STALLED = StopReason("stalled")
"""Nothing is under way, and nothing could start anything."""
STOPPED = StopReason("stopped")
STOP_FILE = StopReason("stop_file")
TIME = StopReason("seconds")
"""The budget's limit in time."""
TARGET_SCORE = StopReason("target_score")
UNEVALUATED = StopReason("unevaluated")
"""So many proposals were made while nothing was evaluated or run."""
UNPRODUCTIVE = StopReason("unproductive")
"""The run's flows no longer produce anything."""
_SAID: Mapping[str, str] = {
    **{name: f"the limit on {name}" for name in DIMENSIONS},
    CANCELLED: "a cancellation",
    EXHAUSTED: "the end of the algorithm's work",
    FAILED: "a failure",
    INTERRUPTED: "an interrupt",
    STALLED: "a standstill, in which no work was left that could have started more",
    STOPPED: "a call of stop",
    STOP_FILE: "the stop file",
    TARGET_SCORE: "the target score",
    TIME: "the time limit",
    UNPRODUCTIVE: "unproductive flows",
    NO_IMPROVEMENT: "proposals without improvement",
    UNEVALUATED: "proposals of which none was evaluated",
}
