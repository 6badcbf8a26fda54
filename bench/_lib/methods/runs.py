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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
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
