"""Running one method on a recording server for a while, and what the server's record and the method's words come to.

All times and rates are the server's: on a simulated server that runs at so many times its speed, a second of ours is so
many of its own.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from threading import Event, Thread
from urllib.request import Request, urlopen

from bench._lib.methods.process import Job
from bench._lib.methods.recording import RECORDING, Span
from bench._lib.paths import ROOT
from bench.peers.progress import Progress, read_progress

SETTING_UP_SECONDS = 300.0
"""What a method may take, of our time, until the seed is validated."""
WARM_UP = 0.2
"""The share of a run's time, from the end of the seed's validation, that rates leave out."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Of one method on the server. ``cpu`` is the server process's since it began, in seconds."""

    cpu: float
    now: float
    spans: tuple[Span, ...]


class Server:
    """A recording server in a process of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._recording = url.removesuffix("/v1") + RECORDING

    def begin(self) -> tuple[float, bool]:
        """Forget what was recorded; the CPU seconds used so far, and whether no prompt is cached from before."""
        with urlopen(Request(self._recording, method="DELETE"), timeout=30) as answer:  # noqa: S310 - our own server
            fresh = json.load(answer)["fresh"]
        return self.read().cpu, fresh

    def read(self) -> Recording:
        with urlopen(self._recording, timeout=30) as answer:  # noqa: S310 - our own server
            content = json.load(answer)
        return Recording(content["cpu"], content["now"], tuple(Span(*span) for span in content["spans"]))


@contextmanager
def serving(*arguments: str) -> Iterator[Server]:
    """A `bench._lib.methods.recording_server` with these arguments."""
    command = [sys.executable, "-m", "bench._lib.methods.recording_server", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip())
        finally:
            process.send_signal(signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Run:
    """One method, once: what it said and what the server saw. Seconds are the server's own, counted from the end of the
    seed's validation; ``start`` and ``end`` are those that rates are taken between.
    """

    method: str
    workload: str
    start: float
    end: float
    spans: tuple[Span, ...]
    accepted: tuple[tuple[float, float], ...]
    """When a candidate entered the pool, and its score; the seed first, at 0 or before."""
    validated: tuple[float, ...]
    """When a validation ended."""
    client_cpu: float
    """Seconds of CPU time of the method's process over the whole run, and the server's likewise; real ones."""
    server_cpu: float
    speed: float
    proposed: tuple[float, ...] = ()
    """When the method said that it had made a proposal."""
    fresh: bool = True
    """Whether the server began with an empty prefix cache."""


def execute(method: str, job: Job, server: Server, seconds: float) -> Run:
    """Let a method work until its seed is validated and for so many of our seconds on; then kill it.

    Rates leave out the first of these (`WARM_UP`): methods that work in batches would else be caught in the same phase
    every time, and streams while they fill.
    """
    server_cpu, fresh = server.begin()
    before = _children_cpu()
    with _started(method, job) as (process, heard):
        seeded = heard.wait_for_seed()
        if seeded is None:
            raise RuntimeError(f"{method}: its seed was not validated within {SETTING_UP_SECONDS:g} s")
        time.sleep(max(0.0, seeded + seconds - time.monotonic()))
        _require_alive(method, process)
        record = server.read()
        process.kill()
    started = next(each.cpu for each in heard.progress if each.kind == "began")
    since = [each for each in heard.progress if each.seconds <= record.now]
    return Run(
        method=method,
        workload=job.workload,
        start=WARM_UP * seconds * job.speed,
        end=(record.now - seeded) * job.speed,
        spans=tuple(_relative(span, seeded, job.speed) for span in record.spans),
        accepted=tuple(
            ((each.seconds - seeded) * job.speed, each.score)
            for each in since
            if each.kind == "accepted" and each.score is not None
        ),
        validated=_times(since, "validated", seeded, job.speed),
        proposed=_times(since, "proposed", seeded, job.speed),
        client_cpu=_children_cpu() - before - started,
        server_cpu=record.cpu - server_cpu,
        speed=job.speed,
        fresh=fresh,
    )


def _times(progress: Iterable[Progress], kind: str, seeded: float, speed: float) -> tuple[float, ...]:
    return tuple((each.seconds - seeded) * speed for each in progress if each.kind == kind)


class _Heard:
    """What a method's process has said so far; ``seeded`` is set when its seed is validated, or it says no more."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.progress: list[Progress] = []
        self.seeded = Event()
        self._lines = lines

    def listen(self) -> None:
        for line in self._lines:
            if not line.endswith("\n"):
                break  # it was killed while it wrote
            self.progress.append(read_progress(line))
            if self.progress[-1].kind == "validated":
                self.seeded.set()
        self.seeded.set()

    def wait_for_seed(self) -> float | None:
        """When the seed's validation ended, in our seconds; None if it did not."""
        self.seeded.wait(SETTING_UP_SECONDS)
        return next((each.seconds for each in self.progress if each.kind == "validated"), None)


