"""The workers of an evaluator and of its program, with pipes between them. Everything here blocks, in threads."""

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
"""The time in which a program has to end after its evaluator, before its sandbox is killed."""
_PIPE_BYTES = 2**20
"""What a pipe holds: with more than the usual 64 KB, long messages go over in fewer pieces."""


def _pipe() -> tuple[int, int]:
    """A pipe that processes of a sandbox can open anew; as they run as another user if we are root, anybody may."""
    ends = os.pipe()
    os.fchmod(ends[0], 0o666)
    with suppress(OSError):  # a user may have only so much of it
        fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return ends


class Both:
    """The two workers, for one run of the evaluator."""

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
