"""The workers of an evaluator and its program, with pipes between them. Everything here blocks and runs in threads."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Event, Thread

from flowevolve.sandbox.inside.wire import Request
from flowevolve.sandbox.outcome import Outcome
from flowevolve.sandbox.worker import Worker

with suppress(ImportError):  # Windows has none, and programs are refused there
    import fcntl

GRACE_SECONDS = 0.3
"""How long a program may go on after its evaluator has ended before its sandbox is killed."""
_PIPE_BYTES = 2**20
"""The capacity of a pipe. With more than the usual 64 KB, long messages are sent in fewer pieces."""


def _pipe() -> tuple[int, int]:
    """A pipe that processes of a sandbox can reopen. Anybody may, because they run as another user if we are root."""
    ends = os.pipe()
    os.fchmod(ends[0], 0o666)
    with suppress(OSError):  # a user's total pipe capacity is limited
        fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return ends


class Both:
    """Both workers, for one run of the evaluator."""

    def __init__(self, evaluator: Worker, program: Worker) -> None:
        self._evaluator = evaluator
        self._program = program
        self._judged = Event()
        self._broken: Outcome | None = None
        """How the program ended, if it exceeded a limit."""
        self._ended_both = False
        """Whether it did so before the evaluator had ended."""

    def kill(self) -> None:
        self._evaluator.kill()
        self._program.kill()

    def run(self, asking: Request, asked: Request) -> Outcome | None:
        """Run both, and return the outcome: the evaluator's or, if the program broke it by exceeding a limit, the
        program's. None if the evaluator's sandbox ended and the program was not the cause.
        """
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
