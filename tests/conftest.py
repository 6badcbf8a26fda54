"""What all tests share: the event loop they run on, the shared benchmark data, and a watch over blocking calls."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import structlog
from hypothesis import settings

from flowevolve._util.garbage import YOUNG_OBJECTS
from flowevolve.compat.signed_pickles import KEY_VARIABLE
from tests.support.data import find_data
from tests.support.depth import LONG, LONG_EXAMPLES, SHORT_EXAMPLES

settings.register_profile(
    "flowevolve",
    max_examples=LONG_EXAMPLES if LONG else SHORT_EXAMPLES,
    deadline=None,  # how long an example takes is the machine's business
)
settings.load_profile("flowevolve")

gc.set_threshold(YOUNG_OBJECTS, 20, 20)  # as in a run: what is collected while 4,600 tests are is nearly all kept

T = TypeVar("T")


def pytest_collection_finish() -> None:
    """Tests and modules stay to the end, so no collection of garbage need look at them."""
    gc.freeze()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    return find_data()


@pytest.fixture(scope="session", autouse=True)
def signals_as_in_a_terminal() -> None:
    """Who starts the tests in the background, or by nohup, has them ignore these, and all processes that they start."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def key_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests sign journals with a key of their own, not with the one of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, str(tmp_path_factory.mktemp("key") / "journal.key"))
        yield


@pytest.fixture(autouse=True)
def log_records_as_at_first() -> Iterator[None]:
    """A run that a test starts says how records are written, for its whole process; the next test begins without that."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()


@pytest.fixture(autouse=True)
def no_blocking_calls_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual calls that wait for something outside raise where an event loop is running.

    They would hold up every worker of a run. Asking whether a loop is running is exact, where measuring how long a
    callback took would depend on the machine.
    """

    def guarded(name: str, original: Callable[..., T]) -> Callable[..., T]:
        def call(*args: object, **kwargs: object) -> T:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return original(*args, **kwargs)
            raise AssertionError(f"{name} was called on the event loop")

        return call

    monkeypatch.setattr(time, "sleep", guarded("time.sleep", time.sleep))
    monkeypatch.setattr(subprocess, "run", guarded("subprocess.run", subprocess.run))
    monkeypatch.setattr(socket, "create_connection", guarded("socket.create_connection", socket.create_connection))
