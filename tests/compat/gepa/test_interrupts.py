"""Runs inside an event loop, and runs that are interrupted there or elsewhere."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.gepa_dummies import HashAdapter, Silent, optimize


def test_it_runs_inside_an_event_loop() -> None:
    """As in a notebook, which it holds up as gepa does."""

    async def notebook() -> Any:
        return optimize(HashAdapter())

    assert asyncio.run(notebook()).num_candidates > 1


def test_inside_an_event_loop_an_interrupt_ends_it() -> None:
    """Which comes in the thread of that loop, not in the run's."""
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    class Interrupting(HashAdapter):
        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            if len(self.calls) == 3:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                interrupted.wait()
            return super().evaluate(batch, candidate, capture_traces)

    async def notebook() -> None:
        optimize(adapter, max_metric_calls=5000)

    adapter = Interrupting()
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(notebook())
    finally:
        signal.signal(signal.SIGINT, before)
    assert sum(len(batch) for batch, _, _ in adapter.calls) < 4900


HUNG = """
import os
import signal
import threading

from flowevolve.compat.gepa import optimize
from tests.support.gepa_dummies import SEED, TRAIN, VAL, HashAdapter, reflect


def press_until_ended():
    while True:  # the pause tells one Ctrl-C from another
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(0.4)


class Hanging(HashAdapter):
    def evaluate(self, batch, candidate, capture_traces=False):
        if len(self.calls) == 3:
            press_until_ended()
        return super().evaluate(batch, candidate, capture_traces)


optimize(SEED, TRAIN, VAL, adapter=Hanging(), reflection_lm=reflect, max_metric_calls=5000)
print("went on")
"""


def test_a_second_interrupt_ends_a_process_whose_adapter_hangs() -> None:
    done = subprocess.run([sys.executable, "-c", HUNG], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130
    assert "went on" not in done.stdout
    said, ended = done.stderr.splitlines()[-2:]
    where = r"Hanging\.evaluate\(\) at line 19 of <string>, called \d+ s ago"
    assert re.match(rf"waiting for {where}; Ctrl-C again ends", said)
    assert re.match(f"ended at once, in the midst of {where}", ended)


def test_and_says_that_its_run_goes_on(tmp_path: Path) -> None:
    script = HUNG.replace("max_metric_calls", f"run_dir={str(tmp_path / 'run')!r}, max_metric_calls")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1].startswith(f"what was done is in {tmp_path / 'run'}: to go on, call optimize")


def test_an_interrupt_ends_it() -> None:
    class Interrupting(HashAdapter):
        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            if len(self.calls) == 3:
                signal.raise_signal(signal.SIGINT)
            return super().evaluate(batch, candidate, capture_traces)

    adapter, logger = Interrupting(), Silent()
    with pytest.raises(KeyboardInterrupt) as interrupt:
        optimize(adapter, max_metric_calls=5000, logger=logger)
    assert len(adapter.calls) < 10
    assert logger.lines[-1] == "flowevolve: interrupted; without run_dir nothing is kept"
    assert interrupt.value.__context__ is None
