"""An overview of the run in a directory, whether it has ended, is going on or was cut off. Nothing is written.

For a run that has ended it comes from the result, otherwise from the journal.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flowevolve._util.errors import InputError
from flowevolve._util.intervals import Interval, mean_interval
from flowevolve.config.backends import SIMULATED_BACKENDS
from flowevolve.config.prices import known_prices
from flowevolve.config.run import Config, parse_recorded
from flowevolve.core.acts import RaiseBudget
from flowevolve.core.budget import Cost
from flowevolve.core.event_kinds import RunResumed, RunSteered
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.core.stop_reasons import StopReason
from flowevolve.journal.export import candidate_rows
from flowevolve.journal.files import looking
from flowevolve.journal.lock import is_held
from flowevolve.journal.opening import JOURNAL, WAL
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RESULT, RESUMED_BY_SCRIPT, State, find_state, read_result
from flowevolve.llm.client.accounting import Account, Totals
from flowevolve.runner.result_parts import read_interval, read_totals, read_trust, trust_to_json
from flowevolve.telemetry.failed_rollouts import FailedRollouts, FailureCounter
from flowevolve.telemetry.role_replies import (
    CutCount,
    EmptyCount,
    many_poor,
    poor_to_json,
    read_cut,
    read_empty,
    roles_cut,
    roles_empty,
)
from flowevolve.telemetry.run_figures import ProgressFigures, used


@dataclass(frozen=True, slots=True)
class Overview:
    """A run at a glance."""

    path: Path
    state: State
    config: Config
    task: str
    stop_reason: str | None
    """Why it ended, as ``result.json`` has it; None if it has not."""
    error: str | None
    wall_seconds: float
    """How long it has taken, by its own clock; for a run that is going on in real time, until now."""
    seed_score: float | None
    best_id: str | None
    best_score: float | None
    interval: Interval | None
    """The interval of the best score; None if the run has not ended: then use `find_best`."""
    proposals: int
    accepted: int
    rollouts: int
    pool_version: int
    llm: Totals
    score_trust: ScoreTrust | None
    """Whether programs could forge their scores; None for tasks without programs, and for older runs."""
    given: frozenset[str]
    """The names of the parts that it was given as objects."""
    pause: str
    """How long a run that is going on has been paused, in words; empty if it is not paused."""
    silent_seconds: float
    """How long a run that is going on in real time has written nothing; 0 for any other run."""
    cut_replies: Mapping[str, CutCount]
    """How many replies the token limit cut off, by role."""
    empty_replies: Mapping[str, EmptyCount]
    """How many replies had no text, by role."""
    failed_rollouts: FailedRollouts

    @property
    def tokens(self) -> int:
        return self.llm.usage.total_tokens

    @property
    def used(self) -> str:
        """How much of its budget is used, in words."""
        spent = Cost(self.rollouts, self.proposals, self.tokens, self.llm.dollars or 0.0)
        return used(self.config.budget, self.wall_seconds, spent, _COUNTED)

    @property
    def failed_by(self) -> str:
        """The error by which it has failed, in a line; empty if it has not failed."""
        return "" if self.error is None else f"it failed: {' '.join(self.error.split())}"

    @property
    def how_many_failed(self) -> str:
        """How many rollouts failed, in words; empty if none did."""
        return self.failed_rollouts.said(self.rollouts)

    @property
    def lull(self) -> str:
        """Why nothing seems to happen in a run that is going on, in words; empty unless it is paused or long silent."""
        if self.pause or self.silent_seconds < _LONG_SILENCE:
            return self.pause
        return f"nothing new for {self.silent_seconds:.0f} s"

    @property
    def poor_replies(self) -> list[str]:
        """For each role of which many replies were cut off or empty, a line about that."""
        return many_poor(self.cut_replies, self.empty_replies)

    @property
    def hint(self) -> str:
        """How to go on with the run; empty if it is finished or is going on."""
        if self.state in ("finished", "running"):
            return ""
        return RESUMED_BY_SCRIPT if self.given else f"flowevolve resume {self.path}"

    def to_json(self, interval: Interval | None = None) -> dict[str, object]:
        """What ``status --json``, ``compare --json`` and, for an unfinished run, ``report --json`` print. ``interval``
        is that of the best score, if it is not known from a result.
        """
        config, bounds = self.config, self.interval or interval
        return {
            "directory": str(self.path),
            "state": self.state,
            "algorithm": config.algorithm.name,
            "mode": config.algorithm.mode,
            "task": self.task,
            "backend": config.llm.backend,
            "simulated": config.llm.backend in SIMULATED_BACKENDS and self.llm.any_calls,
            "stop_reason": self.stop_reason,
            "error": self.error,
            "wall_seconds": round(self.wall_seconds, 3),
            "silent_seconds": round(self.silent_seconds, 3),
            "paused": self.pause or None,
            "seed_score": self.seed_score,
            "best": None
            if self.best_id is None
            else {"id": self.best_id, "score": self.best_score, "interval": bounds and list(bounds)},
            "pool_version": self.pool_version,
            "proposals": self.proposals,
            "accepted": self.accepted,
            "rollouts": self.rollouts,
            "llm": {
                "requests": self.llm.requests,
                "failed": self.llm.failed,
                "prompt_tokens": self.llm.usage.prompt_tokens,
                "completion_tokens": self.llm.usage.completion_tokens,
                "cost_usd": self.llm.dollars,
            },
            **poor_to_json(self.cut_replies, self.empty_replies),
            "failed_rollouts": asdict(self.failed_rollouts),
            "budget_used": self.used,
            **trust_to_json(self.score_trust),
        }


_LONG_SILENCE = 60.0
"""A run that has written nothing for this many seconds is said to be silent."""
_COUNTED = ("rollouts", "proposals", "tokens", "dollars")


@dataclass(frozen=True, slots=True)
class BestFound:
    """The best candidate of a run so far: its texts, and the 95 % interval of its score."""

    interval: Interval | None
    components: Mapping[str, str]


def read_overview(path: Path) -> Overview:
    """Raises: InputError if it is no run directory, or what it holds can't be read."""
    with RecordedRun(path) as recorded:
        config = with_raised_limits(parse_recorded(recorded.config, f"{path}/config.toml"), recorded)
        if (path / RESULT).is_file():
            return _ended(path, config, read_result(path), recorded.given or frozenset())
        if not is_held(path):
            recorded.check()
        return _from_journal(path, config, recorded)


