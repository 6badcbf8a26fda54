"""One measured run on the virtual clock, as the ablations need it: what was set, and what came of it."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache

import anyio

from flowevolve import clock
from flowevolve.config import Config, parse_config
from flowevolve.events import Event
from flowevolve.llm.calls import CallRecord
from flowevolve.llm.types import ChatReply, ChatRequest
from flowevolve.result import Result
from flowevolve.run import Watchers, run
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.service import make_service
from flowevolve.tasks.base import Task
from flowevolve.tasks.house_style import house_style_task, make_rows

MINUTES = 30.0
"""Of virtual time; the paper's ablations ran for as long."""
PRESET = "noisy"
"""Of the world ``rules``: a world that is not solved within the time, so that there is something left to accept."""


@dataclass(frozen=True)
class Setting:
    """One run. ``proposing`` and ``evaluating`` are workers: the paper's K1 (generate, propose, screen) and K3."""

    seed: int = 0
    profile: str = "qwen3-8b-h100"
    mode: str = "stream"
    flows: int = 64
    proposing: int = 16
    evaluating: int = 8
    staleness: str = "reflective"
    allocation: Mapping[str, object] = field(default_factory=lambda: {"policy": "fixed"})
    speculation: Mapping[str, object] = field(default_factory=dict)
    racing: Mapping[str, object] = field(default_factory=lambda: {"policy": "off"})
    validation: str | None = None
    order: str = "later_first"
    admission: Mapping[str, object] = field(default_factory=lambda: {"policy": "fixed"})
    concurrency: int = 256
    rows: int = 300
    """Of the data set: 40 % for minibatches, 30 % for validation, 30 % held out."""
    easy_first: bool = False
    """Whether the validation set begins with the rows that every candidate soon passes."""

    def config(self) -> Config:
        workers = dict.fromkeys(("generate", "propose", "screen"), self.proposing) | {"evaluate": self.evaluating}
        algorithm: dict[str, object] = {"name": "gepa", "mode": self.mode, "max_in_flight": self.flows}
        if self.validation is not None:
            algorithm["validation"] = self.validation
        return parse_config(
            {
                "seed": self.seed,
                "clock": "virtual",
                "held_out": True,
                "algorithm": algorithm,
                "stages": {name: {"workers": count} for name, count in workers.items()},
                "sim": {"profile": self.profile, "preset": PRESET},
                "llm": {"concurrency": self.concurrency},
                "staleness": {"policy": self.staleness},
                "allocation": dict(self.allocation),
                "speculation": dict(self.speculation),
                "racing": dict(self.racing),
                "scheduler": {"order": {"policy": self.order}, "admission": dict(self.admission)},
                "budget": {"minutes": MINUTES},
            },
            "ablations",
        )


@dataclass(frozen=True)
class Measured:
    """Rates are per minute. ``curve`` is the best validation score over time, as (seconds, score)."""

    setting: Setting
    proposals: float
    validations: float
    """Candidates whose validation ended with a verdict, be it on a part of the examples."""
    accepted: float
    score: float
    """Of the best candidate, on the test split."""
    tokens: int
    """Written by the model."""
    improvements: int
    """Pool updates that raised the best score."""
    mean_gap: float
    """At the update stage."""
    max_gap: int
    """Over all stages."""
    in_flight: float
    released: int
    revoked: int
    tokens_saved: int
    waiting_share: float | None
    """The server's own queue over its batch, where the admission policy looked."""
    curve: tuple[tuple[float, float], ...]

    def at(self, seconds: float) -> float:
        """The best validation score at a time."""
        return max((score for when, score in self.curve if when <= seconds), default=0.0)


@dataclass
class Watch:
    """What is kept of a run while it goes on."""

    verdicts: int = 0
    """Evaluations that ended with one; those that went stale, failed or were under way at the end did not."""
    curve: list[tuple[float, float]] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    keep_calls: bool = False

    def event(self, event: Event) -> None:
        if event.kind == "item.done" and event.data["stage"] == "evaluate":
            finished = (event.data["outcome"], event.data["reason"]) == ("consumed", "")
            self.verdicts += finished or str(event.data["reason"]).startswith("stopped: ")
        score = event.data.get("best_score")
        if event.kind != "pool.commit" or not isinstance(score, int | float):
            return
        if not self.curve or score > self.curve[-1][1]:
            self.curve.append((event.time, float(score)))

    def call(self, record: CallRecord) -> None:
        if self.keep_calls:
            self.calls.append(record)


@cache
def task(size: int, easy_first: bool) -> Task:
    rows = make_rows(rules=18, per_example=4, overlap=0.25, rows=size, seed=11)
    if easy_first:
        wanted = Counter(name for row in rows for name in _rules(row))
        rows.sort(key=lambda row: (str(row["split"]), -min(wanted[name] for name in _rules(row))))
        rows.sort(key=lambda row: ("train", "val", "test").index(str(row["split"])))
    return house_style_task(rows)


