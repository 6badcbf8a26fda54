"""A backend for anyio on the virtual clock, so that no test waits."""

from __future__ import annotations

import pytest

from flowevolve._util.clock import VirtualClockLoop


@pytest.fixture(scope="session")
def jumping_clock() -> dict[str, type[VirtualClockLoop]]:
    """The ``backend_options`` of `anyio.run`."""
    return {"loop_factory": VirtualClockLoop}
