"""Measured runs on the virtual clock: the settings of each, and the figures read from it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache

from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.task import Task
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.tasks.house_style import house_style_task

MINUTES = 30.0
"""Virtual minutes of a run, as many as the paper's ablations took."""
PRESET = "noisy"
"""The preset of world ``rules``. Runs do not solve it within their time, so that there is always something to accept.
"""


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
    """Rows of the data set: 40 % for minibatches, 30 % for validation, 30 % held out."""
    easy_first: bool = False
    """Whether the validation set begins with the rows that every candidate soon passes."""

    def config(self) -> Config:
        workers = dict.fromkeys(("generate", "propose", "screen"), self.proposing) | {"evaluate": self.evaluating}
        algorithm: dict[str, object] = {"name": "gepa", "mode": self.mode, "max_in_flight": self.flows}
        if self.validation is not None:
            algorithm["validation"] = self.validation
        return parse_config(
            {
                "preset": "plain",
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
    """The figures of a run. Rates are per minute. ``curve`` is the best validation score over time, as (seconds,
    score).
    """

    setting: Setting
    proposals: float
    validations: float
    """Candidates whose validation ended with a verdict, even if on a part of the examples only."""
    accepted: float
    score: float
    """The best candidate's score on the test split."""
    tokens: int
    """Output tokens of the model."""
    improvements: int
    """Pool updates that raised the best score."""
    mean_gap: float
    """The mean version gap at the update stage."""
    max_gap: int
    """The largest version gap at any stage."""
    in_flight: float
    released: int
    revoked: int
    tokens_saved: int
    waiting_share: float | None
    """The server's mean queue length over its mean batch size, if the run has figures of its server."""
    curve: tuple[tuple[float, float], ...]

    def at(self, seconds: float) -> float:
        """The best validation score at a time."""
        return max((score for when, score in self.curve if when <= seconds), default=0.0)


@dataclass
class Watch:
    """Listens to a run and keeps what `Measured` needs of it."""

    verdicts: int = 0
    """Evaluations that ended with a verdict, so not those that went stale, failed or were under way at the end."""
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
    async def main() -> Result:
        watchers = Watchers(events=(watch.event,), calls=(watch.call,))
        return await run(setting.config(), task=task(setting.rows, setting.easy_first), watchers=watchers)

    return clock.run(main, clock="virtual")


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
    """Measure every setting with every seed, in parallel processes."""
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