def _rules(row: Mapping[str, object]) -> list[str]:
    names, settings = row["instruction_id_list"], row["kwargs"]
    assert isinstance(names, list)
    assert isinstance(settings, list)
    return [f"{name} {given}" for name, given in zip(names, settings, strict=True)]


def execute(setting: Setting, watch: Watch) -> Result:
    async def go() -> Result:
        watchers = Watchers(events=(watch.event,), calls=(watch.call,))
        return await run(setting.config(), task=task(setting.rows, setting.easy_first), watchers=watchers)

    return clock.run(go, clock="virtual")


def measure(setting: Setting) -> Measured:
    watch = Watch()
    result = execute(setting, watch)
    report, server = result.report, result.server
    update = report.stages["update"].counts
    return Measured(
        setting=setting,
        proposals=report.spent.proposals / MINUTES,
        validations=watch.verdicts / MINUTES,
        accepted=report.accepted / MINUTES,
        score=0.0 if result.held_out is None else result.held_out.best_score,
        tokens=result.llm.usage.completion_tokens,
        improvements=max(0, len(watch.curve) - 1),
        mean_gap=update.gaps / max(1, update.items_in),
        max_gap=report.staleness.max_gap,
        in_flight=result.mean_in_flight,
        released=report.speculation.released,
        revoked=report.speculation.revoked,
        tokens_saved=report.racing.tokens_saved,
        waiting_share=None if server is None else server.mean_waiting / max(1.0, server.mean_running),
        curve=tuple(watch.curve),
    )


def over_seeds(settings: Mapping[str, Setting], seeds: Sequence[int]) -> dict[str, list[Measured]]:
    """Every setting with every seed, side by side in processes."""
    jobs = [(name, replace(setting, seed=seed)) for name, setting in settings.items() for seed in seeds]
    found: dict[str, list[Measured]] = {name: [] for name in settings}
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for (name, setting), measured in zip(
            jobs, processes.map(measure, [setting for _, setting in jobs]), strict=True
        ):
            found[name].append(measured)
            print(
                f"{name}, seed {setting.seed}: {measured.proposals:.1f} proposals, {measured.validations:.1f} "
                f"validations, {measured.accepted:.2f} accepted per minute, score {measured.score:.3f}",
                flush=True,
            )
    return found


@dataclass(frozen=True)
class Saturation:
    """Output tokens per second of a run and of its server at best, over the same window."""

    rate: float
    ceiling: float
    waiting_share: float
    in_flight: tuple[tuple[float, float], ...]
    """Mean requests in flight per ten seconds, as (seconds, requests)."""


WARM_UP = 300.0
"""Seconds until saturation is measured: the seed's validation comes first, and the stream fills up."""
BIN = 10.0


def saturation(setting: Setting) -> Saturation:
    watch = Watch(keep_calls=True)
    result = execute(setting, watch)
    end = MINUTES * 60
    inside = [call for call in watch.calls if call.reply is not None and WARM_UP <= call.finished <= end]
    tokens = sum(call.reply.usage.completion_tokens for call in inside if call.reply is not None)
    server = result.server
    share = 0.0 if server is None else server.mean_waiting / max(1.0, server.mean_running)
    return Saturation(tokens / (end - WARM_UP), open_loop(setting.profile, inside), share, in_flight(watch.calls, end))


def open_loop(profile: str, calls: Sequence[CallRecord]) -> float:
    """Tokens per second of the same server with all these requests in its queue at once, until the queue is empty."""
    service = make_service(PROFILES[profile])
    rates: list[float] = []

    async def serve(request: ChatRequest, reply: ChatReply) -> None:
        prompt = "\n".join(message.content for message in request.messages)
        await service.serve(prompt, reply.usage.completion_tokens, 0, random.Random(0))
        if not service.stats.waiting:
            rates.append(service.stats.output_tokens / anyio.current_time())

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            for call in sorted(calls, key=lambda each: each.started):
                if isinstance(call.request, ChatRequest) and isinstance(call.reply, ChatReply):
                    tasks.start_soon(serve, call.request, call.reply)

    clock.run(go, clock="virtual")
    return rates[0]


def in_flight(calls: Sequence[CallRecord], end: float) -> tuple[tuple[float, float], ...]:
    bins = [0.0] * int(end / BIN)
    for call in calls:
        for place in range(int(call.started / BIN), min(len(bins), int(call.finished / BIN) + 1)):
            bins[place] += max(0.0, min(call.finished, (place + 1) * BIN) - max(call.started, place * BIN)) / BIN
    return tuple((place * BIN, level) for place, level in enumerate(bins))
