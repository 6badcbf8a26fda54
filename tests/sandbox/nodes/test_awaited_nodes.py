"""Nodes that are refused, in use or slow to begin: what a run waits for, and what it says meanwhile."""

from __future__ import annotations

import anyio
import pytest

from flowevolve._util import clock
from flowevolve._util.errors import BackendUnreachableError, InputError
from flowevolve.core.event_body import EventBody
from flowevolve.core.server_event_kinds import NodeAwaited, NodeJoined, NodeLost, NodeRefused
from flowevolve.sandbox.nodes.leases import PATIENCE_SECONDS
from flowevolve.sandbox.nodes.membership import IN_USE_SECONDS, LOOK_SECONDS
from tests.support.leasing import Scene
from tests.support.memory_cluster import PROCESSOR


def test_where_no_node_is_left_jobs_wait_and_then_fail() -> None:
    async def go() -> None:
        scene = Scene(1)
        scene.cluster.replaces = False
        async with scene.evaluators as evaluators:
            scene.cluster.present.clear()
            await anyio.sleep(5)
            assert evaluators.capacity == 0
            with pytest.raises(BackendUnreachableError, match="no node for programs"):
                await scene.run(1.0)
            scene.cluster.add()
            assert (await scene.run(1.0)).result == 1.0

    clock.run(go, clock="virtual")


def test_where_no_node_will_come_jobs_fail_at_once_and_say_why() -> None:
    async def go() -> None:
        scene = Scene(1)
        async with scene.evaluators as evaluators:
            scene.cluster.hopeless = "all jobs have ended"
            scene.cluster.nodes["1"].kill()
            began = clock.now()
            with pytest.raises(BackendUnreachableError, match="all jobs have ended"):
                await scene.run(1.0)
            assert clock.now() - began < PATIENCE_SECONDS / 10
            assert evaluators.capacity == 0

    clock.run(go, clock="virtual")


def test_jobs_of_a_node_that_comes_in_time_never_notice() -> None:
    async def go() -> None:
        scene = Scene(1)
        scene.cluster.replaces = False
        async with scene.evaluators, anyio.create_task_group() as tasks:
            scene.cluster.present.clear()
            await anyio.sleep(5)
            tasks.start_soon(scene.run_all, [1.0, 2.0, 3.0])
            await anyio.sleep(PATIENCE_SECONDS / 2)
            scene.cluster.add()
        assert sorted(scene.nodes[1].ran) == [1.0, 2.0, 3.0]

    clock.run(go, clock="virtual")


def test_a_node_that_can_not_run_programs_is_refused_by_name() -> None:
    async def go() -> None:
        scene = Scene(2, refuses=["1"])
        async with scene.evaluators as evaluators:
            assert evaluators.capacity == 2
            assert (await scene.run(1.0)).result == 1.0
        with pytest.raises(InputError, match=r"node 1: bubblewrap .* node 2: bubblewrap"):
            async with Scene(2, refuses=["1", "2"]).evaluators:
                pass

    clock.run(go, clock="virtual")


def test_a_node_that_stays_in_use_beside_a_refused_one_is_something_that_may_be_had_later() -> None:
    async def go() -> None:
        scene = Scene(2, refuses=["1"])
        scene.cluster.occupied = {"2"}
        said = r"all nodes .* in use for 120 s: node 2 is in use .* these can't be used: node 1: bubblewrap"
        with pytest.raises(BackendUnreachableError, match=said):
            async with scene.evaluators:
                pass
        assert clock.now() == IN_USE_SECONDS

    clock.run(go, clock="virtual")


def test_a_node_that_dies_while_it_is_opened_beside_a_refused_one_is_nothing_to_wait_for() -> None:
    async def go() -> None:
        scene = Scene(2, refuses=["1"])
        scene.cluster.dying = {"2"}
        with pytest.raises(InputError, match=r"^node 1: bubblewrap \(bwrap\) is not installed$"):
            async with scene.evaluators:
                pass
        assert (clock.now(), scene.told) == (0.0, [])

    clock.run(go, clock="virtual")


