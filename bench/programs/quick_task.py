"""Programs that mean no harm, run in one process beside the bench: without walls, and with a limit of CPU time.

A sandbox costs a program more than the program itself takes, if that is a millisecond, and a limit in real time makes
scores depend on what else the machine does. The simulated coder only changes numbers and statements of programs that
are ours, so that all they need is an end.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import resource
import signal
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from types import FrameType, TracebackType
from typing import NamedTuple, Self, cast

from flowevolve.llm.types import JSON
from flowevolve.programs.problem import Problem
from flowevolve.programs.task import ProgramTask
from flowevolve.sandbox import Outcome, Sandbox
from flowevolve.sandbox.outcome import Status

LONGEST = 10.0
"""Seconds of real time until a process is ended that does not come back: nothing interrupts one long operation."""
MEMORY_MB = 1024
_WORDS = 1500
"""Characters of a traceback that are kept."""


class Asked(NamedTuple):
    """A call of a program's function, and the seconds of CPU time that it may take."""

    source: str
    call: str
    arguments: Mapping[str, JSON] | Sequence[JSON]
    cpu_seconds: float


class Said(NamedTuple):
    status: Status
    cpu_seconds: float
    stderr: str
    result: JSON


class QuickTask(ProgramTask):
    """As `ProgramTask`, but it runs programs by ``runner``, which is somebody else's to close."""

    def __init__(self, problem: Problem, runner: Runner) -> None:
        super().__init__(problem)
        self._runner = runner

    async def __aenter__(self) -> Self:
        self._sandbox = cast(Sandbox, self._runner)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sandbox = None


class Runner:
    """In a sandbox's stead: calls functions one at a time, and blocks until they end (for the virtual clock).

    Its process starts with the first call, and is there until `close`, or the end of this one.
    """

    def __init__(self, cpu_seconds: float) -> None:
        self._cpu_seconds = cpu_seconds
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    async def run(
        self,
        source: str,
        *,
        call: str,
        arguments: Mapping[str, JSON] | Sequence[JSON] = (),
        timeout: float | None = None,
        memory_mb: int | None = None,
    ) -> Outcome:
        """``timeout`` and ``memory_mb`` are a sandbox's, and count for nothing here."""
        pipe = self._pipe or self._start()
        said = Said("timeout", LONGEST, "one operation took too long", None)
        try:
            pipe.send(Asked(source, call, arguments, self._cpu_seconds))
            if pipe.poll(LONGEST):
                said = cast(Said, pipe.recv())
            else:
                self.close()
        except (EOFError, ConnectionError):
            self.close()
            said = Said("killed", 0.0, "its process ended", None)
        return Outcome(said.status, said.cpu_seconds, said.cpu_seconds, 0.0, "", said.stderr, said.result)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None and self._pipe is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = self._pipe = None

    def _start(self) -> Connection:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()  # raises where it could not begin
        return self._pipe


def serve(pipe: Connection) -> None:
    """Answer what is asked until nobody asks any more."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB * 2**20,) * 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _time_is_up)
    pipe.send(None)
    while True:
        try:
            asked = cast(Asked, pipe.recv())
        except EOFError:
            return
        try:
            said = answer(asked)
        except TimeUp:  # in the moment after the call
            said = Said("timeout", asked.cpu_seconds, "time-out", None)
        pipe.send(said)


class TimeUp(BaseException):
    """The CPU time is over. No `Exception`: a program may catch these."""


def _time_is_up(number: int, frame: FrameType | None) -> None:
    raise TimeUp


def answer(asked: Asked) -> Said:
    """Call the function in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    status: Status = "ok"
    words, result = "", None
    random.seed(0)
    try:
        signal.setitimer(signal.ITIMER_PROF, asked.cpu_seconds)
        result = _called(asked)
    except TimeUp:
        status, words = "timeout", "time-out"
    except MemoryError:
        status, words = "memory", "more memory than allowed"
    except (Exception, SystemExit):  # noqa: BLE001 - reported
        status, words = "error", traceback.format_exc(limit=-5)[-_WORDS:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Said(status, resource.getrusage(resource.RUSAGE_SELF).ru_utime - before, words, result)


def _called(asked: Asked) -> JSON:
    """What the function returns, as JSON has it."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(asked.source, "program.py", "exec"), names)  # noqa: S102 - that is what this process is for
    function = names[asked.call]
    if not callable(function):
        raise TypeError(f"{asked.call} is no function")
    if isinstance(asked.arguments, Mapping):
        made: object = function(**asked.arguments)
    else:
        made = function(*asked.arguments)
    said: JSON = json.loads(json.dumps(made, allow_nan=False))
    return said
