"""What a run is doing, or was doing when it was killed, by the events in its journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.reading import RecordedRun

FRESH = 5
"""A run that has recorded no more than this many events since it was resumed counts as just resumed."""


def what_it_did(directory: Path, *, programs: bool) -> str:
    """What a run was doing when it was killed, by the events in its journal. ``programs``: whether it runs programs."""
    with RecordedRun(directory) as recorded:
        events = list(recorded.events())
    kinds = [event.kind for event in events]
    latest = kinds[len(kinds) - 1 - kinds[::-1].index("run.resumed") :] if "run.resumed" in kinds else kinds
    if "run.stop" in latest:
        return "after its last event"
    if "run.stopping" in latest:
        return "ending"
    if "run.resumed" in latest and len(latest) <= FRESH:
        return "just resumed"
    if programs and program_runs(directory / JOURNAL):
        return "running a program"
    if "phase.ended" not in kinds:
        return "scoring the seed"
    changes = [kind for kind in kinds if kind in ("group.departed", "pool.commit")]
    return "validating a group" if changes[-1] == "group.departed" else "streaming"


def events_in(journal: Path) -> int:
    """How many events are in the journal of a process that is still at work."""
    return sum(1 for _ in _asked(journal, "SELECT seq FROM events"))


def program_runs(journal: Path) -> bool:
    """Whether an evaluation is under way, judged by the last events of a process that is or was at work."""
    rows = _asked(journal, _LATEST)
    taken = {item for kind, item, stage in rows if kind == "item.taken" and stage == "evaluate"}
    return bool(taken - {item for kind, item, _ in rows if kind == "item.done"})


def _asked(journal: Path, query: str) -> Sequence[tuple[object, ...]]:
    if not journal.exists():
        return ()
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as database:
        try:
            return database.execute(query).fetchall()
        except sqlite3.OperationalError:  # the journal is just being created
            return ()


_LATEST = """
SELECT kind, json_extract(data, '$.item'), json_extract(data, '$.stage') FROM events
WHERE seq > (SELECT max(max(seq) - 60, max(iif(kind = 'run.resumed', seq, 0))) FROM events)
"""
