"""The same calls without a journal and with one, and the difference in CPU time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Literal

import anyio

from bench._lib.stats import spread
from flowevolve._util import clock
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost as Spent
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.event_kinds import CandidateProposed, FlowClosed, ItemDone, ItemSent, ItemTaken
from flowevolve.core.events import EventLog
from flowevolve.core.item_ids import ItemId
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Rollout, Score
from flowevolve.journal.journal import Journal, Sync
from flowevolve.stages.payloads import Rolled, Selected

CALLS_PER_SECOND = 500
TICK_SECONDS = 0.01
EVENTS_PER_CALL = 5
CALLS_PER_PAYLOAD = 4
BUDGET_SECONDS = 1 / CALLS_PER_SECOND
REPEATS = 5
PROSE = "the answer depends on what the second note says about the year in which the bridge was opened to trains"
Way = Literal["none", "written", "settled"]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one pass. CPU times are per call, in microseconds; ``process`` counts all threads."""

    loop: float
    process: float
    bytes_per_call: float
    wait_ms: float
    """The mean time that a call waited until it was on disk, in milliseconds; 0 if none waited."""


def text(seed: int, length: int) -> str:
    """Words in a random order, so that the text compresses about as well as prose does."""
    return " ".join(Random(seed).choices(PROSE.split(), k=length // 4))[:length]


class Work:
    """The calls and payloads of a run: 20 candidates' prompts, 300 examples, every reply different."""

    def __init__(self) -> None:
        self.artifacts = [Artifact({"system_prompt": text(number, 1500)}) for number in range(20)]
        self._examples = [text(1000 + number, 3000) for number in range(300)]
        self._replies = [text(5000 + number, 600) for number in range(1000)]
        scores = {f"example-{number}": number / 90 for number in range(90)}
        parents = [Candidate(f"c{place}", each).scored(scores) for place, each in enumerate(self.artifacts)]
        rollouts = tuple(
            Rollout(f"example-{number}", self._replies[number], Score(0.5, "wrong", passed=False))
            for number in range(3)
        )
        self.payloads = [Rolled(Selected(parent, ("system_prompt",), ("a", "b", "c")), rollouts) for parent in parents]

    def call(self, number: int, now: float) -> CallRecord:
        prompt = self.artifacts[number % 20]["system_prompt"]
        user = f"{self._examples[number * 13 % 300]}"
        request = ChatRequest("model", (Message("system", prompt), Message("user", user)), seed=number)
        scope = CallScope("evaluate", f"{number // 90}.0.0/example-{number % 90}", f"c{number % 20}", 2, 0)
        reply = ChatReply(f"{number} {self._replies[number % 1000]}", Usage(1100, 150, 900))
        return CallRecord("task", scope, request, reply, None, 1, now, now, now)


async def produce(calls: int, way: Way, sync: Sync) -> Cost:
    work = Work()
    log = EventLog(anyio.current_time)
    log.start()
    waits: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        with nullcontext() if way == "none" else closing(Journal(path, sync=sync)) as journal:
            if journal is not None:
                log.subscribe(journal.event)
            for number, artifact in enumerate(work.artifacts):
                log.emit(CandidateProposed.of(Candidate(f"c{number}", artifact), ItemId("0")))

            async def one(number: int) -> None:
                record = work.call(number, anyio.current_time())
                if journal is not None:
                    journal.call(record)
                _emit(log, work, number)
                if journal is not None and way == "settled":
                    began = anyio.current_time()
                    await journal.settled()
                    waits.append(anyio.current_time() - began)

            loop_began, process_began = time.thread_time(), time.process_time()
            await _at_a_steady_rate(calls, one)
            loop = time.thread_time() - loop_began
        process = time.process_time() - process_began
        size = path.stat().st_size if path.exists() else 0
    mean_wait = sum(waits) / len(waits) if waits else 0.0
    return Cost(loop / calls * 1e6, process / calls * 1e6, size / calls, mean_wait * 1e3)


def _emit(log: EventLog, work: Work, number: int) -> None:
    item = ItemId(f"{number // 90}.0.{number}")
    payload = None if number % CALLS_PER_PAYLOAD else work.payloads[number % 20]
    log.emit(ItemSent(item, "generate", "evaluate", "Written", number // 50, (), 0), payload)
    for _ in range(EVENTS_PER_CALL - 2):
        log.emit(ItemTaken(item, "evaluate", 1, None))
    if number % 90 == 89:
        log.emit(FlowClosed(number // 90))
    else:
        log.emit(ItemDone(item, "evaluate", "consumed", "", 0.0, Spent()))


async def _at_a_steady_rate(calls: int, one: Callable[[int], Coroutine[object, object, None]]) -> None:
    per_tick = round(CALLS_PER_SECOND * TICK_SECONDS)
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for tick in range(calls // per_tick):
            await anyio.sleep_until(began + tick * TICK_SECONDS)
            for number in range(tick * per_tick, (tick + 1) * per_tick):
                tasks.start_soon(one, number)


def measure(calls: int, sync: Sync = "normal", repeats: int = REPEATS) -> dict[str, object]:
    """The journal's cost per call: what it adds to the CPU time of the same calls without it, in microseconds."""
    ways: Sequence[Way] = ("none", "written", "settled")
    costs: dict[Way, list[Cost]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way in ways:  # in turns, so that other load on the machine slows all ways alike
            costs[way].append(clock.run(produce, calls, way, sync))
    found: dict[str, object] = {}
    for way in ways[1:]:
        pairs = list(zip(costs["none"], costs[way], strict=True))
        loop = spread([cost.loop - bare.loop for bare, cost in pairs])
        thread = spread([(cost.process - cost.loop) - (bare.process - bare.loop) for bare, cost in pairs])
        found[way] = {
            "loop_us": asdict(loop),
            "share_of_a_call": round(loop.median / 1e6 / BUDGET_SECONDS, 4),
            "thread_us": asdict(thread),
            "bytes": round(costs[way][-1].bytes_per_call),
            "wait_ms": asdict(spread([cost.wait_ms for _, cost in pairs])),
        }
    return found
