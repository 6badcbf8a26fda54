"""A backend for anyio whose clock jumps to the next thing that is due, so that no test waits."""

import asyncio
import selectors

import pytest


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout is not None and timeout > 0:
            self.now += timeout
        return ready


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self):
        return self._jumping.now


@pytest.fixture(scope="session")
def jumping_clock():
    """The ``backend_options`` of `anyio.run`."""
    return {"loop_factory": _JumpingLoop}
