"""Run directories as a kill leaves them, at a place of one's choice, and damages to them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.journal import journal as written
from flowevolve.journal.end_mark import EndMark
from flowevolve.journal.reading import RecordedCall, RecordedRun
from flowevolve.journal.tables import INSERT_CALL, INSERT_EVENT, INSERT_PAYLOAD, make_tables
from flowevolve.runner.result import Result
from flowevolve.runner.run import run

JOURNAL, WAL, SHM, END = "journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "journal.end"
FILES = (JOURNAL, WAL, SHM, END)


@dataclass(frozen=True)
class Truth:
    """A whole run: its directory, in which payloads outlive their flows, and all that its journal holds."""

    folder: Path
    events: Sequence[Event]
    calls: Sequence[RecordedCall]

    @classmethod
    def of(cls, folder: Path, **settings: object) -> Truth:
        config = parse_config({"clock": "virtual", "budget": {"proposals": 3}, **settings}, "test")

        async def go() -> Result:
            return await run(config, out=folder)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(written, "_FLOW_CLOSED", "SELECT ?")
            clock.run(go, clock="virtual")
        with RecordedRun(folder) as recorded:
            return cls(folder, list(recorded.events()), list(recorded.calls()))

    def extent(self, events: int) -> tuple[int, int]:
        """How many events and calls there are up to the calls that followed on so many events."""
        return events, sum(call.seq < events for call in self.calls)

    def is_beginning(self, events: Sequence[Event], calls: Sequence[RecordedCall]) -> bool:
        """Whether these are the first things that happened, none left out."""
        n, c = len(events), len(calls)
        in_order = sum(call.seq < n - 1 for call in self.calls) <= c <= sum(call.seq < n for call in self.calls)
        return in_order and events == self.events[:n] and calls == self.calls[:c]


def leave_killed(truth: Truth, folder: Path, events: int, folded: int) -> None:
    """Make a directory as a run leaves it that is killed after so many events, of which the first ``folded`` are in the
    journal and the others in its log. If that is all of them there is no log: the run was closed.
    """
    building = folder.with_name(folder.name + "-building")
    for path in (folder, building):
        path.mkdir(parents=True)
    shutil.copy(truth.folder / "config.toml", folder)
    with closing(sqlite3.connect(truth.folder / JOURNAL)) as whole, closing(sqlite3.connect(building / JOURNAL)) as new:
        meta = dict(whole.execute("SELECT key, value FROM meta"))
        make_tables(new, meta["run"], meta["given"])
        new.executemany("INSERT INTO texts VALUES (?, ?, ?)", whole.execute("SELECT * FROM texts"))
        new.commit()
        for seq in range(folded):
            _write(truth, whole, new, seq)
        new.commit()
        if folded < events:
            new.execute("PRAGMA journal_mode=WAL")
            new.execute("PRAGMA wal_autocheckpoint=0")
            for seq in range(folded, events):
                _write(truth, whole, new, seq)
                new.commit()
        _, calls = truth.extent(events)
        (building / END).write_bytes(EndMark(meta["run"], events - 1, calls).line())
        for name in FILES:
            if (building / name).exists():
                shutil.copy(building / name, folder)
    shutil.rmtree(building)


def _write(truth: Truth, whole: sqlite3.Connection, new: sqlite3.Connection, seq: int) -> None:
    """Write an event, its payload, and the calls that followed on it, as the journal does."""
    (event,) = whole.execute("SELECT * FROM events WHERE seq = ?", (seq,))
    new.execute(INSERT_EVENT, event)
    if truth.events[seq].kind == "flow.close":
        new.execute("DELETE FROM payloads WHERE flow = ?", (truth.events[seq].data["flow"],))
    if event[5] is not None:
        name = truth.events[seq].attached_to
        (data,) = whole.execute("SELECT data FROM payloads WHERE item = ?", (name,)).fetchone()
        new.execute(INSERT_PAYLOAD, (name, flow_of(name), data))
    first = seq or -1
    new.executemany(INSERT_CALL, whole.execute("SELECT * FROM calls WHERE seq IN (?, ?) ORDER BY id", (seq, first)))


Damage = Callable[[Path, Random], str]
"""Damages the journal in a folder; returns what was done, in words."""


def _some_file(folder: Path, rng: Random) -> Path:
    """The journal or its log mostly, by size."""
    files = [folder / name for name in FILES if (folder / name).exists() and (folder / name).stat().st_size]
    return rng.choices(files, [max(20_000, file.stat().st_size) for file in files])[0]


def flip(folder: Path, rng: Random) -> str:
    file = _some_file(folder, rng)
    content = bytearray(file.read_bytes())
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    content[place] ^= 1 << bit
    file.write_bytes(content)
    return f"bit {bit} of byte {place} of {file.name} flipped"


def zero(folder: Path, rng: Random) -> str:
    file = _some_file(folder, rng)
    content = bytearray(file.read_bytes())
    place, length = rng.randrange(len(content)), rng.choice([1, 16, 512, 4096, 20_000])
    content[place : place + length] = bytes(len(content[place : place + length]))
    file.write_bytes(content)
    return f"{length} bytes from {place} of {file.name} set to zero"


def scramble(folder: Path, rng: Random) -> str:
    file = _some_file(folder, rng)
    content = bytearray(file.read_bytes())
    place = rng.randrange(len(content))
    content[place : place + 64] = rng.randbytes(len(content[place : place + 64]))
    file.write_bytes(content)
    return f"64 bytes from {place} of {file.name} random"


def truncate(folder: Path, rng: Random) -> str:
    file = _some_file(folder, rng)
    length = rng.randrange(file.stat().st_size)
    with file.open("r+b") as opened:
        opened.truncate(length)
    return f"{file.name} truncated to {length}"


def delete(folder: Path, rng: Random) -> str:
    gone = rng.choice([(WAL,), (SHM,), (WAL, SHM), (END,), (JOURNAL,), (WAL, SHM, END)])
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    return f"{', '.join(gone)} deleted"


def swap(folder: Path, rng: Random) -> str:
    """Files of other times and of another run, which lie beside the folder."""
    other = folder.parent / rng.choice(["earlier", "other", "closed"])
    names = rng.choice([(WAL,), (WAL, SHM), (JOURNAL,), (END,), (JOURNAL, WAL, SHM)])
    for name in names:
        (folder / name).unlink(missing_ok=True)
        if (other / name).exists():
            shutil.copy(other / name, folder)
    return f"{', '.join(names)} as in {other.name}"


_ALTERATIONS = (
    "UPDATE events SET data = '{}' WHERE seq = :event",
    "UPDATE events SET data = replace(data, '0', '1') WHERE seq = :event",
    "UPDATE events SET data = substr(data, 2) WHERE seq = :event",
    "UPDATE events SET kind = 'other' WHERE seq = :event",
    "UPDATE events SET t = t + 1 WHERE seq = :event",
    "UPDATE events SET checksum = NULL WHERE seq = :event",
    "UPDATE events SET payload = NULL WHERE seq = (SELECT max(seq) FROM events WHERE payload IS NOT NULL)",
    "DELETE FROM events WHERE seq = :event",
    "DELETE FROM events WHERE seq >= :event",
    "UPDATE calls SET reply = 'another' WHERE id = :call",
    "UPDATE calls SET prompt_tokens = prompt_tokens + 1 WHERE id = :call",
    "UPDATE calls SET messages = '[[\"user\",1]]' WHERE id = :call",
    "DELETE FROM calls WHERE id = :call",
    "DELETE FROM calls WHERE id >= :call",
    "UPDATE texts SET data = 'another' WHERE id = :text",
    "DELETE FROM texts WHERE id = :text",
    "UPDATE payloads SET data = X'00' WHERE rowid = (SELECT min(rowid) FROM payloads)",
    "DELETE FROM payloads WHERE rowid = (SELECT max(rowid) FROM payloads)",
    "DELETE FROM meta WHERE key = 'run'",
    "UPDATE meta SET value = '5' WHERE key = 'schema'",
)


def alter(folder: Path, rng: Random) -> str:
    statement = rng.choice(_ALTERATIONS)
    with closing(sqlite3.connect(folder / JOURNAL)) as database:
        last: Mapping[str, Any] = {
            "event": database.execute("SELECT max(seq) FROM events").fetchone()[0],
            "call": database.execute("SELECT max(id) FROM calls").fetchone()[0],
            "text": database.execute("SELECT max(id) FROM texts").fetchone()[0],
        }
        values = {name: rng.randint(0 if name == "event" else 1, most) for name, most in last.items()}
        database.execute(statement, {name: value for name, value in values.items() if f":{name}" in statement})
        database.commit()
    return f"{statement} with {values}"


DAMAGES: Sequence[Damage] = (flip, zero, scramble, truncate, delete, swap, alter)
