"""What comes in at a node late, again or in another order does not bring back what was cancelled."""

from __future__ import annotations

import anyio

from flowevolve._util import clock
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.evaluators import Job
from flowevolve.sandbox.nodes.messages import Key, pack_batch, pack_keys, read_reply
from flowevolve.sandbox.nodes.work import NodeWork
from tests.support.rehearsal import Rehearsal

SETTINGS = SandboxSettings()


class Node:
    """A node of rehearsals, and a batch of jobs that take so many seconds."""

    def __init__(self, *seconds: float, most_characters: int = 1000) -> None:
        self.evaluators = Rehearsal()
        self.work = NodeWork(self.evaluators, most_characters)
        self.keys = [Key("", "", "", "", number, 1) for number in range(len(seconds))]
        requests = [Sandbox(SETTINGS, self.evaluators).request("source", arguments=[each]) for each in seconds]
        self.jobs = [(key, Job(SETTINGS, request)) for key, request in zip(self.keys, requests, strict=True)]
        self.batch, self.names = pack_batch(self.jobs, known=())

    async def run(self) -> list[object]:
        """What it answers to the batch."""
        reply = read_reply(await self.work.run(self.batch))
        return [answer.outcomes[0].result for answer in reply.answers]

    async def cancel(self, *places: int) -> None:
        await self.work.cancel(pack_keys([self.keys[place] for place in places]))


def test_a_text_that_a_node_no_longer_has_is_missed() -> None:
    async def go() -> None:
        node = Node(1.0, most_characters=0)
        short, _ = pack_batch(node.jobs, known=node.names)
        assert len(short) < len(node.batch)
        assert await node.run() == [1.0]
        assert set(read_reply(await node.work.run(short)).missing) == node.names

    clock.run(go, clock="virtual")


def test_a_cancelled_job_is_not_run_when_its_batch_comes_in_again() -> None:
    async def go() -> None:
        node = Node(50.0, 1.0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(node.run)
            await anyio.sleep(0.5)
            await node.cancel(0)
        assert await node.run() == [1.0]
        assert (node.evaluators.killed, node.evaluators.ran) == ([50.0], [1.0, 1.0])

    clock.run(go, clock="virtual")


def test_a_job_is_not_run_whose_cancellation_comes_in_first() -> None:
    async def go() -> None:
        node = Node(50.0, 1.0)
        await node.cancel(0)
        assert await node.run() == [1.0]
        assert node.evaluators.ran == [1.0]

    clock.run(go, clock="virtual")


def test_a_job_whose_batch_comes_in_twice_at_once_is_killed_both_times() -> None:
    async def go() -> None:
        node = Node(50.0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(node.run)
            tasks.start_soon(node.run)
            await anyio.sleep(0.5)
            await node.cancel(0)
            assert node.evaluators.killed == [50.0, 50.0]
        assert node.evaluators.ran == []

    clock.run(go, clock="virtual")
