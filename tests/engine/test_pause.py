"""Pauses: who waits, and until when."""

from __future__ import annotations

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from flowevolve.engine.pause import Paused


@pytest.mark.asyncio
@pytest.mark.parametrize("items", [False, None])
async def test_items_wait_until_the_pause_is_over_or_is_one_of_new_flows_alone(items: bool | None) -> None:
    pause = Paused()
    await pause.wait_for_items()
    pause.begin(items=True)
    went_on = False

    async def wait() -> None:
        nonlocal went_on
        await pause.wait_for_items()
        went_on = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await wait_all_tasks_blocked()
        assert (went_on, pause.new_flows) == (False, True)
        if items is None:
            assert pause.end()
        else:
            pause.begin(items=items)
    assert went_on
    assert (pause.new_flows, pause.items) == (items is False, False)


def test_there_may_be_no_pause_to_end() -> None:
    pause = Paused()
    assert not pause.end()
    pause.begin(items=False)
    assert pause.end()
