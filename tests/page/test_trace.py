"""A trace keeps to the format that Perfetto reads, and has all requests, work, arrows and verdicts of the run."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.budget import Cost
from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import FlowOpened, ItemDone, ItemHeld, ItemSent, ItemTaken, RunStarted
from flowevolve.core.events import EventLog
from flowevolve.core.item_ids import ItemId, parent_and_number
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.page.tables.candidates import CandidateRow, CurveRow, JudgementRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.work import CallRow, SpanRow
from flowevolve.page.trace import write_trace
from flowevolve.runner.result import Result

Event = dict[str, Any]
REQUIRED: dict[str, dict[str, type]] = {
    "M": {"name": str, "pid": int, "args": dict},
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": int, "dur": int, "args": dict},
    "s": {"name": str, "cat": str, "id": int, "pid": int, "tid": int, "ts": int},
    "f": {"name": str, "cat": str, "id": int, "pid": int, "tid": int, "ts": int, "bp": str},
    "C": {"name": str, "pid": int, "ts": int, "args": dict},
    "i": {"name": str, "s": str, "pid": int, "tid": int, "ts": int},
}
"""The fields of each type of event that the run's trace may have, from the description of the format."""


def faults(events: list[Event]) -> list[str]:
    """What of these events is not as the format wants it."""
    found = [
        f"{name} of {event}"
        for event in events
        for name, kind in REQUIRED[event["ph"]].items()
        if type(event.get(name)) is not kind
    ]
    found += [f"negative: {event}" for event in events if min(event.get("ts", 0), event.get("dur", 0)) < 0]
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    found += [f"no name: {each}" for each in events if each["ph"] in "Xsfi" and (each["pid"], each["tid"]) not in named]
    return found + overlaps(events) + broken_arrows(events) + counters_that_go_back(events)


def overlaps(events: list[Event]) -> list[str]:
    """Slices of a lane that begin before the one in front of them has ended."""
    found, last = list[str](), dict[tuple[int, int], int]()
    for event in (each for each in events if each["ph"] == "X"):
        lane = (event["pid"], event["tid"])
        if event["ts"] < last.get(lane, 0):
            found.append(f"overlaps: {event}")
        last[lane] = event["ts"] + event["dur"]
    return found


def broken_arrows(events: list[Event]) -> list[str]:
    """Arrows without both ends, backwards in time, or whose ends a reader would not find at the work on an item and on
    one that was made of it. A reader sorts by time, and takes the last slice that has begun in the lane.
    """
    last, ends = dict[tuple[int, int], Event](), defaultdict[int, list[tuple[Event, Event]]](list)
    found = list[str]()
    for event in sorted((each for each in events if each["ph"] in "Xsf"), key=lambda each: each["ts"]):
        lane = (event["pid"], event["tid"])
        if event["ph"] == "X":
            last[lane] = event
        elif lane in last and event["ts"] < last[lane]["ts"] + last[lane]["dur"]:
            ends[event["id"]].append((event, last[lane]))
        else:
            found.append(f"at no slice: {event}")
    for both in ends.values():
        items = [slice_["args"].get("item") for _, slice_ in both]
        if [event["ph"] for event, _ in both] != ["s", "f"] or parent_and_number(items[-1])[0] != items[0]:
            found.append(f"no arrow from an item to what was made of it: {both}")
    return found


def counters_that_go_back(events: list[Event]) -> list[str]:
    found, last = list[str](), dict[tuple[int, str], int]()
    for event in (each for each in events if each["ph"] == "C"):
        counter = (event["pid"], event["name"])
        if event["ts"] < last.get(counter, 0) or not all(isinstance(n, int | float) for n in event["args"].values()):
            found.append(f"goes back: {event}")
        last[counter] = event["ts"]
    return found


def read(file: Path) -> list[Event]:
    table = json.loads(file.read_text("utf-8"))
    assert table["displayTimeUnit"] == "ms"
    found: list[Event] = table["traceEvents"]
    return found


