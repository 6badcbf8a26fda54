"""A run with one seed in one world, in lockstep or as a stream, and what is kept of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean
from typing import NamedTuple

import anyio

from bench._lib.house_style import expected, make_rows
from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord
from flowevolve.core.event_kinds import RolloutsSaved
from flowevolve.core.events import Event
from flowevolve.core.task import Task
from flowevolve.engine.engine import Engine
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.sim.worlds.rules.world import PRESETS, RulesWorld
from flowevolve.tasks.house_style import house_style_task

PROFILE = "qwen3-8b-h100"
PRECISION = 0.002
"""Held-out scores that differ by no more than this can't be told apart: they are estimated to about half of it."""
ROWS = 300
"""Rows of the data set, drawn anew for each seed: 120 for minibatches, 90 for validation, 90 held out."""
SYNC: Mapping[str, object] = {
    "algorithm": {"name": "gepa", "mode": "sync", "width": 1},
    "staleness": {"policy": "full"},
}
"""The published loop: one proposal at a time, validation side by side."""


@dataclass(frozen=True, slots=True)
class World:
    """What a model does with prompts, and what rows ask for."""

    about: str
    preset: str = "normal"
    overlap: float = 0.2
    """How concentrated the rules are that rows need. The higher, the more edits made side by side say the same."""
    concurrency: int = 256
    """The most requests in flight, in both modes; the server works on 256 at a time."""
    rules: int = 18
    """How many rules the rows ask for; with few of them a prompt is soon as good as it can be."""


SHIPPED_WORLDS: Mapping[str, World] = {
    "easy": World("almost every proposal helps", preset="easy"),
    "normal": World("edits are noisy and sometimes wrong"),
    "noisy": World("most edits fit one example only, duplicates, lost lines", preset="noisy"),
    "adversarial": World("most proposals do harm, the judge errs often", preset="adversarial"),
    "overlapping": World("few rules matter: edits made side by side say the same", overlap=0.8),
    "conflicting": World("edits contradict what is stated already", preset="conflicting"),
    "misjudged": World("the judge of stale edits is worse than chance", preset="misjudged"),
    "narrow": World("four requests at a time: the server has no room for a stream", concurrency=4),
}
HARSH_WORLDS: Mapping[str, World] = {
    "lossy": World("merges lose 20 % of the edits, garble 10 % and keep half of the noise", preset="lossy"),
    "interfering": World("rules get in each other's way", preset="interfering"),
    "harmful": World("lines that help nobody do harm", preset="harmful"),
    "lengthy": World("length hurts", preset="lengthy"),
    "reworded": World("reflections word everything anew, and not as the feedback does", preset="reworded"),
    "fickle": World("scores vary much between repeats", preset="fickle"),
    "saturated": World("six rules are all there is to find", rules=6),
    "harsh": World(
        "merges that lose, interference, harmful noise, length that hurts, new words, noisy scores", "harsh"
    ),
}
"""Worlds that are hard for methods that merge edits before they are validated. They were fixed before any settings of
such methods were tuned.
"""
WORLDS: Mapping[str, World] = {**SHIPPED_WORLDS, **HARSH_WORLDS}


@dataclass(frozen=True, slots=True)
class Goals:
    """What a stream has to reach before it may stop, long before its time is up."""

    score: float
    held_out: float
    """The score on held-out rows that its best candidate has to have."""
    tokens: int
    seconds: float
    given_up: float
    """Seconds after which the run no longer waits for the scores."""


class Gain(NamedTuple):
    """A new best candidate, or a new score of it: the time, its validation score and id, and its expected score on
    held-out rows.
    """

    time: float
    score: float
    candidate: str
    held_out: float


@dataclass(frozen=True, slots=True)
class Trace:
    """What is kept of a run. Times are in seconds of the virtual clock."""

    result: Result
    gains: tuple[Gain, ...]
    calls: tuple[tuple[float, int], ...]
    """For each request: when it was sent, and the tokens of all requests sent up to then, prompts included. Cancelled
    requests are charged as if they had been answered.
    """

    @property
    def final(self) -> float:
        return self.gains[-1].score

    @property
    def final_held_out(self) -> float:
        return self.gains[-1].held_out

    def time_to(self, score: float) -> float | None:
        return next((gain.time for gain in self.gains if gain.score >= score), None)

    def time_to_held_out(self, score: float) -> float | None:
        """When the best candidate by validation first scored this much on held-out rows, within `PRECISION`."""
        return next((gain.time for gain in self.gains if gain.held_out >= score - PRECISION), None)

    def best_at(self, seconds: float) -> Gain:
        """The best candidate at this time; before the seed is validated, the seed."""
        place = bisect_right(self.gains, seconds, key=lambda gain: gain.time)
        return self.gains[max(0, place - 1)]

    def tokens_at(self, seconds: float) -> int:
        place = bisect_right(self.calls, seconds, key=lambda call: call[0])
        return self.calls[place - 1][1] if place else 0

    def time_of(self, tokens: int) -> float:
        """When this many tokens had been asked for; the end of the run if they never were."""
        place = bisect_right(self.calls, tokens, key=lambda call: call[1])
        return self.calls[place][0] if place < len(self.calls) else self.result.report.wall_seconds


