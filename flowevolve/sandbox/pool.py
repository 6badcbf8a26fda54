"""The sandbox as stages use it: it runs programs and returns their outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from typing_extensions import TypedDict, Unpack

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.sandbox_settings import MOST_MB, SandboxSettings
from flowevolve.sandbox import isolation
from flowevolve.sandbox.evaluators import Evaluators, Job, TrustedCall
from flowevolve.sandbox.inside.wire import Request
from flowevolve.sandbox.opening import open_evaluators
from flowevolve.sandbox.outcome import MEGABYTE, Outcome

SAMPLE_SECONDS = 0.02
"""The time between two samples of a program's memory."""


class RunOptions(TypedDict, total=False):
    """How a program is run.

    Python: the source is executed as ``__main__``. The result is what the function ``call`` returns or, without
    ``call``, the value of the global variable ``result``, if the program sets it.

    Other languages: the source is written to the file ``name``, whose path is appended to ``command``. The program
    reads the arguments as JSON from standard input; if its standard output is JSON, that is the result.
    """

    call: str | None
    arguments: Mapping[str, JSON] | Sequence[JSON]
    """Python's function gets a mapping by name, and a sequence by position."""
    command: Sequence[str] | None
    name: str
    timeout: float | None
    """In seconds, instead of that of the settings."""
    memory_mb: int | None
    """Instead of that of the settings."""
    packages: Sequence[str] | None
    """If they are given, a Python program may import only these and the standard library."""


class Sandbox:
    """Runs untrusted programs. A context manager; programs that still run when the block ends are killed.

    Pass ``evaluators`` to share with other sandboxes where programs run; whoever created them opens and closes them.

    Raises:
        InputError: if a folder that programs may read can't be read.
    """

    def __init__(self, settings: SandboxSettings | None = None, evaluators: Evaluators | None = None) -> None:
        self.settings = settings or SandboxSettings()
        self._readable = isolation.readable(self.settings)
        self._own = evaluators is None
        self._evaluators = open_evaluators(self.settings) if evaluators is None else evaluators

    async def __aenter__(self) -> Self:
        """Begin, so that a sandbox that can't work is noticed here.

        Raises:
            InputError: if bubblewrap is missing or does not work, or a folder that programs may read has more than
                files in it.
        """
        if self._own:
            await self._evaluators.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own:
            await self._evaluators.__aexit__(kind, error, trace)

    @property
    def measured_on(self) -> str:
        """The class of machines on which pinned runs take place."""
        return self._evaluators.measured_on

    def readable_at(self, folder: Path) -> str:
        """The path where programs find a folder of ``settings.readable``."""
        return self._readable[folder.resolve()]

    def with_own_paths(self, text: str) -> str:
        """A text that a program left, with the paths that the folders of ``settings.readable`` have outside."""
        for folder, there in sorted(self._readable.items(), key=lambda each: len(each[1]), reverse=True):
            text = text.replace(there, str(folder))
        return text

    async def run(self, source: str, **options: Unpack[RunOptions]) -> Outcome:
        """Run one program in a process and namespaces of its own, and return its outcome.

        Cancelling kills the program and everything it started.
        """
        (outcome,) = await self.run_job(Job(self.settings, self.request(source, **options)))
        return outcome

    async def run_pinned(
        self, source: str, *, sample_seconds: float = SAMPLE_SECONDS, runs: int = 1, **options: Unpack[RunOptions]
    ) -> list[Outcome]:
        """Run a program ``runs`` times, or until it fails, on a core that no other pinned run uses at the same time.

        That holds for pinned runs in all processes of this user on the same machine; this waits until a core is free.
        """
        sampled = replace(self.request(source, **options), sample_seconds=sample_seconds)
        return await self.run_job(Job(self.settings, sampled, runs, pinned=True))

    async def run_job(self, job: Job | TrustedCall) -> list[Outcome]:
        """Run a job made from a `request`, or call a trusted function where programs run, outside of any sandbox."""
        return await self._evaluators.run(job)

    def request(
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
    ) -> Request:
        """What `run` sends to a worker."""
        if "/" in name or name in ("", ".", ".."):
            raise InputError(f"sandbox: {name!r} is not a name for a program's file; give one without a folder")
        if timeout is not None and timeout <= 0:
            raise InputError(f"sandbox: timeout is {timeout:g} s, but has to be above 0")
        if memory_mb is not None and not 0 < memory_mb <= MOST_MB:
            raise InputError(f"sandbox: memory_mb is {memory_mb}, but has to be from 1 to {MOST_MB}")
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
