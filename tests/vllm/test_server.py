"""How often a server of ours is started again. On the virtual clock."""

from __future__ import annotations

import anyio
import pytest

from flowevolve._util.clock import VirtualClockLoop
from flowevolve._util.errors import BackendUnreachableError
from flowevolve.vllm.server import STEADY_SECONDS, ServerChange, keep_alive

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, type[VirtualClockLoop]]]:
    return ("asyncio", {"loop_factory": VirtualClockLoop})


class Mortal:
    """A replica that lives for so many seconds each time; one that should live for None of them can't be started."""

    url = "http://fake/v1"

    def __init__(self, *lives: float | None) -> None:
        self._lives = list(lives)
        self.starts = 0

    async def start(self) -> None:
        self.starts += 1
        if self._lives[0] is None:
            del self._lives[0]
            await anyio.sleep(STEADY_SECONDS)
            raise BackendUnreachableError("it can't be started")

    async def death(self) -> str:
        seconds = self._lives.pop(0)
        assert seconds is not None
        await anyio.sleep(seconds)
        return "it died"

    async def stop(self) -> None:
        await anyio.lowlevel.checkpoint()


async def starts(restarts: int, *lives: float | None) -> int:
    """How often a replica with these lives is started again, until it is given up."""
    told: list[ServerChange] = []
    replica = Mortal(*lives)
    await keep_alive(replica, restarts, told.append)
    assert [change.kind for change in told] == ["died"] * replica.starts + ["gave_up"]
    assert told[-1].detail.endswith(f"after {restarts} restarts")
    return replica.starts


async def test_one_that_dies_again_and_again_is_given_up() -> None:
    assert await starts(3, 10, 10, 10, 10) == 3


async def test_restarts_are_counted_anew_after_an_hour_of_health() -> None:
    day = 24 * STEADY_SECONDS
    assert await starts(3, *[day] * 9, 10, 10, 10) == 3 + 8


async def test_time_in_which_it_could_not_be_started_is_none_of_health() -> None:
    assert await starts(2, 10, None, None) == 2


async def test_one_that_is_never_to_be_started_again_is_not() -> None:
    assert await starts(0, 24 * STEADY_SECONDS) == 0
