"""Evaluators on a cluster: each job is leased a slot until it has an outcome, which is taken only once.

Jobs run at least once: a node may be lost before or after it has run a job, and its replies may come late or twice.
Each time a job is leased a slot, it gets a new epoch. An answer counts only if it is the first one to the job's latest
epoch; all others are dropped and counted.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from flowevolve._util import clock
from flowevolve._util.errors import BackendUnreachableError
from flowevolve._util.logger import CASE, ITEM, RUN, STAGE, logger
from flowevolve._util.tasks import beside
from flowevolve.core.events import Log
from flowevolve.sandbox.evaluators import Job, Tell, TrustedCall, tell_nobody
from flowevolve.sandbox.nodes import messages
from flowevolve.sandbox.nodes.cluster import Cluster, NodeLostError, NoNodesError
from flowevolve.sandbox.nodes.membership import LOOK_SECONDS, Membership, OpenNode
from flowevolve.sandbox.nodes.messages import Key, Reply
from flowevolve.sandbox.outcome import Outcome

SILENT_SECONDS = 30.0
"""How long a node may take to give a sign of life, or to kill a program, before it is given up."""
PATIENCE_SECONDS = 300.0
"""How long jobs wait if there is no node for them."""
MOST_LOSSES = 5
"""If this many nodes are lost while running the same program, the program is assumed to have caused it."""
BATCH_SECONDS = 0.3
"""How long a batch should take. Several short programs are sent to a node at once."""
MOST_IN_BATCH = 64


@dataclass(slots=True)
class Counts:
    """Counts of problems that were handled."""

    lost_nodes: int = 0
    leased_again: int = 0
    """Jobs whose node was lost, or did not answer them."""
    dropped_answers: int = 0
    """Answers that came late or twice."""


@dataclass(eq=False, slots=True)
class _Case:
    """A job that has no outcome yet."""

    key: Key
    """The key with the job's latest epoch."""
    job: Job | TrustedCall
    ended: anyio.Event
    node: OpenNode | None = None
    """The node on which it has a slot."""
    losses: int = 0
    outcomes: Sequence[Outcome] = ()
    error: BackendUnreachableError | None = None


