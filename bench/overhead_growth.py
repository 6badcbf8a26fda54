"""How the cost of what a run keeps grows with its length: nothing may grow faster than n log n."""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from flowevolve.archives.pareto import ParetoArchive
from flowevolve.artifact import Artifact
from flowevolve.events import EventLog
from flowevolve.llm.accounting import Account, Totals
from flowevolve.llm.lengths import LengthEstimates, Work
from flowevolve.llm.line import Ask, Line
from flowevolve.llm.types import Usage
from flowevolve.policies.ordering import LaterFirst
from flowevolve.pool import Add, Candidate, Pool
from flowevolve.store.journal import Journal

Grow = Callable[[int], float]
"""Seconds of CPU time for something of size n."""


def pool(size: int) -> float:
    """So many candidates proposed, looked at and committed, each with scores of 10 examples, and GEPA's archive beside
    them; a parent is selected before each. Scores hardly ever tie.
    """
    return _pool(size, lambda rng: rng.random())


def ties(size: int) -> float:
    """The same where scores are 0 or 1, so that every front has as many members as half the candidates."""
    return _pool(size, lambda rng: float(rng.random() < 0.5))


def _pool(size: int, score: Callable[[random.Random], float]) -> float:
    rng = random.Random(0)
    candidates = Pool()
    archive = ParetoArchive()
    artifact = Artifact({"instruction": "x"})
    began = time.process_time()
    for number in range(size):
        parents = tuple(archive.weights())[:1]
        scores = {f"v{example}": score(rng) for example in range(10)}
        candidate = Candidate(f"c{number}", artifact, parents, "reflect", number, scores)
        candidates.register(candidate)
        candidates.descends_from_revoked(parents)
        archive.apply(candidates.commit([Add(candidate)], cause=str(number), time=0.0))
        archive.best()
    return time.process_time() - began


def journal(size: int) -> float:
    """So many events through the log into a journal, until all are on disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        began = time.process_time()
        with Journal(path) as written:
            log = EventLog(time.monotonic)
            log.start()
            log.subscribe(written.event)
            for number in range(size):
                log.emit("item.sent", {"item": f"{number}.0.1", "stage": "evaluate", "version": number})
        seconds = time.process_time() - began
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT count(*) FROM events").fetchone() == (size,)
        return seconds


def accounts(size: int) -> float:
    """Ten times so many calls, with expected lengths, for so many candidates."""
    account, lengths = Account({}), LengthEstimates()
    call = Totals(requests=1, usage=Usage(100, 10), latency_seconds=1.0)
    began = time.process_time()
    for number in range(10 * size):
        work = Work("task", "evaluate", str(number // 10), str(number % 10))
        lengths.expect(work)
        lengths.note(work, number % 100)
        account.add(role="task", model="m", stage="evaluate", candidate=f"c{number // 10}", call=call)
    account.totals()
    return time.process_time() - began


def line(size: int) -> float:
    """So many requests at the gate at once, in groups of 10, each let in, in order."""
    waiting = Line(LaterFirst())
    began = time.process_time()
    for number in range(size):
        waiting.join(Ask(number % 7, f"g{number // 10}", f"c{number // 100}", float(number % 50)))
    while waiting:
        waiting.left(waiting.take().group)
    return time.process_time() - began


PARTS: dict[str, tuple[Grow, int]] = {
    "pool and archive, candidates": (pool, 100_000),
    "the same where scores tie": (ties, 100_000),
    "journal, events": (journal, 1_000_000),
    "accounts and lengths, candidates": (accounts, 100_000),
    "line at the gate, waiting requests": (line, 100_000),
}
"""What is grown, and how far."""
