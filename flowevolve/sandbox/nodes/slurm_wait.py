"""What a user is told about jobs that wait in the queue, which may take minutes or hours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flowevolve._util import clock
from flowevolve._util.logger import logger
from flowevolve.sandbox.evaluators import Tell

SILENT_SECONDS = 5.0
"""How long the number of running jobs has to stay the same before it is reported."""
AGAIN_SECONDS = 600.0
"""How long until it is reported again that no job is running."""
MOST_NAMED = 5
"""At most this many of the awaited jobs are named."""


class Wait:
    """Reports how many jobs are running whenever that has changed, and now and then while none is."""

    def __init__(self, nodes: int, tell: Tell) -> None:
        """``nodes`` is how many jobs there should be."""
        self._tell = tell
        self._at_work: int | None = None
        """How many jobs were running at the last look."""
        self._since = 0.0
        """Since when that number has not changed."""
        self._told = nodes
        """The number that was reported last. If all jobs begin at once, there is nothing to report."""
        self._told_at = 0.0
        self._run_has_begun = False

    def look(self, jobs: Sequence[str], at_work: int, logs: Path) -> None:
        """Report on these ``jobs``, queued or running, if a report is due."""
        self._run_has_begun |= at_work > 0
        now = clock.now()
        if at_work != self._at_work:
            self._at_work, self._since = at_work, now
        waited = now - self._since
        if at_work == self._told:
            due = at_work == 0 and now - self._told_at >= AGAIN_SECONDS
        else:
            due = waited >= SILENT_SECONDS or self._told == 0
        if not due:
            return
        self._told, self._told_at = at_work, now
        if at_work:
            others = "" if at_work >= len(jobs) else "; the others join as they begin"
            self._tell(f"Slurm: jobs at work: {at_work} of {len(jobs)}{others}")
            return
        names = ", ".join([*jobs[:MOST_NAMED], *(["…"] if len(jobs) > MOST_NAMED else [])])
        most = (
            "" if self._run_has_begun else "; the run waits for the first as long as it takes, and Ctrl-C cancels them"
        )
        self._tell(f"Slurm: jobs at work: none of {len(jobs)} for {_said(waited)} ({names}; logs in {logs}){most}")
        logger().warning("evaluators.slurm_jobs_are_queued", jobs=list(jobs), seconds=round(waited), logs=str(logs))


def _said(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
