"""An evaluator and the program that it scores, each in a sandbox of its own, with pipes between them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread

import anyio

from flowevolve._util import clock
from flowevolve._util.json_types import JSON
from flowevolve.sandbox.inside.wire import Request
from flowevolve.sandbox.outcome import Outcome, no_report
from flowevolve.sandbox.pool import Sandbox
from flowevolve.sandbox.worker import Worker

with suppress(ImportError):  # Windows has none, and programs are refused there
    import fcntl

GRACE_SECONDS = 0.3
"""The time in which a program has to end after its evaluator, before its sandbox is killed."""
_PIPE_BYTES = 2**20
"""What a pipe holds: with more than the usual 64 KB, long messages go over in fewer pieces."""
_SERVE = """\
def serve(**given):
    from flowevolve.sandbox.inside import served
    served.serve(**given)
"""
_ENTRY = "_program.py"


@dataclass(frozen=True, slots=True)
class SandboxPair:
    """A sandbox for evaluators, in which their files can be read, and one for programs, in which they can't."""

    evaluators: Sandbox
    programs: Sandbox

    async def run(
        self, source: str, *, call: str, arguments: Mapping[str, JSON], program: Mapping[str, JSON], name: str
    ) -> Outcome:
        """Run an evaluator and its program until the evaluator has ended, and return the evaluator's outcome.

        ``source``, ``call``, ``arguments`` and ``name`` are the evaluator's, as in `Sandbox.run`; ``program`` has the
        arguments of `flowevolve.sandbox.inside.served.serve`. Both have the same limits. A program that exceeds one
        before the evaluator has ended ends the evaluator as well; the outcome is the program's then. Cancelling kills
        both.
        """
        asking = self.evaluators.request(source, call, arguments, name=name)
        asked = self.programs.request(_SERVE, "serve", program, name=_ENTRY)
        outcome = await self._once(asking, asked)
        if outcome is None:  # a second try in fresh sandboxes shows whether the program caused that
            outcome = await self._once(asking, asked)
        return no_report(asking, None) if outcome is None else outcome

    async def _once(self, asking: Request, asked: Request) -> Outcome | None:
        async with self.evaluators.lent() as evaluator, self.programs.lent() as program:
            both = _Both(evaluator, program)
            limiter = anyio.CapacityLimiter(1)  # the two are waited for in one thread, and no others should hold it up
            return await clock.in_thread_until(both.kill, both.run, asking, asked, limiter=limiter)


def _pipe() -> tuple[int, int]:
    """A pipe that processes of a sandbox can open anew; as they run as another user if we are root, anybody may."""
    ends = os.pipe()
    os.fchmod(ends[0], 0o666)
    with suppress(OSError):  # a user may have only so much of it
        fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return ends


class _Both:
    """The workers of an evaluator and of its program. Everything here blocks and belongs in a thread."""

    def __init__(self, evaluator: Worker, program: Worker) -> None:
        self._evaluator = evaluator
        self._program = program
        self._judged = Event()
        self._broken: Outcome | None = None
        """How the program ended, if it exceeded a limit."""
        self._ended_both = False
        """Whether that was before the evaluator had ended."""

    def kill(self) -> None:
        self._evaluator.kill()
        self._program.kill()

    def run(self, asking: Request, asked: Request) -> Outcome | None:
        """The evaluator's outcome; None if its sandbox ended for no reason of the program's."""
        questions, answers = _pipe(), _pipe()
        serving = Thread(target=self._serve, args=(asked, (questions[0], answers[1])), daemon=True)
        serving.start()
        outcome = self._evaluator.run(asking, (answers[0], questions[1]))
        self._judged.set()
        serving.join(GRACE_SECONDS)
        if serving.is_alive():
            self._program.kill()
            serving.join()
        failed = outcome is None or outcome.status != "ok"
        return self._broken if self._broken is not None and (failed or self._ended_both) else outcome

    def _serve(self, asked: Request, channel: tuple[int, int]) -> None:
        outcome = self._program.run(asked, channel)
        if outcome is None or outcome.status not in ("timeout", "memory", "killed"):
            return
        self._broken, self._ended_both = outcome, not self._judged.is_set()
        if self._ended_both:
            self._evaluator.kill()
