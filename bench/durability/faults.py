"""A whole run against a server that fails at random: whether it ends, and whether its journal then adds up."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench.durability.audit import faults_at_the_end
from bench.durability.runs import COMMAND, KEY, SETTINGS, server_process, write_config
from flowevolve.core.event_kinds import ItemDone
from flowevolve.journal.reading import RecordedRun

RATE = 0.2
TIMEOUT_SECONDS = 10.0
"""The time limit of one attempt: some of the faults are answers that never come."""


@dataclass(frozen=True)
class FaultyRun:
    """The results of the run. ``faulted`` counts attempts that went wrong, by kind; ``failed`` counts calls that were
    given up.

    ``seconds`` is how long the run took; answers that never come take `TIMEOUT_SECONDS` each. ``faults`` says what does
    not add up in its journal.
    """

    seconds: float
    attempts: int
    faulted: dict[str, int]
    calls: int
    failed: int
    retries: int
    items: int
    faults: list[str]

    @property
    def rate(self) -> float:
        """The share of attempts that went wrong."""
        return sum(self.faulted.values()) / max(1, self.attempts)


def run_with_faults(folder: Path, proposals: int) -> FaultyRun:
    """Run once against a server at which a share of `RATE` of all attempts goes wrong."""
    config, out, log = folder / "faults.toml", folder / "faults", folder / "faults.log"
    with server_process(log, "--faults", str(RATE)) as url:
        settings = {**SETTINGS, "budget": {"proposals": proposals}}
        write_config(config, url, settings, timeout_seconds=TIMEOUT_SECONDS)
        command = [*COMMAND, "run", str(config), "--out", str(out)]
        began = perf_counter()
        ended = subprocess.run(command, env={**os.environ, KEY: "faults"}, capture_output=True, text=True, check=False)
        seconds = perf_counter() - began
    faulted, attempts = dict[str, int](), 0
    for line in log.read_text(encoding="ascii").splitlines():
        what, who, rest = line.split(" ")
        attempts += what == "begun"
        if what == "faults":
            faulted[who] = int(rest)
    with RecordedRun(out) as recorded:
        calls = list(recorded.calls())
        items = sum(1 for _ in recorded.events_of(ItemDone))
    wrong = faults_at_the_end(out) if ended.returncode == 0 else [f"it ended with {ended.returncode}: {ended.stderr}"]
    return FaultyRun(
        round(seconds, 1),
        attempts,
        faulted,
        len(calls),
        sum(call.error is not None for call in calls),
        sum(call.attempts - 1 for call in calls),
        items,
        wrong,
    )
