"""How the cost of a run's data structures grows with its length: nothing may grow faster than n log n."""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import ItemSent
from flowevolve.core.events import EventLog
from flowevolve.core.item_ids import ItemId
from flowevolve.core.model import Usage
from flowevolve.core.pool import Add, Candidate, Pool
from flowevolve.journal.journal import Journal
from flowevolve.llm.client.accounting import Account, Totals
from flowevolve.llm.client.answer_lengths import CallKind, LengthEstimates
from flowevolve.llm.scheduling.request_queue import QueuedRequest, RequestQueue
from flowevolve.policies.ordering import LaterFirst

Grow = Callable[[int], float]
"""Takes a size, and returns the seconds of CPU time for something of that size."""


def pool(size: int) -> float:
    """Propose, look up and commit this many candidates, each with scores of 10 examples, while GEPA's archive listens;
    a parent is selected before each. Scores hardly ever tie.
    """
    return _pool(size, lambda rng: rng.random())


def ties(size: int) -> float:
    """The same with scores of 0 or 1, so that every front has as many members as half the candidates."""
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
    """Write this many events through the log into a journal, until all are on disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        began = time.process_time()
        with closing(Journal(path)) as written:
            log = EventLog(time.monotonic)
            log.start()
            log.subscribe(written.event)
            for number in range(size):
                log.emit(ItemSent(ItemId(f"{number}.0.1"), "generate", "evaluate", "Written", number, (), 0))
        seconds = time.process_time() - began
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT count(*) FROM events").fetchone() == (size,)
        return seconds


def accounts(size: int) -> float:
    """Account for ten calls of each of this many candidates, and estimate the calls' lengths."""
    account, lengths = Account({}), LengthEstimates()
    call = Totals(requests=1, usage=Usage(100, 10), latency_seconds=1.0)
    began = time.process_time()
    for number in range(10 * size):
        work = CallKind("task", "evaluate", str(number // 10), str(number % 10))
        lengths.expect(work)
        lengths.note(work, number % 100)
        account.add(role="task", model="m", stage="evaluate", call=call)
    account.totals()
    return time.process_time() - began


def line(size: int) -> float:
    """Let this many requests wait at the gate at once, in groups of 10, and admit them in order."""
    waiting = RequestQueue(LaterFirst())
    began = time.process_time()
    for number in range(size):
        waiting.join(QueuedRequest(number % 7, f"g{number // 10}", f"c{number // 100}", float(number % 50)))
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
"""The parts whose growth is measured, each with the largest size."""
