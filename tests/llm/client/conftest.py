"""Tests of the client run on the virtual clock, unless they talk to real servers."""

from __future__ import annotations

import pytest

from flowevolve._util.clock import VirtualClockLoop


@pytest.fixture
def anyio_backend(jumping_clock: dict[str, type[VirtualClockLoop]]) -> tuple[str, dict[str, type[VirtualClockLoop]]]:
    return ("asyncio", jumping_clock)
