"""Jobs on nodes that get lost, fall silent and repeat themselves: each has its outcome, and has it once."""

from __future__ import annotations

import json
from typing import get_args

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve._util.errors import BackendUnreachableError
from flowevolve._util.logger import CASE, ITEM, RUN, STAGE
from flowevolve.core.event_body import EventBody
from flowevolve.core.server_event_kinds import NodeJoined, NodeLost, NodeRefused
from flowevolve.sandbox.nodes.leases import MOST_LOSSES, Counts
from flowevolve.sandbox.nodes.membership import LOOK_SECONDS
from tests.support.depth import examples
from tests.support.leasing import Scene
from tests.support.memory_cluster import DELAY_SECONDS, PROCESSOR, Fault


@examples(50)
@given(
    faults=st.lists(st.sampled_from(get_args(Fault)), max_size=MOST_LOSSES - 1),
    jobs=st.lists(st.floats(0.001, 3), max_size=30),
)
def test_every_job_has_its_outcome_once_whatever_goes_wrong(faults: list[Fault], jobs: list[float]) -> None:
    """As long as less goes wrong than has a program taken for the cause."""

    async def go() -> None:
        scene = Scene(2, faults)
        async with scene.evaluators:
            results = await scene.run_all(jobs)
        assert results == jobs
        assert set(scene.ran) == set(jobs)

    clock.run(go, clock="virtual")


def test_a_lost_node_is_made_good_by_the_next_one() -> None:
    async def go() -> None:
        scene = Scene(1, ["lose_after"])
        async with scene.evaluators as evaluators:
            assert (await scene.run(1.0)).result == 1.0
        assert scene.ran == [1.0, 1.0]  # the outcome of the first run never came in
        assert (evaluators.counts.lost_nodes, evaluators.counts.leased_again) == (1, 1)

    clock.run(go, clock="virtual")


def test_what_a_silent_node_says_at_last_is_dropped_and_counted() -> None:
    async def go() -> None:
        scene = Scene(2, ["delay"])
        async with scene.evaluators as evaluators:
            assert (await scene.run(1.0)).result == 1.0
            assert evaluators.counts.dropped_answers == 0
            await anyio.sleep(2 * DELAY_SECONDS)
        assert scene.ran == [1.0, 1.0]
        assert evaluators.counts == Counts(lost_nodes=1, leased_again=1, dropped_answers=1)

    clock.run(go, clock="virtual")


def test_an_answer_to_an_earlier_epoch_does_not_end_a_later_one() -> None:
    async def go() -> None:
        scene = Scene(2, ["delay", "lose_after"])
        async with scene.evaluators as evaluators:
            assert (await scene.run(80.0)).result == 80.0
        assert scene.ran == [80.0] * 3  # what the first said at last came in while the third was running
        assert evaluators.counts == Counts(lost_nodes=2, leased_again=2, dropped_answers=1)

    clock.run(go, clock="virtual")


def test_answers_that_come_again_are_dropped_and_counted() -> None:
    async def go() -> None:
        scene = Scene(1, ["repeat", "repeat"])
        async with scene.evaluators as evaluators:
            assert (await scene.run(1.0)).result == 1.0
            assert (await scene.run(2.0)).result == 2.0
        assert evaluators.counts == Counts(dropped_answers=4)  # one and one, and the first two again

    clock.run(go, clock="virtual")


def test_capacity_follows_nodes_that_come_and_go() -> None:
    async def go() -> None:
        scene = Scene(1)
        scene.cluster.replaces = False
        async with scene.evaluators as evaluators:
            assert evaluators.capacity == 2
            scene.cluster.add()
            await anyio.sleep(5)
            assert evaluators.capacity == 4
            scene.cluster.present.remove("1")
            await anyio.sleep(5)
            assert evaluators.capacity == 2
            assert await scene.run_all([1.0] * 10) == [1.0] * 10
        assert evaluators.counts.lost_nodes == 1

    clock.run(go, clock="virtual")


def test_a_node_that_joins_takes_over_what_waits() -> None:
    async def go() -> None:
        scene = Scene(1)
        async with scene.evaluators, anyio.create_task_group() as tasks:
            tasks.start_soon(scene.run_all, [10.0] * 40)
            await anyio.sleep(1)
            scene.cluster.add()
        assert min(len(node.ran) for node in scene.nodes) >= 15

    clock.run(go, clock="virtual")


def test_a_program_that_each_of_its_nodes_was_lost_with_counts_as_killed() -> None:
    async def go() -> None:
        scene = Scene(1, ["lose_before"] * MOST_LOSSES)
        async with scene.evaluators:
            outcome = await scene.run(1.0)
            assert (outcome.status, outcome.result) == ("killed", None)
            assert "was lost" in outcome.stderr
            assert (await scene.run(2.0)).result == 2.0

    clock.run(go, clock="virtual")


