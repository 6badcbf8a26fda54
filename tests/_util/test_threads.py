"""What is under way in threads is told by the function, the line that it is at, and for how long."""

from __future__ import annotations

import threading

import pytest

from flowevolve._util.threads import noted, under_way


@pytest.mark.parametrize(("calls", "often"), [(1, ""), (3, ", 3 times")])
def test_calls_that_are_at_the_same_line_are_told_together(calls: int, often: str) -> None:
    entered, release = threading.Semaphore(0), threading.Event()

    def enter() -> None:
        entered.release()
        release.wait()

    def held() -> None:
        enter()

    threads = [threading.Thread(target=noted, args=(held,)) for _ in range(calls)]
    for thread in threads:
        thread.start()
    for _ in threads:
        entered.acquire()
    told = [each for each in under_way() if "held()" in each]
    release.set()
    for thread in threads:
        thread.join()
    assert len(told) == 1
    assert told[0].partition(" s ago")[2] == often