def test_a_run_waits_for_a_node_in_use_and_says_so_and_when_it_goes_on() -> None:
    async def go() -> None:
        scene = Scene(2, refuses=["1"])
        scene.cluster.occupied = {"2"}
        events: list[EventBody] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(free, scene)
            async with scene.evaluators as evaluators:
                evaluators.log_nodes(events.append)
                assert (await scene.run(1.0)).result == 1.0
        assert scene.told == [
            "the Ray cluster: node 2 is in use by another run; waiting for 120 s at most",
            "the Ray cluster: the wait is over; slots for programs: 2",
        ]
        awaited = NodeAwaited("the Ray cluster: node 2 is in use by another run", IN_USE_SECONDS)
        events.remove(NodeRefused("node 1: bubblewrap (bwrap) is not installed"))
        assert events == [awaited, NodeJoined("2", PROCESSOR, 2, 2)]

    async def free(scene: Scene) -> None:
        await anyio.sleep(IN_USE_SECONDS / 2)
        assert len(scene.told) == 1
        scene.cluster.occupied.clear()

    clock.run(go, clock="virtual")


def test_a_node_in_use_beside_a_free_one_is_taken_when_it_is_free() -> None:
    async def go() -> None:
        scene = Scene(2)
        scene.cluster.occupied = {"2"}
        async with scene.evaluators as evaluators:
            assert (evaluators.capacity, clock.now()) == (2, 0.0)
            scene.cluster.occupied.clear()
            await anyio.sleep(2 * LOOK_SECONDS)
            assert evaluators.capacity == 4
        assert scene.told == []

    clock.run(go, clock="virtual")


def test_nodes_that_are_slow_to_begin_are_said_to_be_awaited() -> None:
    async def go() -> None:
        scene = Scene(1)
        scene.cluster.open_seconds = 30.0
        async with scene.evaluators:
            assert clock.now() == 30.0
        assert scene.told == [
            "the Ray cluster: 1 node has not said yet whether programs can run there; waiting for 120 s at most",
            "the Ray cluster: the wait is over; slots for programs: 2",
        ]

    clock.run(go, clock="virtual")


def test_nodes_that_are_slow_and_then_in_use_are_said_to_be_awaited_for_both() -> None:
    async def go() -> None:
        scene = Scene(1)
        scene.cluster.open_seconds = 30.0
        scene.cluster.occupied = {"1"}
        with pytest.raises(BackendUnreachableError, match="in use"):
            async with scene.evaluators:
                pass
        slow, in_use = scene.told
        assert "1 node has not said yet" in slow
        assert "node 1 is in use by another run" in in_use

    clock.run(go, clock="virtual")


def test_a_node_of_another_class_does_not_end_the_wait_for_one_that_measures() -> None:
    async def go() -> None:
        scene = Scene(2)
        scene.cluster.machines = {"3": "another", "4": PROCESSOR}
        async with scene.evaluators, anyio.create_task_group() as tasks:
            scene.cluster.replaces = False
            scene.cluster.present = {"3"}
            await anyio.sleep(5)
            tasks.start_soon(scene.measure, 1.0)
            await anyio.sleep(5)
            scene.cluster.machines["5"] = "another"
            scene.cluster.present.add("5")
            await anyio.sleep(5)
            awaited = f"programs are measured on nodes with '{PROCESSOR}'"
            assert [awaited in line for line in scene.told] == [False, False, True]
            scene.cluster.present.add("4")
        assert scene.told[3:] == ["the Ray cluster: the wait is over; slots for programs: 6"]

    clock.run(go, clock="virtual")


def test_programs_that_wait_in_mid_run_say_what_for_and_when_they_go_on() -> None:
    async def go() -> None:
        scene = Scene(1)
        scene.cluster.replaces = False
        events: list[EventBody] = []
        async with scene.evaluators as evaluators, anyio.create_task_group() as tasks:
            evaluators.log_nodes(events.append)
            scene.cluster.present.clear()
            await anyio.sleep(5)
            tasks.start_soon(scene.run_all, [1.0, 2.0])
            await anyio.sleep(PATIENCE_SECONDS / 2)
            scene.cluster.add()
        assert scene.told == [
            "the Ray cluster: node 1 is lost: it left the cluster; slots left: 0",
            "the Ray cluster: there is no node for programs (sandbox.on); waiting for 300 s at most",
            "the Ray cluster: the wait is over; slots for programs: 2",
        ]
        kinds = [type(event) for event in events]
        assert kinds == [NodeJoined, NodeLost, NodeAwaited, NodeJoined]

    clock.run(go, clock="virtual")
