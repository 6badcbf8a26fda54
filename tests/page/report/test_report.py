"""A report is one file that holds what it shows, loads nothing, and takes what models wrote as text."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.budget import Cost
from flowevolve.core.event_kinds import CandidateProposed, ItemDone, RunStarted
from flowevolve.core.events import EventLog
from flowevolve.core.item_ids import ItemId
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.page.reading.source import RunSource
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.contract import TABLES
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.work import CallRow
from flowevolve.runner.result import Result

HOSTILE = "</script><script>alert(1)</script>\x1b[31m<!-- \ud800"
CONFIG: dict[str, object] = {"budget": {"seconds": 1}, "task": {"name": "house_style"}, "llm": {"backend": "sim"}}


class Parts(HTMLParser):
    """The tags of a page with their attributes, and the texts of its scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.ended = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.texts.append("")
        self.ended = False

    def handle_data(self, data: str) -> None:
        if self.texts and not self.ended:
            self.texts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.ended = True

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attrs, text) for (name, attrs), text in zip(self.tags, self.texts, strict=True) if name == tag]


def embedded(html: str) -> list[dict[str, Any]]:
    """The runs in a report."""
    blocks = [text for attrs, text in Parts(html).of("script") if attrs.get("class") == "data"]
    return [json.loads(gzip.decompress(b64decode(block))) for block in blocks]


def column(table: dict[str, Any], name: str) -> list[Any]:
    """A column of a table as JavaScript unpacks it."""
    packed = table["columns"][name]
    if packed is None:
        return [None] * table["rows"]
    if isinstance(packed, list):
        return packed
    if "first" in packed:
        return list(range(packed["first"], packed["first"] + table["rows"]))
    return [packed["values"][place] for place in packed["places"]]


@pytest.fixture(scope="module")
def report(directory: Path, result: Result, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("report") / "report.html"
    return write_report([directory], out).read_text("utf-8")


def test_a_report_holds_the_tables_and_the_texts_of_calls(report: str, directory: Path) -> None:
    (run,) = embedded(report)
    with RunSource(directory, "ended") as source:
        tables = Tables(source.changes())
        first = source.recorded.call(1)
    assert set(run["tables"]) == set(TABLES)
    calls = list(tables.of(CallRow))
    assert column(run["tables"]["calls"], "id") == [call.id for call in calls]
    assert column(run["tables"]["calls"], "stage") == [call.stage for call in calls]
    assert column(run["tables"]["calls"], "ended") == [round(call.ended, 4) for call in calls]
    assert first is not None
    messages, _, reply = run["texts"]["calls"]["1"]
    assert run["texts"]["strings"][reply] == first.reply
    assert [run["texts"]["strings"][place] for _, place in messages] == [each.content for each in first.messages or ()]


def test_a_report_loads_nothing_and_runs_one_script(report: str) -> None:
    parts = Parts(report)
    policy = next(str(attrs["content"]) for attrs, _ in parts.of("meta") if "http-equiv" in attrs)
    (script,) = [text for attrs, text in parts.of("script") if not attrs]
    ((_, style),) = parts.of("style")
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    for kind, text in (("script", script), ("style", style)):
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert not [attrs for _, attrs in parts.tags if "src" in attrs or any(name.startswith("on") for name in attrs)]
    assert [attrs["href"] for _, attrs in parts.tags if "href" in attrs] == ["data:,"]


def test_a_short_run_has_a_small_report(report: str) -> None:
    assert len(report.encode()) < 500_000


def test_long_texts_are_left_out_and_that_is_said(
    directory: Path, result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowevolve.page.report.texts.ROOM", 1000)
    monkeypatch.setattr("flowevolve.page.report.texts.ROOM_OF_A_CALL", 0)
    monkeypatch.setattr("flowevolve.page.report.report.ROOM_OF_COMPONENTS", 100)
    (run,) = embedded(write_report([directory], tmp_path / "small.html").read_text("utf-8"))
    components, calls = run["tables"]["components"], run["tables"]["calls"]
    texts = column(components, "text")
    assert texts[0] is not None
    assert None in texts
    assert f"{texts.count(None)} of {len(texts)} texts of candidates" in run["left_out"][0]
    missing = calls["rows"] - len(run["texts"]["calls"])
    assert f"{missing:,} of {calls['rows']:,} requests" in run["left_out"][1]
    assert run["left_out"][2:] == ["flowevolve watch shows them; in a run of days, those of the latest requests."]


def test_what_models_wrote_stays_text(tmp_path: Path) -> None:
    """A candidate that would end the script, of a run that was killed before it had a result."""
    path = tmp_path / "<script>"
    directory = RunDirectory(path, CONFIG)
    log = EventLog(lambda: 0.0)
    log.subscribe(directory.event)
    log.emit(RunStarted("gepa", ("propose",), HOSTILE))
    log.emit(
        CandidateProposed(
            ItemId("0"), HOSTILE, HOSTILE, (), 0, "a", "prompt", {HOSTILE: HOSTILE}, {"metrics": {"x": float("nan")}}
        )
    )
    log.emit(ItemDone(ItemId("0"), "propose", "discarded", HOSTILE, 0.0, Cost()))
    directory.close()
    html = write_report([path], tmp_path / "report.html").read_text("utf-8")
    assert "alert(1)" not in html
    (run,) = embedded(html)
    assert column(run["tables"]["runs"], "name") == ["<script>"]
    assert column(run["tables"]["runs"], "state") == ["interrupted"]
    assert column(run["tables"]["components"], "text") == [HOSTILE]
    assert column(run["tables"]["candidates"], "metrics") == [{"x": None}]
    assert column(run["tables"]["spans"], "reason") == [HOSTILE]


def test_several_runs_share_a_page_under_names_of_their_own(directory: Path, result: Result, tmp_path: Path) -> None:
    other = tmp_path / directory.name
    shutil.copytree(directory, other)
    html = write_report([directory, other], tmp_path / "both.html").read_text("utf-8")
    assert [run["name"] for run in embedded(html)] == ["ended", "ended (2)"]


def test_a_link_that_lies_in_the_way_is_not_followed(directory: Path, result: Result, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine", "utf-8")
    for name in ("report.html", "report.html.part"):
        (tmp_path / name).symlink_to(elsewhere)
    write_report([directory], tmp_path / "report.html")
    assert elsewhere.read_text("utf-8") == "mine"


def test_a_directory_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(str(tmp_path))):
        write_report([tmp_path], tmp_path / "report.html")
