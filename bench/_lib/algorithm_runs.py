"""Runs any algorithm until its tokens are spent, and keeps what it had found by then and how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import anyio

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.config.run import Config, parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.engine.engine import Engine
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run

Mode = Literal["stream", "sync"]
MODES: tuple[Mode, ...] = ("sync", "stream")
Settings = Mapping[str, object]
ROW = ("problem", "algorithm", "mode", "best", "tokens", "evaluations", "seconds", "seed", "failures")
"""The fields of a run that are written into a result file."""


class NothingScoredError(InputError):
    """A run had no candidate with a score by its end."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run to perform. ``settings`` is its configuration without the seed."""

    problem: str
    algorithm: str
    mode: Mode
    seed: int
    settings: Settings


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of a job. Seconds are those of the run's clock."""

    problem: str
    algorithm: str
    mode: Mode
    seed: int
    seed_score: float | None
    """The score of the seed that evolution began from; None if the algorithm has none."""
    best: float
    tokens: int
    evaluations: int
    failures: int
    """Programs and harnesses that failed, and replies that could not be read."""
    seconds: float
    entries: Mapping[str, int]
    """For each kind of event, how many entries of the global memory its events named in total."""

    def row(self) -> dict[str, object]:
        """The run as a row of the result file."""
        return {name: getattr(self, name) for name in ROW}

    def over_seed(self) -> Run:
        """The same run with scores as multiples of the seed's score, which was measured in that run."""
        assert self.seed_score is not None, "what is measured has a seed program"
        return replace(self, best=self.best / self.seed_score, seed_score=1.0)

    def line(self) -> str:
        return (
            f"{self.problem}, {self.algorithm}, {self.mode}, seed {self.seed}: best {self.best:.6g}, "
            f"{self.tokens} tokens, {self.evaluations} evaluations, {self.failures} failures, {self.seconds:.0f} s"
        )


def _rejected(commit: Event) -> Iterator[str]:
    """The ids of candidates that entered the pool as failures."""
    for change in cast("list[dict[str, JSON]]", commit.data["changes"]):
        if "add" in change and change["status"] == "rejected":
            yield str(change["add"])


@dataclass
class _Watch:
    """Listens to a run, and ends it when its tokens are spent."""

    limit: int | None
    spent: int = 0
    failed: set[str] = field(default_factory=set)
    unread: int = 0
    entries: dict[str, int] = field(default_factory=dict)
    met: anyio.Event = field(default_factory=anyio.Event)

    def event(self, event: Event) -> None:
        match event.kind:
            case "reply.unparsable":
                self.unread += 1
            case "candidate.assessed" if event.data["failure"] is not None:
                self.failed.add(str(event.data["candidate"]))
            case "pool.commit":
                self.failed.update(_rejected(event))
            case "memory.recalled" | "memory.distilled":
                named = len(cast("list[JSON]", event.data["entries"]))
                self.entries[event.kind] = self.entries.get(event.kind, 0) + named

    def call(self, record: CallRecord) -> None:
        if record.reply is None:
            return
        self.spent += record.reply.usage.total_tokens
        if self.limit is not None and self.spent >= self.limit:
            self.met.set()

    async def follow(self, engine: Engine) -> None:
        """Cancel the run once its tokens are spent. Work still under way is dropped, as it would spend more."""
        await self.met.wait()
        engine.cancel("tokens spent")

    def made(self, job: Job, result: Result) -> Run:
        report = result.report
        if result.best is None:
            spent = result.llm.usage.total_tokens
            raise NothingScoredError(
                f"{job.problem}, {job.algorithm}, {job.mode}: nothing was scored in {spent} tokens"
            )
        return Run(
            problem=job.problem,
            algorithm=job.algorithm,
            mode=job.mode,
            seed=job.seed,
            seed_score=result.seed_score,
            best=result.best.score,
            tokens=result.llm.usage.total_tokens,
            evaluations=report.spent.evaluations,
            failures=len(self.failed) + self.unread,
            seconds=report.wall_seconds,
            entries=dict(self.entries),
        )


def configure(job: Job) -> Config:
    return parse_config({**job.settings, "seed": job.seed}, "bench")


def perform(job: Job) -> Run:
    """Run a job in this process.

    Raises:
        NothingScoredError: if the run ended before anything was scored.
    """
    config = configure(job)

    async def main() -> Run:
        watch = _Watch(config.budget.tokens)
        watchers = Watchers(events=(watch.event,), calls=(watch.call,))
        return watch.made(job, await run(config, watchers=watchers, side_task=watch.follow))

    return clock.run(main, clock=config.clock)


def perform_all(jobs: Sequence[Job], processes: int) -> Iterator[Run]:
    """Run jobs in other processes, and yield their runs in the order of the jobs."""
    with ProcessPoolExecutor(processes) as pool:
        for made in pool.map(perform, jobs):
            print(made.line(), flush=True)
            yield made
