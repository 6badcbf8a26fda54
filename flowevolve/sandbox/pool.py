"""The sandbox as stages use it: it runs programs and returns their outcomes, as many at a time as there are cores."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from flowevolve._util import clock, work_folders
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.sandbox_settings import MOST_MB, SandboxSettings
from flowevolve.sandbox import isolation
from flowevolve.sandbox.cores import CORES
from flowevolve.sandbox.inside.wire import Request
from flowevolve.sandbox.outcome import MEGABYTE, Outcome, no_report
from flowevolve.sandbox.worker import Worker

SAMPLE_SECONDS = 0.02
"""The time between two samples of a program's memory."""


class Sandbox:
    """Runs untrusted programs. A context manager; programs that still run when the block ends are killed.

    Raises:
        InputError: if a folder that programs may read can't be read.
    """

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self.settings = settings or SandboxSettings()
        self._readable = isolation.readable(self.settings)
        self._idle: list[Worker] = []
        self._slots = anyio.Semaphore(self.settings.concurrency)
        self._threads = anyio.CapacityLimiter(2 * self.settings.concurrency + 1)

    async def __aenter__(self) -> Self:
        """Start the first worker, so that a sandbox that can't work fails here.

        Raises:
            InputError: if bubblewrap is missing or does not work here, or a folder that programs may read has more
                than files in it.
        """
        isolation.check_machine()
        await clock.in_thread(self._prepare, limiter=self._threads)
        self._idle.append(await self._start())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._idle:
            await self._close(self._idle.pop())

    def readable_at(self, folder: Path) -> str:
        """The path at which programs find a folder of ``settings.readable``."""
        return self._readable[folder.resolve()]

    async def run(
        self,
        source: str,
        *,
        call: str | None = None,
        arguments: Mapping[str, JSON] | Sequence[JSON] = (),
        command: Sequence[str] | None = None,
        name: str = "program.py",
        timeout: float | None = None,
        memory_mb: int | None = None,
        packages: Sequence[str] | None = None,
    ) -> Outcome:
        """Run one program in a process and namespaces of its own, and return its outcome.

        Python: ``source`` is executed as ``__main__``. The result is what its function ``call`` returns for
        ``arguments`` (a mapping is passed by name, a sequence by position). Without ``call`` it is the global variable
        ``result``, if the program sets one.

        Other languages: ``source`` is written to the file ``name``, whose path is appended to ``command``. The program
        reads the arguments as JSON from standard input; if its standard output is JSON, that is the result.

        ``timeout`` (seconds) and ``memory_mb`` override the settings. With ``packages`` a Python program may import
        these and the standard library, and an import of anything else fails. Cancelling kills the program and
        everything it started.
        """
        return await self._run(self.request(source, call, arguments, command, name, timeout, memory_mb, packages))

    async def run_pinned(
        self,
        source: str,
        *,
        call: str | None = None,
        arguments: Mapping[str, JSON] | Sequence[JSON] = (),
        command: Sequence[str] | None = None,
        name: str = "program.py",
        timeout: float | None = None,
        memory_mb: int | None = None,
        sample_seconds: float = SAMPLE_SECONDS,
        runs: int = 1,
        packages: Sequence[str] | None = None,
    ) -> list[Outcome]:
        """Run a program ``runs`` times, or until it fails, on a core that no other pinned run uses meanwhile.

        That holds for pinned runs in all processes of this user; this one waits until a core is free.
        """
        request = self.request(source, call, arguments, command, name, timeout, memory_mb, packages)
        outcomes: list[Outcome] = []
        async with CORES.one() as core:
            pinned = replace(request, core=core, sample_seconds=sample_seconds)
            while len(outcomes) < runs and all(outcome.status == "ok" for outcome in outcomes):
                outcomes.append(await self._run(pinned))
        return outcomes

    def request(
        self,
        source: str,
        call: str | None,
        arguments: Mapping[str, JSON] | Sequence[JSON],
        command: Sequence[str] | None = None,
        name: str = "program.py",
        timeout: float | None = None,
        memory_mb: int | None = None,
        packages: Sequence[str] | None = None,
    ) -> Request:
        """What `run` sends to a worker."""
        if "/" in name or name in ("", ".", ".."):
            raise InputError(f"sandbox: {name!r} is no name for a program's file; give one without a folder")
        if (timeout is not None and timeout <= 0) or (memory_mb is not None and memory_mb <= 0):
            raise InputError(f"sandbox: a timeout of {timeout} s and {memory_mb} MB of memory: give more than 0")
        if memory_mb is not None and memory_mb > MOST_MB:
            raise InputError(f"sandbox: {memory_mb} MB of memory: give {MOST_MB} at most")
        settings = self.settings
        result_limit = settings.result_kb * 1024
        return Request(
            source=source,
            name=name,
            call=call,
            arguments=dict(arguments) if isinstance(arguments, Mapping) else list(arguments),
            command=None if command is None else list(command),
            timeout=timeout or settings.timeout,
            memory=(memory_mb or settings.memory_mb) * MEGABYTE,
            disk=settings.disk_mb * MEGABYTE,
            processes=settings.processes,
            output_limit=settings.output_kb * 1024 if command is None else max(settings.output_kb * 1024, result_limit),
            result_limit=result_limit,
            core=None,
            sample_seconds=SAMPLE_SECONDS,
            folder=None,
            packages=None if packages is None else list(packages),
        )

    async def _run(self, request: Request) -> Outcome:
        async with self._slots:
            outcome = await self._run_in(self._idle.pop() if self._idle else await self._start(), request)
            if outcome is None:  # a second try in a fresh sandbox shows whether the program caused that
                outcome = await self._run_in(await self._start(), request)
        return no_report(request, None) if outcome is None else outcome

    async def _run_in(self, worker: Worker, request: Request) -> Outcome | None:
        try:
            return await clock.in_thread_until(worker.kill, worker.run, request, limiter=self._threads)
        finally:
            await self._take_back(worker)

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[Worker]:
        """A worker for programs that run together with others, for as long as the block lasts."""
        async with self._slots:
            worker = self._idle.pop() if self._idle else await self._start()
            try:
                yield worker
            finally:
                await self._take_back(worker)

    async def _take_back(self, worker: Worker) -> None:
        if worker.usable:
            self._idle.append(worker)
        else:
            await self._close(worker)

    def _prepare(self) -> None:
        work_folders.sweep()
        if self.settings.isolation == "bubblewrap":
            isolation.check_contents(self._readable)

    async def _start(self) -> Worker:
        with anyio.CancelScope(shield=True):  # else a started worker would be lost
            worker = await clock.in_thread(Worker, self.settings, limiter=self._threads)
        return worker  # noqa: RET504 - inside the scope, mypy would miss a return after it

    async def _close(self, worker: Worker) -> None:
        with anyio.CancelScope(shield=True):
            await clock.in_thread(worker.close, limiter=self._threads)
