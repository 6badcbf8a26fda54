"""SIGKILL at random moments: real processes against a simulated server in a process of its own.

A run is started, killed, resumed, killed, … until it ends; then the next one starts with another seed. Now and then its
journal is compacted between two processes, and the compaction may be killed, too. At every kill the bench notes how
much is in the journal. When a run has ended, its journal, these notes and the server's log together say whether
anything that was in the journal at a kill was lost, done twice or paid for twice.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import cycle, islice
from pathlib import Path
from threading import Lock

from bench.durability.audit import Books, faults_at_the_end, key_of
from bench.durability.compaction import compact_or_kill
from bench.durability.counts import Counts, count
from bench.durability.moments import events_in, program_runs, what_it_did
from bench.durability.runs import COMMAND, CONCURRENCY, KEY, KILLED_RUNS, server_process, write_config
from bench.durability.server_log import ServerLog
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RESULT

LIFE_SECONDS, STARTING_SECONDS, ENDING_SECONDS = 4.0, 2.0, 0.5
"""A process is killed within this many seconds of its first event, of its start, or of saying that it stops."""
LONGEST_START = 60.0
"""The most seconds that a process may take to its first event."""
MOST, ENDINGS = 12, 2
"""At most this many processes of one run are killed, so that all algorithms have their turn: first at any moment, then
as the run ends.
"""
AT_A_TIME = 3
"""How many runs are under way at a time."""
PROGRAMS = 0.4
"""Where runs evaluate programs, the share of processes that are killed as soon as their journal says that one is
running.
"""
STOPPING = b"stopping: "
"""Part of the line by which a process says that its run is ending."""
COMPACTED = 0.25
"""The share of kills after which the journal is compacted."""
EARLY = 0.15
"""The share of processes that are killed within ``STARTING_SECONDS``."""


@dataclass(frozen=True)
class Mark:
    """How much was in the journal when a process was killed."""

    process: str
    events: int
    calls: int
    digest: bytes


def kill_often(
    folder: Path, kills: int, seed: int, only: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Counts:
    """Kill this many processes, and start as many runs as that takes: one of each algorithm, then again from the first.

    ``environment`` has variables that the runs' processes get in addition to those of this one.
    """
    names = only or tuple(KILLED_RUNS)
    with ExitStack() as servers:
        served = dict[str, _Server]()
        for world in sorted({KILLED_RUNS[name].world for name in names}):
            log = folder / f"{world}.log"
            served[world] = _Server(servers.enter_context(server_process(log, "--world", world)), log)
        killing = _Killing(folder, kills, seed, names, served, environment or {})
        with ThreadPoolExecutor(AT_A_TIME) as workers:
            for work in [workers.submit(killing.work) for _ in range(AT_A_TIME)]:
                work.result()
    return killing.counts


@dataclass(frozen=True)
class _Server:
    url: str
    log: Path


class _Killing:
    """What the workers share. Each worker takes one run after another until enough processes have been killed."""

    def __init__(
        self,
        folder: Path,
        kills: int,
        seed: int,
        names: Sequence[str],
        served: Mapping[str, _Server],
        environment: Mapping[str, str],
    ) -> None:
        self.counts = Counts()
        self.environment = environment
        self._folder = folder
        self._kills = kills
        self._seed = seed
        self._served = served
        self._names = enumerate(cycle(names))
        self._left = kills
        self._lock = Lock()

    def work(self) -> None:
        while self._left > 0:
            with self._lock:
                number, name = next(self._names)
            run = self._run(number, name)
            run.run_to_the_end(self._served[KILLED_RUNS[name].world].log)
            with self._lock:
                self.counts.add(run.counts)
                print(
                    f"run {number}, {name}: {run.counts.kills} kills; so far {self._kills - self._left} kills, and in "
                    f"runs that have ended {len(self.counts.faults)} faults",
                    flush=True,
                )

    def _run(self, number: int, name: str) -> _Run:
        killed, config = KILLED_RUNS[name], self._folder / f"{number}.toml"
        settings = {**killed.settings, "seed": number, "budget": killed.budget}
        write_config(config, self._served[killed.world].url, settings)
        return _Run(name, self._folder / f"run-{number}", config, random.Random(f"{self._seed} {number}"), self)

    def killed(self) -> None:
        with self._lock:
            self._left -= 1

    @property
    def enough(self) -> bool:
        return self._left <= 0


class _Run:
    """One run, killed and resumed until it ends."""

    def __init__(self, name: str, directory: Path, config: Path, rng: random.Random, killing: _Killing) -> None:
        self.counts = Counts(runs=1)
        self._name = name
        self._directory = directory
        self._config = config
        self._rng = rng
        self._killing = killing
        self._programs = KILLED_RUNS[name].world == "code"
        self._marks: list[Mark] = []
        self._keys: dict[int, str] = {}
        """The keys of calls by call number, with "" for calls that were not paid for. A compaction drops the texts, so
        they are kept here.
        """
        self._processes = 0

    def run_to_the_end(self, log: Path) -> None:
        while True:
            name = f"{self._directory.name}/{self._processes}"
            self._processes += 1
            code = self._run_for_a_while(name)
            if code is not None:
                break
            self._killed()
            self._mark(name)
            if (self._directory / RESULT).exists():
                code = 0  # it was killed after it had written its result
                break
            if self._directory.exists() and self._rng.random() < COMPACTED:
                self._compact()
        if code != 0:
            self._fault(f"process {self._processes} ended with {code}: {self._errors.read_text().strip()}")
            return
        self._check(log)

    @property
    def _errors(self) -> Path:
        return self._directory.with_suffix(".stderr")

    def _run_for_a_while(self, name: str) -> int | None:
        """Start or resume the run and let it live for a while. Returns its exit code, or None if it was killed."""
        resumes = (self._directory / JOURNAL).exists()
        what = ["resume", self._directory] if resumes else ["run", self._config, "--out", self._directory]
        with (
            self._errors.open("w") as errors,
            subprocess.Popen(
                [*COMMAND, *map(str, what)],
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **self._killing.environment, KEY: name},
            ) as process,
        ):
            seconds = self._wait_for_a_moment(process)
            try:
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return None
        return process.returncode

    def _wait_for_a_moment(self, process: subprocess.Popen[bytes]) -> float | None:
        """Wait for a moment, and return after how many more seconds to kill the process, or None to let it end."""
        assert process.stdout is not None
        output = process.stdout
        if self._killing.enough or self._processes > MOST + ENDINGS:
            return None
        if self._processes > MOST:
            while (line := output.readline()) and STOPPING not in line:
                pass
            return self._rng.uniform(0, ENDING_SECONDS)
        if self._rng.random() < EARLY:
            return self._rng.uniform(0, STARTING_SECONDS)
        output.readline()
        before = self._marks[-1].events if self._marks else 0
        self._wait(process, LONGEST_START, lambda journal: events_in(journal) > before)
        if self._programs and self._rng.random() < PROGRAMS:
            self._wait(process, LIFE_SECONDS, program_runs)
            return 0.0
        return self._rng.uniform(0, LIFE_SECONDS)

    def _wait(self, process: subprocess.Popen[bytes], seconds: float, until: Callable[[Path], bool]) -> None:
        """Wait until ``until`` holds for the journal, but no longer than this many seconds."""
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end and not until(self._directory / JOURNAL):
            time.sleep(0.001)

    def _killed(self) -> None:
        self._killing.killed()
        self.counts.kills += 1
        count(self.counts.kills_of, self._name)

    def _compact(self) -> None:
        """Compact the journal, or kill the compaction midway, and check that nothing that was counted is lost."""
        self._check_marks()
        self._note_keys()
        compacted = compact_or_kill(self._directory, self._rng)
        self.counts.compactions += not compacted.killed
        if compacted.killed:
            self._killed()
            count(self.counts.kills_in, "compacting")
        if compacted.fault is not None:
            self._fault(compacted.fault)
        self._marks = [
            replace(mark, digest=_extent(self._directory / JOURNAL, mark.events, mark.calls)[2]) for mark in self._marks
        ]

    def _note_keys(self) -> None:
        with RecordedRun(self._directory) as recorded:
            for call in recorded.calls():
                if call.messages is not None:
                    self._keys[call.id] = key_of(call) if call.usage is not None else ""

    def _check_marks(self) -> None:
        for mark in self._marks:
            if _extent(self._directory / JOURNAL, mark.events, mark.calls)[2] != mark.digest:
                self._fault(f"what {mark.process} left in the journal has changed")

    def _mark(self, name: str) -> None:
        events, calls, digest = _extent(self._directory / JOURNAL)
        if events:
            self._marks.append(Mark(name, events, calls, digest))
            count(self.counts.kills_in, what_it_did(self._directory, programs=self._programs))
            return
        count(self.counts.kills_in, "before the first event")
        self.counts.before_the_journal += 1
        if self._marks:
            self._fault("the journal is gone")
        shutil.rmtree(self._directory, ignore_errors=True)

    def _fault(self, what: str) -> None:
        self.counts.faults.append(f"{self._directory.name}, {self._name}: {what}")
        print(self.counts.faults[-1], flush=True)

    def _check(self, log: Path) -> None:
        counts = self.counts
        for fault in faults_at_the_end(self._directory):
            self._fault(fault)
        with RecordedRun(self._directory) as recorded:
            events, calls = list(recorded.events()), list(recorded.calls())
        end = Books.of(events)
        counts.repeated_updates += end.repeated_updates
        counts.calls += len(calls)
        counts.confirmed += len(end.confirmed)
        self._check_marks()
        for mark in self._marks:
            then = Books.of(islice(events, mark.events))
            lost = sum(end.confirmed.get(name) != version for name, version in then.confirmed.items())
            if mark.events == len(events):
                continue  # it was killed after its last event
            resumed = events[mark.events]
            if resumed.kind == "run.resumed":
                counts.resumed += 1
                counts.items_resumed += int(str(resumed.data["items"]))
                counts.replies_resumed += int(str(resumed.data["replies"]))
                lost = max(lost, then.accepted - int(str(resumed.data["accepted"])))
                if resumed.data["version"] != then.version:
                    self._fault(f"after {mark.process} the pool was at {resumed.data['version']}, not {then.version}")
            else:
                self._fault(f"after {mark.process} the journal went on with {resumed.kind}")
            counts.lost_candidates += lost
        served = ServerLog(log, self._directory.name)
        self._note_keys()
        keys = [self._keys[call.id] for call in calls]
        for mark in self._marks:
            self._check_payments(mark, frozenset(keys[: mark.calls]), served)

    def _check_payments(self, mark: Mark, kept: frozenset[str], served: ServerLog) -> None:
        """Check what was asked for again after a kill: none of the calls in the journal may be, and of the others only
        those in flight.
        """
        counts = self.counts
        again = served.begun_after(mark.process)
        lost = kept & again
        finished = {key: after for key, after in served.finished(mark.process).items() if key not in kept}
        lost |= {key for key, after in finished.items() if key in again and after > CONCURRENCY}
        repeated = (finished.keys() & again) - lost
        if lost:
            counts.lost_responses += len(lost)
            self._fault(f"{len(lost)} replies that {mark.process} had were asked for again")
        counts.repeated_payments += len(repeated)
        counts.most_repeated_payments = max(counts.most_repeated_payments, len(repeated))
        in_flight = served.in_flight(mark.process, kept)
        counts.in_flight += in_flight
        if len(repeated) > min(in_flight, CONCURRENCY):
            self._fault(f"{len(repeated)} answers to {mark.process} were paid again, and {in_flight} calls in flight")


def _extent(journal: Path, events: int | None = None, calls: int | None = None) -> tuple[int, int, bytes]:
    """How many events and calls a journal has, and a digest of them. The limits count from the first; by default all
    are read.
    """
    digest, sizes = blake2b(), list[int]()
    if not journal.exists():
        return 0, 0, b""
    with closing(
        sqlite3.connect(f"{journal.absolute().as_uri()}?mode=rw", uri=True)
    ) as database:  # undoes an interrupted transaction
        if database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            return 0, 0, b""
        for table, key, most in (("events", "seq", events), ("calls", "id", calls)):
            rows: Sequence[object] = database.execute(
                f"SELECT * FROM {table} ORDER BY {key} LIMIT ?",  # noqa: S608  two names, written above
                (-1 if most is None else most,),
            ).fetchall()
            sizes.append(len(rows))
            digest.update(repr(rows).encode("utf-8", "surrogatepass"))
    return sizes[0], sizes[1], digest.digest()
