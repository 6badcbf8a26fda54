"""Every damage to a journal is told or harmless, and a repair saves the longest true beginning of the run."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.core.events import Event
from flowevolve.journal import repair as repairing
from flowevolve.journal.compact import compact
from flowevolve.journal.opening import DamagedError
from flowevolve.journal.reading import RecordedCall, RecordedRun
from flowevolve.journal.repair import Repaired, repair
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.runner.result import Result
from tests.support.damaged import DAMAGES, Damage, Truth, leave_killed
from tests.support.depth import LONG

CASES = 350 if LONG else 42
RESUMED = 1 if LONG else 14
"""One in so many of the repaired runs is gone on with."""


class Ground:
    """A run, and its directory as it was at several moments; one of another run, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.truth = Truth.of(folder / "whole")
        self.events = len(self.truth.events) * 2 // 3
        self.calls = self.truth.extent(self.events)[1]
        leave_killed(self.truth, folder / "killed", self.events, self.events // 2)
        leave_killed(self.truth, folder / "earlier", self.events * 3 // 4, self.events // 2)
        leave_killed(self.truth, folder / "closed", self.events, self.events)
        other = Truth.of(folder / "other-whole", seed=5, budget={"proposals": 1})
        leave_killed(other, folder / "other", len(other.events) - 1, 20)

    def copy(self, name: str) -> Path:
        """A run directory as it was at a moment, to be damaged."""
        path = self.folder / "damaged"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.folder / name, path)
        return path


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("ground"))


def content(path: Path) -> tuple[list[Event], list[RecordedCall]]:
    with RecordedRun(path) as recorded:
        recorded.check()
        return list(recorded.events()), list(recorded.calls())


def resume(path: Path) -> Result:
    async def go() -> Result:
        return await fe.resume(path, changes=["budget.proposals=4"])

    return clock.run(go, clock="virtual")


def see_that_it_is_told_or_harmless(ground: Ground, path: Path) -> bool:
    """Read a damaged journal; returns whether its damage was told."""
    try:
        events, calls = content(path)
    except InputError as error:
        said = str(error)
    else:
        assert (len(events), len(calls)) == (ground.events, ground.calls)
        assert ground.truth.is_beginning(events, calls)
        return False
    assert "\n" not in said
    assert "never began" not in said
    return True


def see_that_it_is_repaired(ground: Ground, path: Path, told: bool) -> Repaired | None:
    """Repair a damaged journal; returns what came of it, None if nothing was done or could be."""
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    try:
        done = repair(path)
    except InputError as error:
        said = str(error)
    else:
        see_what_was_saved(ground, path, done)
        assert (done is not None) == told
        return done
    assert re.search(
        r"nothing can be saved, as there is nothing before the damage: .*\. All files are left as they are", said
    )
    assert {name: (path / name).read_bytes() for name in before} == before
    return None


def see_what_was_saved(ground: Ground, path: Path, done: Repaired | None) -> None:
    events, calls = content(path)
    texts_apart = zip(calls, ground.truth.calls, strict=False)
    whole = [replace(mine, messages=true.messages) if mine.messages is None else mine for mine, true in texts_apart]
    assert ground.truth.is_beginning(events, whole)
    if done is not None:
        assert (len(events), len(calls)) == (done.events, done.calls)
        assert (done.kept / "journal.sqlite").exists()


