"""Trusted programs, run without a sandbox in one process beside the bench, with a limit on CPU time.

For a program that takes a millisecond, a sandbox costs more than the program itself, and with a limit in real time
scores would depend on what else the machine does. The simulated coder only changes numbers and statements of programs
that are ours, so it is enough to make sure that they end.
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

from flowevolve._util.json_types import JSON
from flowevolve.programs.problem import Problem
from flowevolve.programs.task import ProgramTask
from flowevolve.sandbox import Outcome, Sandbox
from flowevolve.sandbox.outcome import Status

LONGEST = 10.0
"""Seconds of real time after which a process that has not answered is killed: the limit of CPU time can't interrupt one
long operation."""
MEMORY_MB = 1024
_WORDS = 1500
"""The last characters of a traceback, as many as are kept."""


class Call(NamedTuple):
    """A call of a program's function, and the seconds of CPU time that it may take."""

    source: str
    function: str
    arguments: Mapping[str, JSON] | Sequence[JSON]
    cpu_seconds: float


class Reply(NamedTuple):
    """The reply to a call: how it ended, the CPU time it took, and its result or its traceback."""

    status: Status
    cpu_seconds: float
    stderr: str
    result: JSON


class QuickTask(ProgramTask):
    """A `ProgramTask` that runs its programs in ``runner``, which the caller has to close."""

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
    """Stands in for a sandbox: it calls functions one at a time, and blocks until each ends (for the virtual clock).

    Its process starts with the first call and lives until `close`, or until this process ends.
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
        packages: Sequence[str] | None = None,
    ) -> Outcome:
        """``timeout``, ``memory_mb`` and ``packages`` are part of a sandbox's interface and have no effect here."""
        pipe = self._pipe or self._start()
        reply = Reply("timeout", LONGEST, "one operation took too long", None)
        try:
            pipe.send(Call(source, call, arguments, self._cpu_seconds))
            if pipe.poll(LONGEST):
                reply = cast(Reply, pipe.recv())
            else:
                self.close()
        except (EOFError, ConnectionError):
            self.close()
            reply = Reply("killed", 0.0, "its process ended", None)
        return Outcome(reply.status, reply.cpu_seconds, reply.cpu_seconds, 0.0, "", reply.stderr, reply.result)

    def close(self) -> None:
        """End the process, if one is running."""
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
        self._pipe.recv()  # raises if the process could not start
        return self._pipe


def serve(pipe: Connection) -> None:
    """Answer calls until the other end of the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB * 2**20,) * 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _time_is_up)
    pipe.send(None)
    while True:
        try:
            call = cast(Call, pipe.recv())
        except EOFError:
            return
        try:
            reply = answer(call)
        except TimeUp:  # the signal came just after the call
            reply = Reply("timeout", call.cpu_seconds, "time-out", None)
        pipe.send(reply)


class TimeUp(BaseException):
    """The CPU time is used up. It is not an `Exception`, because a program may catch those."""


def _time_is_up(number: int, frame: FrameType | None) -> None:
    raise TimeUp


def answer(call: Call) -> Reply:
    """Call the function in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    status: Status = "ok"
    words, result = "", None
    random.seed(0)
    try:
        signal.setitimer(signal.ITIMER_PROF, call.cpu_seconds)
        result = _called(call)
    except TimeUp:
        status, words = "timeout", "time-out"
    except MemoryError:
        status, words = "memory", "more memory than allowed"
    except (Exception, SystemExit):  # noqa: BLE001 - reported
        status, words = "error", traceback.format_exc(limit=-5)[-_WORDS:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Reply(status, resource.getrusage(resource.RUSAGE_SELF).ru_utime - before, words, result)


def _called(call: Call) -> JSON:
    """What the function returns, converted to JSON and back."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(call.source, "program.py", "exec"), names)  # noqa: S102 - that is what this process is for
    function = names[call.function]
    if not callable(function):
        raise TypeError(f"{call.function} is no function")
    if isinstance(call.arguments, Mapping):
        made: object = function(**call.arguments)
    else:
        made = function(*call.arguments)
    reply: JSON = json.loads(json.dumps(made, allow_nan=False))
    return reply