def with_raised_limits(config: Config, recorded: RecordedRun) -> Config:
    """The configuration of a run, with the budget limits that users have raised since it began."""
    budget = config.budget
    for steered in recorded.events_of(RunSteered):
        if isinstance(steered.act, RaiseBudget) and steered.refused is None:
            budget = budget.raised(steered.act.by_name())
    return config.model_copy(update={"budget": budget})


def find_best(overview: Overview) -> BestFound | None:
    """The best candidate of a run; None if there is none yet."""
    with RecordedRun(overview.path) as recorded:
        for row in candidate_rows(recorded):
            if row["id"] == overview.best_id:
                scores = list(row["scores"].values())
                return BestFound(mean_interval(scores) if scores else None, row["components"])
    return None


def run_directories(folder: Path) -> list[Path]:
    """The run directories in a folder, by name.

    Raises:
        InputError: if there is no such folder, or it can't be read.
    """
    with looking(folder):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; name the one that the run directories are in")
        return sorted(path.parent for path in folder.glob(f"*/{JOURNAL}"))


def _ended(path: Path, config: Config, result: Mapping[str, Any], given: frozenset[str]) -> Overview:
    reason, best, llm = StopReason(result["stop_reason"]), result["best"] or {}, result["llm"]
    return Overview(
        path,
        find_state(path, reason),
        config,
        result["task"],
        reason,
        result["error"],
        result["wall_seconds"],
        result["seed_score"],
        best.get("id"),
        best.get("score"),
        read_interval(best.get("interval")),
        result["proposals"],
        result["accepted"],
        result["rollouts"],
        result["pool_version"],
        read_totals(llm),
        read_trust(result),
        given,
        "",
        0.0,
        read_cut(llm.get("cut_replies")),
        read_empty(llm.get("empty_replies")),
        FailedRollouts.read(result.get("failed_rollouts")),
    )


def _from_journal(path: Path, config: Config, recorded: RecordedRun) -> Overview:
    figures, failures = ProgressFigures(), FailureCounter()
    for event in recorded.events():
        if isinstance(event.body, RunResumed):  # what came before it has been counted already
            figures.end_pause()
        else:
            figures.take(event)
        failures.event(event)
    account = Account(known_prices(config))
    account.restore(recorded.totals())
    silent_seconds, replies = _silent_seconds(path, config), recorded.replies_by_role()
    figures.seconds = recorded.seconds() + silent_seconds
    return Overview(
        path,
        find_state(path, None),
        config,
        _task(recorded, config),
        None,
        None,
        figures.seconds,
        figures.seed_score,
        figures.best,
        figures.best_score,
        None,
        figures.spent.proposals,
        figures.accepted,
        figures.spent.rollouts,
        figures.version,
        account.totals(),
        None if recorded.start is None else ScoreTrust.of(recorded.start.score_trust, recorded.start.shared_because),
        recorded.given or frozenset(),
        figures.pause() if is_held(path) else "",
        silent_seconds,
        roles_cut(replies),
        roles_empty(replies),
        failures.found,
    )


def _silent_seconds(path: Path, config: Config) -> float:
    """How long a run that is going on in real time has written nothing; approximate, as it compares times of day."""
    if config.clock == "virtual" or not is_held(path):
        return 0.0
    written = [file.stat().st_mtime for file in (path / JOURNAL, path / WAL) if file.is_file()]
    return max(0.0, time.time() - max(written))  # noqa: TID251 - compared with times of files


def _task(recorded: RecordedRun, config: Config) -> str:
    """The task's own name, which may not be in the configuration."""
    return (recorded.start and recorded.start.task) or config.task.name