@contextmanager
def _started(method: str, job: Job) -> Iterator[tuple[subprocess.Popen[str], _Heard]]:
    command = [sys.executable, "-m", "bench._lib.methods.process", method, json.dumps(asdict(job))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        heard = _Heard(process.stdout)
        thread = Thread(target=heard.listen)
        thread.start()
        try:
            yield process, heard
        finally:
            process.kill()
            thread.join()


def _require_alive(method: str, process: subprocess.Popen[str]) -> None:
    """A method that has ended would be measured as if it idled."""
    if process.poll() is not None:
        raise RuntimeError(f"{method}: its process ended with {process.returncode}; it says why above")


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _relative(span: Span, seeded: float, speed: float) -> Span:
    begun, ended = ((each - seeded) * speed for each in (span.begun, span.ended))
    return Span(begun, ended, span.role, span.characters, span.max_tokens, span.tokens)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run comes to. Rates are per minute of the server's time, tokens those it wrote and sent."""

    proposals_per_min: float
    """A proposal is an answered reflection, whatever is thought of it; where reflections are merged, what the method
    says it made of them.
    """
    validations_per_min: float
    accepted_per_min: float
    output_tokens_per_s: float
    mean_in_flight: float
    median_in_flight: float
    idle_share: float
    """Of the time, with at most one request in flight."""
    tokens_per_accepted: float | None
    requests_per_proposal: float | None
    best_score: float
    client_cpu_share: float
    """Of one core, while rates were taken; the server's likewise."""
    server_cpu_share: float
    client_cpu_s: float
    client_cpu_ms_per_call: float
    curve: tuple[tuple[float, float], ...] = field(repr=False)
    """The best score over time, as (seconds, score)."""


def figures(run: Run) -> Figures:
    seconds = run.end - run.start
    per_minute, real_seconds = 60 / seconds, seconds / run.speed
    answered = [span for span in run.spans if run.start < span.ended <= run.end and span.tokens is not None]
    proposals = _proposals(run, answered)
    accepted = sum(when > run.start for when, _ in run.accepted)
    tokens = sum(_tokens_within(span, run.start, run.end) for span in run.spans)
    levels = in_flight(run.spans, run.start, run.end)
    calls = len(run.spans)
    share = len(answered) / max(1, calls) / real_seconds
    return Figures(
        proposals_per_min=proposals * per_minute,
        validations_per_min=sum(when > run.start for when in run.validated) * per_minute,
        accepted_per_min=accepted * per_minute,
        output_tokens_per_s=tokens / seconds,
        mean_in_flight=sum(level * lasted for level, lasted in levels) / seconds,
        median_in_flight=_median(levels),
        idle_share=sum(lasted for level, lasted in levels if level <= 1) / seconds,
        tokens_per_accepted=tokens / accepted if accepted else None,
        requests_per_proposal=len(answered) / proposals if proposals else None,
        best_score=max((score for _, score in run.accepted), default=0.0),
        client_cpu_share=run.client_cpu * share,
        server_cpu_share=run.server_cpu * share,
        client_cpu_s=run.client_cpu,
        client_cpu_ms_per_call=1000 * run.client_cpu / max(1, calls),
        curve=_best(run.accepted),
    )


def _proposals(run: Run, answered: Sequence[Span]) -> int:
    if any(span.role == "merge" for span in run.spans):
        return sum(run.start < when <= run.end for when in run.proposed)
    return sum(span.role == "reflection" for span in answered)


def _tokens_within(span: Span, start: float, end: float) -> float:
    """The part of an answer's tokens that was written between these times, if it was written evenly."""
    if span.tokens is None or span.ended <= span.begun:
        return 0.0
    inside = min(span.ended, end) - max(span.begun, start)
    return span.tokens * max(0.0, inside) / (span.ended - span.begun)


def in_flight(spans: Sequence[Span], start: float, end: float) -> list[tuple[int, float]]:
    """How many requests the server had, and for how many seconds, in order of time between these."""
    times = ((time, by) for span in spans for time, by in ((span.begun, 1), (span.ended, -1)))
    changes = sorted((min(max(time, start), end), by) for time, by in times)
    levels: list[tuple[int, float]] = []
    level, since = 0, start
    for when, by in (*changes, (end, 0)):
        if when > since:
            levels.append((level, when - since))
            since = when
        level += by
    return levels


def _median(levels: Sequence[tuple[int, float]]) -> float:
    """Weighted by time."""
    half, passed = sum(seconds for _, seconds in levels) / 2, 0.0
    for level, seconds in sorted(levels):
        passed += seconds
        if passed >= half:
            return float(level)
    return 0.0


def _best(accepted: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    curve: list[tuple[float, float]] = []
    for seconds, score in accepted:
        if not curve or score > curve[-1][1]:
            curve.append((round(max(0.0, seconds), 1), round(score, 4)))
    return tuple(curve)
