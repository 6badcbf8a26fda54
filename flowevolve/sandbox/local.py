"""Programs on this machine: warm workers, as many at a time as the settings say, in threads of this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from types import TracebackType
from typing import Self

import anyio

from flowevolve._util import clock, work_folders
from flowevolve._util.cores import processor_name
from flowevolve._util.errors import InputError
from flowevolve.core.events import Log
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import isolation
from flowevolve.sandbox.both import Both
from flowevolve.sandbox.cores import CORES, Cores
from flowevolve.sandbox.evaluators import Job, Served, TrustedCall
from flowevolve.sandbox.functions import FunctionProcess
from flowevolve.sandbox.inside.wire import Request
from flowevolve.sandbox.outcome import Outcome, no_report
from flowevolve.sandbox.warm import Warm
from flowevolve.sandbox.worker import Worker


class LocalEvaluators:
    """The `flowevolve.sandbox.evaluators.Evaluators` of this machine. Jobs with other settings have their own slots."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._main = _Workers(settings)
        self._others: dict[SandboxSettings, _Workers] = {}
        self._functions = Warm(FunctionProcess, self._main.threads)
        self._turns = CORES.turns()

    @property
    def capacity(self) -> int:
        return self._main.settings.concurrency

    @property
    def measured_on(self) -> str:
        return self._main.settings.measure_on or processor_name()

    def log_nodes(self, log: Log) -> None:
        """Log nothing: the only node is this machine, which does not come or go."""

    async def __aenter__(self) -> Self:
        """Start the first worker, so that a sandbox that can't work is noticed here.

        Raises:
            InputError: if bubblewrap is missing or does not work here, or a folder that programs may read has more
                than files in it.
        """
        await self._main.prepare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for workers in (self._main, *self._others.values()):
            await workers.close()
        await self._functions.close()

    async def run(self, job: Job | TrustedCall) -> list[Outcome]:
        if isinstance(job, TrustedCall):
            return [await self._call(job)]
        workers = self._of(job.settings)
        if job.served is not None:
            return [await workers.run_with(self._of(job.served.settings), job.request, job.served)]
        if not job.pinned:
            return [await workers.run(job.request)]
        self._check_measures()
        outcomes: list[Outcome] = []
        async with self._turns:
            while len(outcomes) < job.runs and all(outcome.status == "ok" for outcome in outcomes):
                outcomes.append(await workers.run(job.request, CORES))
        return outcomes

    async def _call(self, call: TrustedCall) -> Outcome:
        async with self._main.slots, self._functions.lent() as process:
            return await clock.in_thread_until(process.kill, process.run, call, limiter=self._main.threads)

    def _check_measures(self) -> None:
        if self.measured_on != processor_name():
            raise InputError(
                f"sandbox.measure_on: programs are to be measured on machines with {self.measured_on!r}, but this one "
                f"has {processor_name()!r}, so scores could not be compared; go on where they were measured, or "
                f"set sandbox.measure_on = {processor_name()!r} to compare them all the same"
            )

    def _of(self, settings: SandboxSettings) -> _Workers:
        if settings is self._main.settings or settings == self._main.settings:
            return self._main
        if settings not in self._others:
            self._others[settings] = _Workers(settings)
        return self._others[settings]


class _OnCore:
    """A worker whose programs each run on a core of their own."""

    def __init__(self, worker: Worker, cores: Cores) -> None:
        self._worker = worker
        self._cores = cores
        self._gave_up = Event()

    def run(self, request: Request) -> Outcome | None:
        with self._cores.lent(self._gave_up) as core:
            return None if core is None else self._worker.run(replace(request, core=core))

    def kill(self) -> None:
        self._gave_up.set()
        self._worker.kill()


class _Workers:
    """The workers with the same settings: idle ones, and slots for those that run a program."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.settings = settings
        self.slots = anyio.Semaphore(settings.concurrency)
        self.threads = anyio.CapacityLimiter(2 * settings.concurrency + 1)
        self._warm = Warm(partial(Worker, settings), self.threads)

    async def prepare(self) -> None:
        """Raises: InputError if programs can't be run."""
        isolation.check_machine()
        await clock.in_thread(self._clear_up, limiter=self.threads)
        async with self._warm.lent():
            pass

    async def close(self) -> None:
        await self._warm.close()

    async def run(self, request: Request, cores: Cores | None = None) -> Outcome:
        """Run a program; with ``cores``, on one of these cores, which nothing else uses meanwhile."""
        async with self.slots:
            outcome = await self._run_in(request, cores)
            if outcome is None:  # a second try in a fresh sandbox shows whether the program caused that
                outcome = await self._run_in(request, cores, fresh=True)
        return no_report(request, None) if outcome is None else outcome

    async def run_with(self, programs: _Workers, asking: Request, served: Served) -> Outcome:
        """Run an evaluator here, and the program that it calls in one of the workers of ``programs``."""
        outcome = await self._once_with(programs, asking, served.request)
        if outcome is None:  # a second try, as above
            outcome = await self._once_with(programs, asking, served.request)
        return no_report(asking, None) if outcome is None else outcome

    async def _once_with(self, programs: _Workers, asking: Request, asked: Request) -> Outcome | None:
        async with self._lent() as evaluator, programs._lent() as program:
            both = Both(evaluator, program)
            limiter = anyio.CapacityLimiter(1)  # one thread waits for both, and no others should delay it
            return await clock.in_thread_until(both.kill, both.run, asking, asked, limiter=limiter)

    async def _run_in(self, request: Request, cores: Cores | None, *, fresh: bool = False) -> Outcome | None:
        async with self._warm.lent(fresh=fresh) as worker:
            runs = worker if cores is None else _OnCore(worker, cores)
            return await clock.in_thread_until(runs.kill, runs.run, request, limiter=self.threads)

    @asynccontextmanager
    async def _lent(self) -> AsyncGenerator[Worker]:
        """Lend a worker, for a program that runs together with another, while the block lasts."""
        async with self.slots, self._warm.lent() as worker:
            yield worker

    def _clear_up(self) -> None:
        work_folders.sweep()
        isolation.check_folders(self.settings)
