"""A whole run against a server that fails at random: whether it ends, and whether its books are in order then."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench.audit import faults_at_the_end
from bench.kills import COMMAND, KEY, SETTINGS, lab, write_config
from flowevolve.event_kinds import ItemDone
from flowevolve.store.reading import Recorded

RATE = 0.2
TIMEOUT_SECONDS = 10.0
"""For one attempt: some of the faults are answers that never come."""


@dataclass(frozen=True)
class Endured:
    """``faulted`` counts attempts that went wrong, by kind; ``failed`` calls that were given up in the end.

    ``seconds`` is how long the run took; answers that never come take `TIMEOUT_SECONDS` each.
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


def endure(folder: Path, proposals: int) -> Endured:
    """One run with a share `RATE` of faults."""
    config, out, log = folder / "faults.toml", folder / "faults", folder / "faults.log"
    with lab(log, "--faults", str(RATE)) as url:
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
    with Recorded(out) as recorded:
        calls = list(recorded.calls())
        items = sum(1 for _ in recorded.events_of(ItemDone))
    wrong = faults_at_the_end(out) if ended.returncode == 0 else [f"it ended with {ended.returncode}: {ended.stderr}"]
    return Endured(
        round(seconds, 1),
        attempts,
        faulted,
        len(calls),
        sum(call.error is not None for call in calls),
        sum(call.attempts - 1 for call in calls),
        items,
        wrong,
    )