class LeasedEvaluators:
    """The `flowevolve.sandbox.evaluators.Evaluators` of a cluster."""

    def __init__(
        self, cluster: Cluster, measure_on: str = "", where: str = "the cluster", tell: Tell = tell_nobody
    ) -> None:
        """``measure_on`` is the class of machines on which pinned jobs run; if empty, the one with the most slots at
        the start.

        ``where`` names the cluster in the lines that ``tell`` receives about its nodes.
        """
        self.counts = Counts()
        self.measured_on = measure_on
        self._cluster = cluster
        self._members = Membership(cluster, where, tell)
        self._waiting: deque[_Case] = deque()
        self._measured: deque[_Case] = deque()
        """Pinned jobs that wait. Only nodes of one class may run them."""
        self._leased: dict[int, _Case] = {}
        """Jobs that have a slot, by their numbers."""
        self._number = 0
        self._seconds = BATCH_SECONDS
        """How long a job takes, on average."""
        self._deserted: float | None = None
        """Since when jobs have waited without a node that may run them; None if none do."""
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup | None = None

    @property
    def capacity(self) -> int:
        return self._members.capacity

    @property
    def _nodes(self) -> dict[str, OpenNode]:
        return self._members.open

    async def __aenter__(self) -> Self:
        """Begin with the nodes that are there.

        Raises:
            InputError: if programs can't be run on any of them; the message has the reason for each.
            BackendUnreachableError: if all are gone again, or the usable ones stay in use.
        """
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._cluster)
            await self._members.begin()
            self.measured_on = self.measured_on or self._commonest()
            self._tasks = await stack.enter_async_context(beside())
            self._tasks.start_soon(self._watch)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks = None
        await self._stack.__aexit__(kind, error, trace)
        if self.counts != Counts():
            logger().info("evaluators.closed", **asdict(self.counts))

    def _commonest(self) -> str:
        """The class of machines with the most slots."""
        slots: Counter[str] = Counter()
        for node in self._nodes.values():
            slots[node.node.machine] += node.node.slots
        return max(sorted(slots), key=slots.__getitem__)

    def log_nodes(self, log: Log) -> None:
        self._members.log_to(log)

    async def run(self, job: Job | TrustedCall) -> list[Outcome]:
        self._number += 1
        key = Key(RUN.get(""), ITEM.get(""), STAGE.get(""), CASE.get(""), self._number, epoch=0)
        case = _Case(key, job, anyio.Event())
        self._queue_of(case).append(case)
        self._lease()
        try:
            await case.ended.wait()
        finally:
            if not case.ended.is_set():
                with anyio.CancelScope(shield=True):
                    await self._withdraw(case)
        if case.error is not None:
            raise case.error
        return list(case.outcomes)

    async def _withdraw(self, case: _Case) -> None:
        """Kill a job that nobody waits for any more."""
        if case.node is None:
            self._queue_of(case).remove(case)
            return
        del self._leased[case.key.number]
        await self._cancel(case.node, [case.key])

    async def _cancel(self, node: OpenNode, keys: Sequence[Key]) -> None:
        """Have a node kill jobs. If it does not confirm this in time, the node itself is killed."""
        with anyio.move_on_after(SILENT_SECONDS) as limit:
            try:
                await node.node.cancel(messages.pack_keys(keys))
            except NodeLostError as error:
                self._lose(node, str(error))
        if limit.cancelled_caught:
            self._lose(node, f"it did not answer for {SILENT_SECONDS:g} s")

    def _lease(self) -> None:
        """Send waiting jobs to nodes that have room, first to the one with the least load."""
        self._lease_from(self._measured, self._measuring())
        self._lease_from(self._waiting, list(self._nodes.values()))

    def _lease_from(self, queue: deque[_Case], nodes: Sequence[OpenNode]) -> None:
        while queue and self._tasks is not None:
            free = [node for node in nodes if node.has_room]
            if not free:
                return
            node = min(free, key=lambda each: each.load)
            batch = self._next_batch(queue)
            for case in batch:
                case.key = case.key._replace(epoch=case.key.epoch + 1)
                case.node = node
                self._leased[case.key.number] = case
            node.batches += 1
            self._tasks.start_soon(self._run_batch, node, [(case.key, case.job) for case in batch])

    def _queue_of(self, case: _Case) -> deque[_Case]:
        return self._measured if case.job.pinned else self._waiting

    def _measuring(self) -> list[OpenNode]:
        return [node for node in self._nodes.values() if node.node.machine == self.measured_on]

    def _next_batch(self, queue: deque[_Case]) -> list[_Case]:
        """Several jobs if they are short and there are many. A job whose node was lost goes alone, because it may be
        the cause.
        """
        share = math.ceil(len(queue) / self.capacity)
        size = max(1, min(share, MOST_IN_BATCH, int(BATCH_SECONDS / max(self._seconds, 1e-3))))
        batch = [queue.popleft()]
        while not batch[0].losses and len(batch) < size and queue and not queue[0].losses:
            batch.append(queue.popleft())
        return batch

    async def _run_batch(self, node: OpenNode, batch: Sequence[tuple[Key, Job | TrustedCall]]) -> None:
        try:
            reply = await self._sent(node, batch)
        except NodeLostError as error:
            self._lose(node, str(error))
        else:
            self._take(reply)
            if reply.broken is not None:
                self._lose(node, reply.broken)
        node.batches -= 1
        self._lease_again([key for key, _ in batch])
        self._lease()

    async def _sent(self, node: OpenNode, batch: Sequence[tuple[Key, Job | TrustedCall]]) -> Reply:
        while True:
            message, texts = messages.pack_batch(batch, node.texts)
            node.texts |= texts
            reply = messages.read_reply(await node.node.run(message))
            if not reply.missing:
                return reply
            node.texts.difference_update(texts)  # next time, all that this batch needs is sent along

    def _take(self, reply: Reply) -> None:
        for answer in reply.answers:
            case = self._leased.get(answer.key.number)
            if case is None or case.key != answer.key:
                self.counts.dropped_answers += 1
                continue
            del self._leased[answer.key.number]
            case.outcomes = answer.outcomes
            case.ended.set()
            self._seconds += (sum(outcome.seconds for outcome in answer.outcomes) - self._seconds) / 16

    def _lease_again(self, keys: Sequence[Key]) -> None:
        """Put jobs that have no outcome and no later epoch back to the front of the queue."""
        for key in reversed(keys):
            case = self._leased.get(key.number)
            if case is None or case.key != key:
                continue
            del self._leased[key.number]
            self.counts.leased_again += 1
            case.node = None
            case.losses += 1
            if case.losses < MOST_LOSSES:
                self._queue_of(case).appendleft(case)
                continue
            case.outcomes = [lost_outcome(case.losses)]
            case.ended.set()

    def _lose(self, node: OpenNode, why: str) -> None:
        """Give a node up, and put its jobs back. If it still answers, the answers are dropped."""
        if self._nodes.get(node.name) is not node:
            return
        self._members.give_up(node, why)
        self.counts.lost_nodes += 1
        self._lease_again([case.key for case in self._leased.values() if case.node is node])
        self._lease()

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(LOOK_SECONDS)
            for node in list(self._nodes.values()):
                if not node.asked and self._tasks is not None:
                    self._tasks.start_soon(self._ask, node)
            hopeless = ""
            try:
                self._compare(await self._cluster.names())
            except NoNodesError as error:
                hopeless = str(error)
            except NodeLostError as error:
                logger().warning("evaluators.cluster_silent", why=str(error))
            self._mind_patience(hopeless)

    async def _ask(self, node: OpenNode) -> None:
        """Ask a node for a sign of life, by asking it to cancel nothing."""
        node.asked = True
        await self._cancel(node, [])
        node.asked = False

    def _compare(self, names: Sequence[str]) -> None:
        """Open new nodes, and give up those that are gone."""
        for name in [name for name in self._nodes if name not in names]:
            self._lose(self._nodes[name], "it left the cluster")
        if self._tasks is not None:
            for name in self._members.unopened(names):
                self._tasks.start_soon(self._open, name)

    async def _open(self, name: str) -> None:
        if not await self._members.join(name):
            return
        self._lease()
        if not self._without_node():
            self._members.say_over()

    def _mind_patience(self, hopeless: str) -> None:
        """End jobs that have waited too long for a node, or wait in vain; ``hopeless`` says why there will be none."""
        waiting = self._without_node()
        if not waiting:
            self._deserted = None
            return
        self._deserted = clock.now() if self._deserted is None else self._deserted
        if not hopeless and clock.now() - self._deserted < PATIENCE_SECONDS:
            self._members.say_awaited(self._lacking(waiting[0]), PATIENCE_SECONDS)
            return
        self._deserted = None
        for case in waiting:
            self._queue_of(case).remove(case)
            case.error = BackendUnreachableError(hopeless or self._given_up(case))
            case.ended.set()

    def _without_node(self) -> list[_Case]:
        """The waiting jobs that no present node may run."""
        return [
            *([] if self._nodes else self._waiting),
            *([] if self._measuring() else self._measured),
        ]

    def _lacking(self, case: _Case) -> str:
        """A message that says what there is no node for."""
        if not case.job.pinned or not self._nodes:
            return "there is no node for programs (sandbox.on)"
        others = " or ".join(sorted({node.node.machine for node in self._nodes.values()}))
        return (
            f"programs are measured on nodes with {self.measured_on!r} (sandbox.measure_on), but all nodes here have "
            f"{others}"
        )

    def _given_up(self, case: _Case) -> str:
        """The error message for a job that has waited too long."""
        line = f"{self._lacking(case)}, and none has come for {PATIENCE_SECONDS:g} s; start one and resume"
        if not case.job.pinned or not self._nodes:
            return line
        return (
            f"{line}, or set sandbox.measure_on to another class, though scores of different classes can't be compared"
        )


def lost_outcome(times: int) -> Outcome:
    """The outcome of a program that was running on this many nodes when they were lost, one after the other."""
    return Outcome("killed", 0.0, 0.0, 0.0, "", f"the machine that it ran on was lost, {times} times")
