"""Evaluators that run nothing, for tests of what hands jobs to evaluators."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import anyio

from flowevolve.core.events import Log
from flowevolve.sandbox.evaluators import Job, TrustedCall
from flowevolve.sandbox.outcome import Outcome


class Rehearsal:
    """A job takes as many seconds as its argument says, and gives that back."""

    def __init__(self) -> None:
        self.capacity = 2
        self.ran: list[float] = []
        self.killed: list[float] = []
        self.measured_on = "not asked of a node"

    def log_nodes(self, log: Log) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def run(self, job: Job | TrustedCall) -> list[Outcome]:
        assert isinstance(job, Job)
        assert isinstance(job.request.arguments, list)
        (seconds,) = job.request.arguments
        assert isinstance(seconds, float)
        try:
            await anyio.sleep(seconds)
        except anyio.get_cancelled_exc_class():
            self.killed.append(seconds)
            raise
        self.ran.append(seconds)
        return [Outcome("ok", seconds, 0.0, 0.0, "", "", seconds)]
