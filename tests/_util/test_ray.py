"""The connection to a real Ray cluster, which several runs of a process share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from threading import Barrier, Thread

import anyio
import pytest
import ray

from flowevolve._util.errors import InputError
from flowevolve._util.ray import connected
from tests.support.ray_cluster import cluster

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster(nodes=0) as made:
        yield made.address


async def test_the_last_of_several_runs_disconnects(address: str) -> None:
    async with AsyncExitStack() as second:
        async with connected(address, "sandbox.address"):
            await second.enter_async_context(connected(address, "vllm.address"))
        assert ray.nodes()
    assert not ray.is_initialized()


async def test_runs_that_begin_at_once_in_threads_of_their_own_share_one(address: str) -> None:
    both, found = Barrier(2, timeout=60), list[int]()

    async def use() -> None:
        async with connected(address, "sandbox.address"):
            await anyio.to_thread.run_sync(both.wait)
            found.append(len(ray.nodes()))

    threads = [Thread(target=anyio.run, args=(use,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join)
    assert found == [1, 1]
    assert not ray.is_initialized()


async def test_a_second_cluster_at_the_same_time_is_refused(address: str) -> None:
    async with connected(address, "sandbox.address"):
        with pytest.raises(InputError, match=rf"vllm.address: another run of this process uses .* at {address!r}"):
            async with connected("127.0.0.1:1", "vllm.address"):
                pass
        async with connected("auto", "vllm.address"):
            assert ray.nodes()


async def test_after_a_failure_another_can_connect(address: str) -> None:
    with pytest.raises(InputError, match="no Ray cluster at"):
        async with connected("127.0.0.1:1", "sandbox.address"):
            pass
    async with connected(address, "sandbox.address"):
        assert ray.nodes()


async def test_a_connection_that_the_program_made_itself_stays(address: str) -> None:
    ray.init(address, log_to_driver=False, logging_level="ERROR")
    try:
        async with connected(address, "sandbox.address"):
            pass
        assert ray.nodes()
    finally:
        ray.shutdown()