@pytest.fixture(scope="module")
def events(directory: Path, result: Result, tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    return read(write_trace(directory, tmp_path_factory.mktemp("trace")))


def processes(events: list[Event]) -> dict[int, str]:
    return {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}


def test_it_keeps_to_the_format(events: list[Event]) -> None:
    assert faults(events) == []


def test_every_request_and_all_work_is_a_slice(events: list[Event], tables: Tables) -> None:
    named = processes(events)
    slices = {
        (named[each["pid"]], each["args"].get("id") or each["args"]["item"]): (each["ts"], each["ts"] + each["dur"])
        for each in events
        if each["ph"] == "X"
    }
    expected: dict[tuple[str, object], tuple[float, float]] = {
        (f"requests of {call.role}", call.id): (call.begun * 1e6, call.ended * 1e6) for call in tables.of(CallRow)
    }
    for span in tables.of(SpanRow):
        if span.taken is not None and span.done is not None:
            expected[span.stage, span.item] = (span.taken * 1e6, span.done * 1e6)
    assert slices.keys() == expected.keys()
    assert sum(each["ph"] == "X" for each in events) == len(expected)
    for name, stretch in slices.items():
        assert stretch == pytest.approx(expected[name], abs=50)


def test_arrows_lead_from_the_proposal_to_the_commit(events: list[Event], tables: Tables, result: Result) -> None:
    sent = [span for span in tables.of(SpanRow) if span.source is not None and span.taken is not None]
    named = processes(events)
    arrows = defaultdict[int, list[str]](list)
    for event in events:
        if event["ph"] in "sf":
            arrows[event["id"]].append(named[event["pid"]])
    assert Counter(map(tuple, arrows.values())) == Counter((span.source, span.stage) for span in sent)
    assert {("propose", "screen"), ("screen", "evaluate"), ("evaluate", "update")} <= {*map(tuple, arrows.values())}


def test_what_is_sent_off_at_once_has_its_arrow(tmp_path: Path) -> None:
    """Work that begins, sends something off in the same moment, and goes on for longer than what it sent."""
    item, made = ItemId("0"), ItemId("0.0")
    events = traced(
        tmp_path,
        (1.0, ItemTaken(item, "select", 0, None)),
        (1.0, ItemSent(made, "select", "propose", "x", 0, (), 0)),
        (1.0, ItemTaken(made, "propose", 0, None)),
        (2.0, ItemDone(made, "propose", "consumed", "", 1.0, Cost())),
        (3.0, ItemDone(item, "select", "consumed", "", 2.0, Cost())),
    )
    assert [each["ph"] for each in events if each["ph"] in "Xsf"] == ["X", "X", "s", "f"]


def test_work_that_was_begun_anew_after_a_resume_begins_there(tmp_path: Path) -> None:
    item, held = ItemId("0"), ItemId("1")
    events = traced(
        tmp_path,
        (1.0, ItemTaken(item, "select", 0, None)),
        (1.0, ItemTaken(held, "select", 0, None)),
        (1.5, ItemHeld(held, "select")),
        (2.0, ItemTaken(held, "select", 0, None)),
        (5.0, ItemTaken(item, "select", 0, None)),
        (6.0, ItemDone(item, "select", "consumed", "", 1.0, Cost())),
        (7.0, ItemDone(held, "select", "consumed", "", 5.0, Cost())),
    )
    begun = {each["args"]["item"]: each["ts"] for each in events if each["ph"] == "X"}
    assert begun == {"0": 5_000_000, "1": 2_000_000}


def traced(folder: Path, *bodies: tuple[float, EventBody]) -> list[Event]:
    """The trace of a run in which these things happened, at these seconds."""
    directory = RunDirectory(folder / "run", {"budget": {"seconds": 1}, "llm": {"backend": "sim"}})
    now = 0.0
    log = EventLog(lambda: now)
    log.subscribe(directory.event)
    log.start()
    log.emit(RunStarted("gepa", ("select", "propose"), "house_style"))
    for flow in range(2):
        log.emit(FlowOpened(flow, "select", 0, None, flow, phase=False))
    for now, body in bodies:  # noqa: B007 - the log's clock
        log.emit(body)
    directory.close()
    events = read(write_trace(folder / "run"))
    assert faults(events) == []
    return events


def test_commits_and_verdicts_are_instants(events: list[Event], tables: Tables) -> None:
    said = Counter(event["name"] for event in events if event["ph"] == "i")
    for candidate in tables.of(CandidateRow):
        assert said[f"{candidate.status}: {candidate.id}"] == (candidate.status != "proposed")
    for judged in tables.of(JudgementRow):
        assert said[f"{judged.verdict or judged.policy}: {judged.candidate or judged.item}"]


def test_counters_say_what_the_calls_do(events: list[Event], tables: Tables) -> None:
    points = defaultdict[str, list[tuple[int, float]]](list)
    for event in events:
        if event["ph"] == "C":
            points[event["name"]].append((event["ts"], event["args"]["value"]))
    seconds = max(call.ended for call in tables.of(CallRow))
    calls = [call for call in tables.of(CallRow) if call.outcome != "cached"]
    tokens = sum(call.completion_tokens or 0 for call in calls)
    assert area(points["completion tokens/s"], seconds) == pytest.approx(tokens, rel=0.01)
    busy = sum(call.ended - call.begun for call in calls if call.role == "task")
    assert area(points["requests in flight: task"], seconds) == pytest.approx(busy, rel=0.01)
    steps = [row.score for row in tables.of(CurveRow) if row.series == "validation" and row.version >= 0]
    assert [value for _, value in points["best validation score"]] == [round(score, 4) for score in steps]


def area(points: list[tuple[int, float]], seconds: float) -> float:
    """Below steps, in units and seconds."""
    ends = [*(time for time, _ in points[1:]), seconds * 1e6]
    return sum(value * (end - time) / 1e6 for (time, value), end in zip(points, ends, strict=True))


def test_a_run_that_was_killed_has_the_work_that_was_cut_off(directory: Path, result: Result, tmp_path: Path) -> None:
    run = tmp_path / "killed"
    shutil.copytree(directory, run)
    for name in ("result.json", "journal.end"):
        (run / name).unlink()
    with closing(sqlite3.connect(run / JOURNAL)) as database:
        (last,) = database.execute("SELECT max(seq) FROM events WHERE kind = 'item.taken'").fetchone()
        database.execute("DELETE FROM events WHERE seq > ?", (last,))
        database.execute("DELETE FROM calls WHERE seq > ?", (last,))
        database.commit()
    file = write_trace(run)
    assert file == run / "export" / "trace.json"
    events = read(file)
    assert faults(events) == []
    assert [each for each in events if each["ph"] == "X" and each["args"].get("state") == "working"]


def test_a_folder_or_a_file_that_is_a_link_is_not_followed(directory: Path, result: Result, tmp_path: Path) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(directory, run)
    outside.mkdir()
    (run / "export").symlink_to(outside)
    with pytest.raises(InputError, match="export is a link to"):
        write_trace(run)
    for name in ("trace.json", "trace.json.part"):
        (tmp_path / name).symlink_to(outside / "mine")
    (outside / "mine").write_text("precious")
    write_trace(run, tmp_path)
    assert (outside / "mine").read_text() == "precious"
