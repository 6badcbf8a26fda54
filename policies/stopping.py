"""Stopping policies: reasons to end a run other than its budget."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flowevolve.core.policies import Progress
from flowevolve.core.stop_reasons import NO_IMPROVEMENT, STOP_FILE, UNEVALUATED, UNPRODUCTIVE


@dataclass(frozen=True, slots=True)
class NoImprovement:
    """Stop when this many proposals in a row did not raise the best score."""

    proposals: int

    def reason(self, progress: Progress) -> str | None:
        return NO_IMPROVEMENT if progress.proposals_without_gain >= self.proposals else None


@dataclass(slots=True)
class Unevaluated:
    """Stop when nothing was evaluated or run during this many proposals: no reply can be read, or every call fails.

    A limit on evaluations or rollouts alone would never end such a run, which would go on paying for replies.
    """

    proposals: int
    _since: int = 0
    """How many proposals there were when something was last evaluated or run."""
    _ran: int = 0

    def reason(self, progress: Progress) -> str | None:
        ran = progress.spent.evaluations + progress.spent.rollouts
        if ran != self._ran:
            self._ran, self._since = ran, progress.spent.proposals
        return UNEVALUATED if progress.spent.proposals - self._since >= self.proposals else None


@dataclass(slots=True)
class Unproductive:
    """Stop when this many flows in a row have ended without a proposal or a commit.

    This happens when no minibatch leaves anything to improve, or every reflection is refused: flows are paid for, but a
    limit on proposals alone would never end the run.
    """

    flows: int
    _since: int = 0
    """How many changes there were when something was last proposed or committed."""
    _made: tuple[int, int] = (0, 0)

    def reason(self, progress: Progress) -> str | None:
        made = progress.spent.proposals, progress.pool_version
        if made != self._made:
            self._made, self._since = made, progress.changes
        # One more, because the flow that committed ends after its commit.
        return UNPRODUCTIVE if progress.changes - self._since > self.flows else None


@dataclass(frozen=True, slots=True)
class FileExists:
    """Stop once this file exists: a way to stop a run from outside (one ``stat`` per commit and finished flow)."""

    path: Path

    def reason(self, progress: Progress) -> str | None:
        return STOP_FILE if self.path.exists() else None
