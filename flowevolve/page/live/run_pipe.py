"""The pipe between a run and the process that serves its page, seen from that process.

Acts in the page go to the run on standard output, a line of JSON for each act: ``{"id": 7, "by": "ada",
"act": {"act": "pause"}}``. The run answers on standard input: ``{"id": 7, "refused": null}``, or a sentence that says
why not. When the run ends, it closes standard input.
"""

from __future__ import annotations

import json
import os
import threading
from itertools import count
from typing import BinaryIO

import anyio
import anyio.to_thread

from flowevolve._util.errors import InputError
from flowevolve.core.acts import Act

ANSWER_SECONDS = 30.0
"""How long the page waits for the run's answer."""
MOST_UNANSWERED = 100
"""The most acts that may wait for an answer at the same time."""
LONGEST_ANSWER = 64 * 1024
"""The most bytes of a line with an answer."""


class RunPipe:
    """The pipe to the run whose page this process serves. `listen` must run as long as there are acts."""

    def __init__(self, answers: BinaryIO, acts: BinaryIO) -> None:
        self._answers = answers
        self._acts = acts
        self._numbers = count(1)
        self._writing = anyio.Lock()
        self._written = threading.Lock()
        """Held by the thread that writes, which goes on until the run has read all, even if nobody waits for it."""
        self._unanswered: dict[int, _Answer] = {}

    async def act(self, act: Act, by: str) -> str | None:
        """Have the run do an act; returns why it refuses, or None if it was done.

        Raises:
            InputError: if the run gives no answer, or takes in nothing.
        """
        if len(self._unanswered) >= MOST_UNANSWERED:
            raise InputError(f"The run has not answered {MOST_UNANSWERED} acts yet; try again when it has.")
        number, answer = next(self._numbers), _Answer()
        self._unanswered[number] = answer
        line = json.dumps({"id": number, "by": by, "act": act.to_json()}) + "\n"
        try:
            with anyio.move_on_after(ANSWER_SECONDS):
                async with self._writing:
                    taken_in = await anyio.to_thread.run_sync(self._write, line.encode(), abandon_on_cancel=True)
                if not taken_in:
                    raise InputError("The run takes in nothing at present; try again later.")
                await answer.came.wait()
                return answer.refused
        except OSError:
            raise InputError("The run has ended.") from None
        finally:
            del self._unanswered[number]
        raise InputError("The run has not answered yet. If it does what you asked for, its log will say so.")

    def _write(self, line: bytes) -> bool:
        """Write a whole line, however long the run takes to read it. Returns False if another line is still being
        written.
        """
        if not self._written.acquire(blocking=False):
            return False
        try:
            while line:
                line = line[os.write(self._acts.fileno(), line) :]
        finally:
            self._written.release()
        return True

    async def listen(self) -> None:
        """Take in the run's answers until it closes the pipe."""
        while line := await anyio.to_thread.run_sync(self._answers.readline, LONGEST_ANSWER):
            match json.loads(line):
                case {"id": int(number), "refused": (str() | None) as refused} if number in self._unanswered:
                    self._unanswered[number].give(refused)


class _Answer:
    """What the run says to an act."""

    def __init__(self) -> None:
        self.came = anyio.Event()
        self.refused: str | None = None

    def give(self, refused: str | None) -> None:
        self.refused = refused
        self.came.set()
