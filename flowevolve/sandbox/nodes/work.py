"""The work on a node: batches of jobs are run by its own evaluators, and cancelled jobs are killed."""

from __future__ import annotations

import anyio

from flowevolve._util.errors import FlowevolveError
from flowevolve.sandbox.evaluators import Evaluators, Job, TrustedCall
from flowevolve.sandbox.nodes import messages
from flowevolve.sandbox.nodes.messages import Answer, Key, MissingTextsError, Reply, Texts
from flowevolve.sandbox.outcome import Outcome

MOST_CHARACTERS = 2**28
"""How many characters of texts a node keeps."""
MOST_CANCELLED = 10_000
"""How many cancelled jobs a node remembers."""


class NodeWork:
    """The work of one node for one engine. A batch may arrive late or several times."""

    def __init__(self, evaluators: Evaluators, most_characters: int = MOST_CHARACTERS) -> None:
        self._texts = Texts(evaluators.capacity, most_characters)
        self._evaluators = evaluators
        self._under_way: set[_Work] = set()
        self._cancelled: dict[Key, None] = {}
        """The most recently cancelled jobs, oldest first. Their batch may arrive late, and nobody would cancel them
        again.
        """

    async def run(self, message: bytes) -> bytes:
        """Run a batch of jobs one after the other; returns a packed `Reply`."""
        try:
            jobs = [_Work(key, job) for key, job in self._texts.read_batch(message)]
        except MissingTextsError as error:
            return messages.pack_reply(Reply(missing=error.hashes))
        self._under_way.update(jobs)
        answers: list[Answer] = []
        try:
            for work in jobs:
                outcomes = await self._run(work)
                if outcomes is not None:
                    answers.append(Answer(work.key, outcomes))
        except FlowevolveError as error:
            return messages.pack_reply(Reply(answers, broken=str(error)))
        finally:
            for work in jobs:
                work.ended.set()
            self._under_way.difference_update(jobs)
        return messages.pack_reply(Reply(answers))

    async def cancel(self, message: bytes) -> None:
        """Kill jobs that run, and don't begin the others; returns when nothing of them is left."""
        keys = messages.read_keys(message)
        self._cancelled.update(dict.fromkeys(keys))
        while len(self._cancelled) > MOST_CANCELLED:
            del self._cancelled[next(iter(self._cancelled))]
        found = [work for work in self._under_way if work.key in keys]
        for work in found:
            work.scope.cancel()
        for work in found:
            if work.begun:
                await work.ended.wait()

    async def _run(self, work: _Work) -> list[Outcome] | None:
        """The outcomes of the job; None if it was cancelled."""
        if work.key in self._cancelled:
            return None
        outcomes: list[Outcome] | None = None
        with work.scope:
            work.begun = True
            outcomes = await self._evaluators.run(work.job)
        work.ended.set()
        return None if work.scope.cancelled_caught else outcomes


class _Work:
    """A job of a batch that is under way."""

    def __init__(self, key: Key, job: Job | TrustedCall) -> None:
        self.key = key
        self.job = job
        self.scope = anyio.CancelScope()
        self.begun = False
        self.ended = anyio.Event()