@dataclass
class _Watch:
    """Listens to a run, and stops it once its goals are reached."""

    goals: Goals | None
    worth: Callable[[Artifact], float]
    """The score of a candidate on held-out rows."""
    engine: Engine | None = None
    gains: list[Gain] = field(default_factory=list)
    calls: list[tuple[float, int]] = field(default_factory=list)
    stops: list[tuple[float, int]] = field(default_factory=list)
    """For each evaluation that was stopped: when, and how many rollouts it left unfinished."""
    task_tokens: list[int] = field(default_factory=list)
    """The tokens of each answered call of the task."""
    tokens: int = 0
    met: anyio.Event = field(default_factory=anyio.Event)

    def event(self, event: Event) -> None:
        if isinstance(event.body, RolloutsSaved):
            self.stops.append((event.time, event.body.rollouts))
        score, name = event.data.get("best_score"), event.data.get("best")
        if event.kind != "pool.commit" or not isinstance(score, int | float) or not isinstance(name, str):
            return
        last = self.gains[-1] if self.gains else None
        if self.engine is not None and (last is None or (score, name) != (last.score, last.candidate)):
            worth = last.held_out if last and last.candidate == name else self.worth(self.engine.pool[name].artifact)
            self.gains.append(Gain(event.time, float(score), name, worth))

    def call(self, record: CallRecord) -> None:
        if record.reply is None:
            return
        spent = record.reply.usage.total_tokens
        self.tokens += spent
        self.calls.append((record.started, spent))
        if record.role == "task":
            self.task_tokens.append(spent)
        if self.goals is not None and self._reached(self.goals, record.finished):
            self.met.set()

    def _reached(self, goals: Goals, now: float) -> bool:
        enough = self.tokens >= goals.tokens and now >= goals.seconds
        reached = any(gain.score >= goals.score for gain in self.gains)
        worth = any(gain.held_out >= goals.held_out - PRECISION for gain in self.gains)
        return enough and (now >= goals.given_up or (reached and worth))

    async def follow(self, engine: Engine) -> None:
        self.engine = engine
        await self.met.wait()
        engine.stop("goals reached")

    def _cancelled(self, requests: int) -> Iterator[tuple[float, int]]:
        """What cancelled requests are charged: as much as the answered ones took, on average, because nobody knows how
        much the server had written of each. They are counted at the evaluations that were stopped, by how many rollouts
        each left unfinished.
        """
        left = sum(rollouts for _, rollouts in self.stops)
        for time, rollouts in self.stops:
            yield time, round(fmean(self.task_tokens) * requests * rollouts / left)

    def trace(self, result: Result) -> Trace:
        total, sums = 0, []
        for started, spent in sorted([*self.calls, *self._cancelled(result.cancelled)]):
            total += spent
            sums.append((started, total))
        return Trace(result, tuple(self.gains), tuple(sums))


def configure(world: World, settings: Mapping[str, object], seed: int, minutes: float) -> Config:
    return parse_config(
        {
            **settings,
            "seed": seed,
            "clock": "virtual",
            "sim": {"profile": PROFILE, "preset": world.preset},
            "llm": {"concurrency": world.concurrency},
            "budget": {"minutes": minutes},
        },
        "quality",
    )


@cache
def task(overlap: float, seed: int, rules: int = 18) -> Task:
    return house_style_task(make_rows(rules=rules, per_example=4, overlap=overlap, rows=ROWS, seed=seed))


def evolve(
    world: World, settings: Mapping[str, object], seed: int, minutes: float, goals: Goals | None = None
) -> Trace:
    config = configure(world, settings, seed, minutes)

    async def main() -> Trace:
        watch = _Watch(goals, lambda artifact: held_out(world, "\n".join(artifact.values()), seed))
        watchers = Watchers(events=(watch.event,), calls=(watch.call,))
        return watch.trace(
            await run(config, task=task(world.overlap, seed, world.rules), watchers=watchers, side_task=watch.follow)
        )

    return clock.run(main, clock="virtual")


def held_out(world: World, prompt: str, seed: int) -> float:
    """The expected score of a prompt on held-out rows, which no selection has seen.

    It is not the mean over some replies, because near the ceiling chance would decide between prompts that say the
    same.
    """
    rows = [example.data for example in task(world.overlap, seed, world.rules).data.test]
    return expected(RulesWorld(PRESETS[world.preset]), prompt, rows)
