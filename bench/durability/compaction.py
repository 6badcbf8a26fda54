"""Compaction of the journal of an interrupted run, in a process that may be killed in the middle of it."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from bench.durability.runs import COMMAND
from flowevolve.journal.lock import LOCK
from flowevolve.journal.reading import RecordedCall, RecordedRun

SECONDS = 0.3
"""The process is killed within this many seconds after it begins to work on the journal, if it takes that long."""
LOOKS_A_SECOND = 1000


@dataclass(frozen=True)
class Compacted:
    """Whether the process was killed, and what is wrong with the journal that it left."""

    killed: bool
    fault: str | None


def compact_or_kill(directory: Path, rng: random.Random) -> Compacted:
    """Compact a journal in another process, and kill that process after a random time unless it has ended by then."""
    before = _counted(directory)
    killed, errors = _run(directory, rng.uniform(0, SECONDS))
    if errors:
        return Compacted(killed, f"it could not be compacted: {errors}")
    with RecordedRun(directory) as recorded:
        recorded.check()
    if _counted(directory) != before:
        return Compacted(
            killed, f"a compaction that was {'killed' if killed else 'not killed'} has changed the journal"
        )
    return Compacted(killed, None)


def _run(directory: Path, seconds: float) -> tuple[bool, str]:
    """Returns whether the process was killed, and its error output if it failed."""
    command = [*COMMAND, "compact", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        ours = f"{process.pid} on "
        while process.poll() is None and not (directory / LOCK).read_text(encoding="ascii").startswith(ours):
            time.sleep(1 / LOOKS_A_SECOND)
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True, ""
    return False, errors.strip() if process.returncode else ""


def _counted(directory: Path) -> tuple[list[str], list[RecordedCall]]:
    """Everything that a compaction keeps: events as they are, and calls without their texts."""
    with RecordedRun(directory) as recorded:
        events = [event.to_json() for event in recorded.events()]
        return events, [replace(call, messages=None, reply=None, thinking=None) for call in recorded.calls()]
