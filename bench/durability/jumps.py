"""Runs whose wall clock jumps while they are at work: by an hour to thousands of days, forwards and back.

Their processes see another time of day through libfaketime. The clock that measures durations stays the real one, as it
does when an administrator or a time server sets the clock of a machine.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from bench.durability.audit import faults_at_the_end
from bench.durability.counts import Counts
from bench.durability.kills import kill_often
from bench.durability.moments import events_in
from bench.durability.runs import COMMAND, KEY, SETTINGS, server_process, write_config
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.run_directory import RESULT

HOUR, DAY = 3600, 86400
SHORTEST, LONGEST = HOUR, 9000 * DAY
PAUSES = 0.5, 2.5
"""Seconds from one jump to the next. A process sees a jump within a second."""
KILLED = ("gepa", "ace", "gepa in lockstep")
"""The runs that are killed. None of them starts programs: a thread that waits for a program to end sleeps, and
libfaketime 0.9.10 shifts the deadlines of Python's sleeps with the time of day, although they use the monotonic clock.
"""
BUDGET_SECONDS, LIVES, LIFE_SECONDS = 20, 3, 6.0
"""For the run with a budget in time: its budget, the number of its processes, and how long each killed one lives."""
LATE_SECONDS = 60.0
"""A run with a budget in time may end this much later: it ends what is under way, and processes take time to start."""


@dataclass
class Jumps:
    """The results. ``seconds`` and ``lived`` say how long the run with a budget in time lasted, by its own account and
    by a clock outside. ``faults`` are those of this run and of the runs that were killed.
    """

    jumps: int
    killed: Counts
    seconds: float
    lived: float
    faults: list[str] = field(default_factory=list)


def library() -> str | None:
    """The path of libfaketime, or None where it is not installed."""
    if shutil.which("faketime") is None:
        return None
    asked = subprocess.run(
        ["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


def run_with_jumps(folder: Path, preloaded: str, kills: int, seed: int) -> Jumps:
    with _jumping(folder / "offset", preloaded, random.Random(seed)) as clock:
        (folder / "killed").mkdir()
        killed = kill_often(folder / "killed", kills, seed, KILLED, clock.environment)
        done = Jumps(0, killed, 0.0, 0.0, list(killed.faults))
        _keep_to_a_budget_in_time(folder, clock.environment, done)
        done.jumps = clock.jumps
    return done


def _keep_to_a_budget_in_time(folder: Path, environment: Mapping[str, str], done: Jumps) -> None:
    config, out = folder / "timed.toml", folder / "timed"
    with server_process(Path(os.devnull)) as url:
        write_config(config, url, {**SETTINGS, "budget": {"seconds": BUDGET_SECONDS}, "drain_seconds": 5})
        for life in range(LIVES):
            if events_in(out / JOURNAL) == 0:  # it was killed before it had begun
                shutil.rmtree(out, ignore_errors=True)
            what = ["resume", str(out)] if out.exists() else ["run", str(config), "--out", str(out)]
            began = perf_counter()
            code = _live([*COMMAND, *what], environment, LIFE_SECONDS if life < LIVES - 1 else None)
            done.lived += perf_counter() - began
            if code not in (None, 0):
                done.faults.append(f"with a budget in time, process {life} ended with {code}")
                return
    result = json.loads((out / RESULT).read_text(encoding="utf-8"))
    done.seconds = result["wall_seconds"]
    done.faults += [f"with a budget in time: {fault}" for fault in faults_at_the_end(out, held=True)]
    if result["stop_reason"] != "seconds" or not BUDGET_SECONDS <= done.seconds <= done.lived + LATE_SECONDS:
        done.faults.append(f"with {BUDGET_SECONDS} s: {result['stop_reason']} after {done.seconds} s")
    if not BUDGET_SECONDS <= done.lived <= BUDGET_SECONDS + LATE_SECONDS:
        done.faults.append(f"with {BUDGET_SECONDS} s its processes lived for {done.lived:.0f} s")


def _live(command: list[str], environment: Mapping[str, str], seconds: float | None) -> int | None:
    """Run a process. Returns its exit code, or None if it was killed after this many seconds."""
    env = {**os.environ, **environment, KEY: "timed"}
    try:
        return subprocess.run(command, env=env, capture_output=True, timeout=seconds, check=False).returncode
    except subprocess.TimeoutExpired:
        return None


@dataclass
class _Clock:
    """A wall clock that jumps. ``environment`` has the variables through which a process sees it."""

    environment: Mapping[str, str]
    jumps: int = 0


@contextmanager
def _jumping(offset: Path, preloaded: str, rng: random.Random) -> Iterator[_Clock]:
    ended = threading.Event()
    clock = _Clock(
        {
            "LD_PRELOAD": preloaded,
            "FAKETIME_TIMESTAMP_FILE": str(offset),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
    )

    def jump() -> None:
        while not ended.is_set():
            new = offset.with_suffix(".new")
            seconds = round(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
            new.write_text(f"{rng.choice('+-')}{seconds}\n")
            new.replace(offset)
            clock.jumps += 1
            ended.wait(rng.uniform(*PAUSES))

    jumper = threading.Thread(target=jump)
    jumper.start()
    try:
        yield clock
    finally:
        ended.set()
        jumper.join()
