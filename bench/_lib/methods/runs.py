"""Runs a method on a recording server for a while, and keeps what the server recorded and what the method reported.

All times are the server's: on a simulated server that is sped up n times, one real second is n seconds of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Event, Thread
from urllib.request import Request, urlopen

from bench._lib.methods.environments import python_of, variables_of
from bench._lib.methods.process import Job
from bench._lib.methods.recording import RECORDING, REQUESTS, Span
from bench._lib.paths import ROOT
from bench.peers.progress import Progress, read_progress

SETTING_UP_SECONDS = 300.0
"""The real seconds that a method may take until its seed is validated."""
WARM_UP = 0.2
"""The share of a run's time, counted from the end of the seed's validation, that rates leave out."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What the server recorded of a method. Since the start of the server's process, ``cpu`` is the CPU time it has
    used, and ``waited`` the time it was ready to run but had no core, in seconds.
    """

    cpu: float
    waited: float
    now: float
    spans: tuple[Span, ...]


class Server:
    """A recording server in a process of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._recording = url.removesuffix("/v1") + RECORDING
        self._requests = url.removesuffix("/v1") + REQUESTS

    def begin(self) -> tuple[Recording, bool]:
        """Forget what was recorded. Returns the recording right afterwards, and whether the server's cache of prompts
        was cleared.
        """
        with urlopen(Request(self._recording, method="DELETE"), timeout=30) as answer:  # noqa: S310 - our own server
            fresh = json.load(answer)["fresh"]
        return self.read(), fresh

    def read(self) -> Recording:
        with urlopen(self._recording, timeout=30) as answer:  # noqa: S310 - our own server
            content = json.load(answer)
        spans = tuple(Span(*span) for span in content["spans"])
        return Recording(content["cpu"], content["waited"], content["now"], spans)

    def requests(self) -> bytes:
        """The bodies of all chats since `begin`, as a list in JSON; empty unless the server is in front of another."""
        with urlopen(self._requests, timeout=30) as answer:  # noqa: S310 - our own server
            return bytes(answer.read())


@contextmanager
def serving(*arguments: str, module: str = "bench._lib.methods.recording_server") -> Iterator[Server]:
    """Run `recording_server`, or another module with the same interface, in a process of its own until the block
    ends.
    """
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip())
        finally:
            process.send_signal(signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a method: what it reported and what the server recorded.

    Seconds are the server's own, counted from the end of the seed's validation; rates are taken between ``start`` and
    ``end``.
    """

    method: str
    workload: str
    start: float
    end: float
    spans: tuple[Span, ...]
    accepted: tuple[tuple[float, float], ...]
    """When each candidate entered the pool, and its score; the seed comes first, at 0 or before."""
    validated: tuple[float, ...]
    """When each validation of all examples ended; ``stopped`` has the ends of those that were stopped before."""
    client_cpu: float
    """Real seconds of CPU time of the method's process over the whole run; `server_cpu` likewise of the server's."""
    server_cpu: float
    speed: float
    proposed: tuple[float, ...] = ()
    """When the method reported each proposal."""
    fresh: bool = True
    """Whether the server began with an empty prefix cache."""
    stopped: tuple[float, ...] = ()
    best: tuple[tuple[float, str], ...] = ()
    """The texts that the method would have returned, each with the time from which on it would."""
    flows: int = 0
    """The largest number of proposals that were under way at the same time."""
    held_up: float = 0.0
    """Real seconds that the server's process was ready to run but had no core, because other processes used them."""


def execute(method: str, job: Job, server: Server, seconds: float) -> Run:
    """Let a method work until its seed is validated and for ``seconds`` of real time after that, then kill it.

    Rates leave out the first part of that time (`WARM_UP`). Otherwise, methods that work in batches would be measured
    in the same phase every time, and streams while they still fill up.
    """
    before, fresh = server.begin()
    with _started(method, job) as (process, listener):
        seeded = listener.wait_for_seed()
        if seeded is None:
            raise RuntimeError(f"{method}: its seed was not validated within {SETTING_UP_SECONDS:g} s")
        time.sleep(max(0.0, seeded + seconds - time.monotonic()))
        _require_alive(method, process)
        record = server.read()
        client_cpu = _killed(process)
    started = next(each.cpu for each in listener.progress if each.kind == "began")
    since = [each for each in listener.progress if each.seconds <= record.now]
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
        stopped=_times(since, "stopped", seeded, job.speed),
        flows=len(_times(since, "opened", seeded, job.speed)),
        best=tuple(((each.seconds - seeded) * job.speed, each.text) for each in since if each.text is not None),
        client_cpu=client_cpu - started,
        server_cpu=record.cpu - before.cpu,
        held_up=record.waited - before.waited,
        speed=job.speed,
        fresh=fresh,
    )


def _times(progress: Iterable[Progress], kind: str, seeded: float, speed: float) -> tuple[float, ...]:
    return tuple((each.seconds - seeded) * speed for each in progress if each.kind == kind)


class _Listener:
    """Reads the progress of a method's process; ``seeded`` is set when its seed is validated, or its output ends."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.progress: list[Progress] = []
        self.seeded = Event()
        self._lines = lines

    def listen(self) -> None:
        for line in self._lines:
            if not line.endswith("\n"):
                break  # the process was killed while it wrote this line
            self.progress.append(read_progress(line))
            if self.progress[-1].kind == "validated":
                self.seeded.set()
        self.seeded.set()

    def wait_for_seed(self) -> float | None:
        """When the seed's validation ended, in real seconds; None if it did not."""
        self.seeded.wait(SETTING_UP_SECONDS)
        return next((each.seconds for each in self.progress if each.kind == "validated"), None)


@contextmanager
def _started(method: str, job: Job) -> Iterator[tuple[subprocess.Popen[str], _Listener]]:
    command = [python_of(method), "-m", "bench._lib.methods.process", method, json.dumps(asdict(job))]
    with tempfile.TemporaryDirectory() as folder:  # for what it writes, as it is killed before it can tidy up
        variables = {**os.environ, **variables_of(method), "TMPDIR": folder, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=variables) as process:
            assert process.stdout is not None
            listener = _Listener(process.stdout)
            thread = Thread(target=listener.listen)
            thread.start()
            try:
                yield process, listener
            finally:
                process.kill()
                thread.join()


def _require_alive(method: str, process: subprocess.Popen[str]) -> None:
    """Raise if the process has ended, because it would be measured as if it were idle."""
    if process.poll() is not None:
        raise RuntimeError(f"{method}: its process ended with {process.returncode}; it says why above")


def _killed(process: subprocess.Popen[str]) -> float:
    """Kill a process; returns the CPU seconds that it has used."""
    process.kill()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def _relative(span: Span, seeded: float, speed: float) -> Span:
    begun, ended = ((each - seeded) * speed for each in (span.begun, span.ended))
    return Span(begun, ended, span.role, span.characters, span.max_tokens, span.tokens)