def test_a_cancelled_job_is_killed_where_it_runs_and_others_of_its_batch_go_on() -> None:
    async def go() -> None:
        scene = Scene(1)
        async with scene.evaluators:
            await scene.run_all([0.001] * 200)  # so that it sends several at once
            async with anyio.create_task_group() as tasks:
                cancelled = [tasks.start_soon(scene.run, 50.0) for _ in range(4)]
                for _ in range(4):
                    tasks.start_soon(scene.run, 5.0)
                await anyio.sleep(1)
                for handle in cancelled:
                    handle.cancel()
        (node,) = scene.nodes
        assert 50.0 not in node.ran
        assert node.ran.count(5.0) == 4

    clock.run(go, clock="virtual")


def test_a_cancelled_job_is_not_run_where_its_batch_comes_in_again() -> None:
    async def go() -> None:
        scene = Scene(1, ["repeat"])
        async with scene.evaluators:
            with anyio.move_on_after(1):
                await scene.run(50.0)
            assert (await scene.run(2.0)).result == 2.0
            await anyio.sleep(100)
        assert scene.ran == [2.0]

    clock.run(go, clock="virtual")


def test_a_node_that_does_not_kill_a_cancelled_job_is_killed_itself() -> None:
    async def go() -> None:
        scene = Scene(1, ["delay"])
        async with scene.evaluators:
            with anyio.move_on_after(3):
                await scene.run(1.0)
            assert scene.cluster.nodes["1"].killed.is_set()
            assert (await scene.run(2.0)).result == 2.0

    clock.run(go, clock="virtual")


def test_a_text_is_sent_to_a_node_once() -> None:
    source = "the program " * 1000

    async def go() -> None:
        scene = Scene(2)
        async with scene.evaluators, anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(scene.run, float(number), source)
        for node in scene.cluster.nodes.values():
            assert len(node.sent) > 1
            assert [source.encode() in message for message in node.sent].count(True) == 1

    clock.run(go, clock="virtual")


def test_short_jobs_go_in_batches_and_long_ones_alone() -> None:
    async def go() -> None:
        scene = Scene(2)
        async with scene.evaluators:
            await scene.run_all([0.002] * 400)
            short = sum(len(node.sent) for node in scene.cluster.nodes.values())
            await scene.run_all([1.0] * 100)
            long = sum(len(node.sent) for node in scene.cluster.nodes.values()) - short
        assert short < 100
        assert long >= 60

    clock.run(go, clock="virtual")


def test_a_job_says_which_work_it_is_for() -> None:
    async def go() -> None:
        scene = Scene(1)
        async with scene.evaluators:
            for variable, value in ((RUN, "runs/a"), (ITEM, "17.0"), (STAGE, "evaluate"), (CASE, "one")):
                variable.set(value)
            await scene.run(1.0)
            await scene.run(1.0)
        keys = [json.loads(message)["jobs"][0]["key"] for message in scene.cluster.nodes["1"].sent]
        assert keys == [["runs/a", "17.0", "evaluate", "one", number, 1] for number in (1, 2)]

    clock.run(go, clock="virtual")


def test_measurements_run_on_nodes_of_the_class_with_most_slots_and_programs_everywhere() -> None:
    async def go() -> None:
        scene = Scene(3)
        scene.cluster.machines = {"2": "another"}
        async with scene.evaluators as evaluators, anyio.create_task_group() as tasks:
            assert evaluators.measured_on == PROCESSOR
            for _ in range(12):
                tasks.start_soon(scene.measure, 2.0)
                tasks.start_soon(scene.run, 1.0)
        measured = {name: 2.0 in node.ran for name, node in zip(scene.cluster.nodes, scene.nodes, strict=True)}
        assert measured == {"1": True, "2": False, "3": True}
        assert sorted(scene.ran) == [1.0] * 12 + [2.0] * 12

    clock.run(go, clock="virtual")


def test_where_no_node_of_the_class_that_measures_is_left_measurements_fail_and_name_it() -> None:
    async def go() -> None:
        scene = Scene(2)
        scene.cluster.machines = {"2": "another", "3": "another"}
        scene.evaluators.measured_on = "another"
        async with scene.evaluators:
            await scene.measure(1.0)
            scene.cluster.machines = {}
            scene.cluster.nodes["2"].kill()
            assert (await scene.run(2.0)).result == 2.0
            with pytest.raises(
                BackendUnreachableError, match=f"measured on nodes with 'another'.* all nodes here have {PROCESSOR}"
            ):
                await scene.measure(3.0)
            assert (await scene.run(4.0)).result == 4.0

    clock.run(go, clock="virtual")


def test_nodes_that_come_go_or_are_refused_are_logged_with_what_there_is_then() -> None:
    async def go() -> None:
        scene = Scene(2, refuses=["2"])
        scene.cluster.replaces = False
        told: list[EventBody] = []
        async with scene.evaluators as evaluators:
            evaluators.log_nodes(told.append)
            scene.cluster.add()
            await anyio.sleep(2 * LOOK_SECONDS)
            scene.cluster.nodes["1"].kill()
            await anyio.sleep(2 * LOOK_SECONDS)
        told.remove(NodeRefused("node 2: bubblewrap (bwrap) is not installed"))
        assert told == [
            NodeJoined("1", PROCESSOR, 2, 2),
            NodeJoined("3", PROCESSOR, 2, 4),
            NodeLost("1", "it left the cluster", 2),
        ]

    clock.run(go, clock="virtual")