@pytest.mark.parametrize("damage", DAMAGES, ids=[damage.__name__ for damage in DAMAGES])
def test_every_damage_is_told_or_harmless_and_repaired_or_said_why_not(damage: Damage, ground: Ground) -> None:
    repaired = 0
    for case in range(CASES // len(DAMAGES)):
        rng = Random(f"{damage.__name__} {case}")
        path = ground.copy(rng.choice(["killed", "closed"]))
        what = damage(path, rng)
        try:
            told = see_that_it_is_told_or_harmless(ground, path)
            done = see_that_it_is_repaired(ground, path, told)
            repaired += done is not None
            if done is not None and repaired % RESUMED == 0:
                before = content(path)[0]
                assert resume(path).proposals >= 3
                assert content(path)[0][: len(before)] == before
        except BaseException as error:
            error.add_note(f"case {case}: {what}")
            raise


def test_a_repair_says_what_it_saved_and_what_is_gone(ground: Ground) -> None:
    path = ground.copy("closed")
    event = ground.events - 5
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        database.execute("UPDATE events SET data = replace(data, ':', ': ') WHERE seq = ?", (event,))
        database.commit()
    damaged = (path / "journal.sqlite").read_bytes()
    with pytest.raises(DamagedError, match=rf"event {event} is not as it was written.*, call flowevolve repair"):
        content(path)
    done = repair(path)
    assert done is not None
    events, calls = content(path)
    kept = ground.truth.extent(event)[1]
    assert events == ground.truth.events[:event]
    assert calls == ground.truth.calls[:kept]
    assert (done.damage, done.events, done.calls) == (f"event {event} is not as it was written", event, kept)
    assert (done.gone_events, done.gone_calls, done.without_messages) == (5, ground.calls - kept, 0)
    assert done.kept == path / "damaged"
    assert (done.kept / "journal.sqlite").read_bytes() == damaged
    assert repair(path) is None


def test_what_was_paid_before_the_damage_is_not_paid_again(ground: Ground) -> None:
    path = ground.copy("killed")
    (path / "journal.sqlite-wal").unlink()
    done = repair(path)
    assert done is not None
    asked = Counter(map(question, ground.truth.calls[: done.calls]))
    result = resume(path)
    _, calls = content(path)
    assert calls[: done.calls] == ground.truth.calls[: done.calls]
    again = Counter(map(question, calls[done.calls :])) & asked
    assert not again
    assert result.llm.usage.total_tokens == sum(call.usage.total_tokens for call in calls if call.usage)


def question(call: RecordedCall) -> tuple[object, ...]:
    return call.stage, call.item, call.index, call.messages


def test_a_damaged_text_costs_no_more_than_the_messages_of_its_calls(ground: Ground) -> None:
    path = ground.copy("killed")
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        database.execute("UPDATE texts SET data = 'another' WHERE id = 3")
        database.commit()
    done = repair(path)
    assert done is not None
    events, calls = content(path)
    assert (len(events), len(calls), done.gone_events, done.gone_calls) == (ground.events, ground.calls, 0, 0)
    assert done.without_messages == sum(call.messages is None for call in calls) > 0
    assert [call.reply for call in calls] == [call.reply for call in ground.truth.calls[: len(calls)]]


def test_a_damaged_payload_costs_its_item_and_no_more(ground: Ground) -> None:
    path = ground.copy("killed")
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        database.execute("UPDATE payloads SET data = X'22' WHERE rowid = (SELECT max(rowid) FROM payloads)")
        database.commit()
    done = repair(path)
    assert done is not None
    assert (done.events, done.calls, done.payloads) == (ground.events, ground.calls, 1)
    resume(path)
    discarded = [event.data for event in content(path)[0] if event.data.get("outcome") == "discarded"]
    assert "could not be kept" in str(discarded)


def test_a_result_that_tells_of_what_is_gone_goes_with_it(ground: Ground) -> None:
    path = ground.copy("closed")
    (path / "result.json").write_text("{}")
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        database.execute("DELETE FROM events WHERE seq = ?", (ground.events - 2,))
        database.commit()
    done = repair(path)
    assert done is not None
    assert not (path / "result.json").exists()
    assert (done.kept / "result.json").read_text() == "{}"


def test_a_repair_that_was_cut_off_is_finished_by_the_next(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ground.copy("killed")
    (path / "journal.end").unlink()
    wal = path / "journal.sqlite-wal"
    wal.write_bytes(wal.read_bytes()[: 32 + 3 * 4120])
    (path / "journal.end").write_bytes((ground.folder / "killed" / "journal.end").read_bytes())

    def killed(folder: Path) -> None:
        wal.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(repairing, "_put_in_place", killed)
        with pytest.raises(KeyboardInterrupt):
            repair(path)
    with pytest.raises(DamagedError, match="a repair of it was cut off, and another one will finish that"):
        content(path)
    first = repair(path)
    assert first is None or first.gone_events > 0
    assert ground.truth.is_beginning(*content(path))
    assert repair(path) is None


def assert_refused_and_left_alone(path: Path, uses: Sequence[Callable[[Path], object]], says: str) -> None:
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    for use in uses:
        with pytest.raises(DamagedError, match=says):
            use(path)
    assert {name: (path / name).read_bytes() for name in before} == before


def test_a_damaged_journal_is_neither_gone_on_with_nor_compacted_nor_written_over(ground: Ground) -> None:
    path = ground.copy("closed")
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        database.execute("UPDATE calls SET reply = 'another' WHERE id = 7")
        database.commit()
    assert_refused_and_left_alone(path, (resume, compact), "call 7 is not as it was written")


def test_a_run_whose_beginning_is_damaged_is_not_taken_for_one_that_never_began(ground: Ground) -> None:
    path = ground.copy("closed")
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        database.execute("UPDATE events SET kind = 'other' WHERE kind = 'run.start'")
        database.commit()
    assert_refused_and_left_alone(path, (resume, partial(RunDirectory, config={})), "event 0 is not as it was written")


def test_a_journal_of_an_earlier_version_is_repaired_as_far_as_it_can_be_read(ground: Ground) -> None:
    path = ground.copy("closed")
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        for column in ("calls", "payload", "checksum"):
            database.execute(f"ALTER TABLE events DROP COLUMN {column}")
        database.execute("ALTER TABLE calls DROP COLUMN checksum")
        database.execute("DELETE FROM meta WHERE key IN ('run', 'unchecked')")
        database.execute("UPDATE meta SET value = '5' WHERE key = 'schema'")
        database.commit()
    (path / "journal.end").unlink()
    assert ground.truth.is_beginning(*content(path))
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        database.execute("UPDATE events SET data = substr(data, 3) WHERE seq = ?", (ground.events - 9,))
        database.commit()
    with pytest.raises(DamagedError, match=f"event {ground.events - 9} can't be read"):
        content(path)
    done = repair(path)
    assert done is not None
    assert done.events == ground.events - 9
    assert ground.truth.is_beginning(*content(path))
    assert resume(path).proposals >= 3
    assert len(content(path)[0]) > done.events


def test_a_repair_of_what_is_no_run_or_is_being_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such run directory"):
        repair(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no run"):
        repair(tmp_path)
    assert list(tmp_path.iterdir()) == []
