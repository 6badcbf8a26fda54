"""A run that asks for its live page has one while it goes on, and none afterwards."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.runner.run import Watchers, run

TABLE: dict[str, object] = {
    "clock": "virtual",
    "watch": True,
    "task": {"name": "house_style"},
    "llm": {"backend": "sim"},
    "budget": {"proposals": 1},
}


def runs_at(address: str) -> object:
    """The names of the runs that a page shows."""
    with urlopen(f"{address}api/runs") as answer:
        return json.load(answer)["runs"]


def test_the_page_is_there_while_the_run_goes_on(tmp_path: Path) -> None:
    addresses: list[str] = []
    shown: list[object] = []

    def look(event: Event) -> None:
        if event.kind == "run.start":
            with ThreadPoolExecutor() as beside:
                shown.append(beside.submit(runs_at, addresses[0]).result())

    watchers = Watchers(events=(look,), pages=(addresses.append,))
    clock.run(lambda: run(parse_config(TABLE, "test"), out=tmp_path / "out", watchers=watchers), clock="virtual")
    assert shown == [["out"]]
    with pytest.raises(URLError):
        runs_at(addresses[0])


def test_a_run_that_is_gone_on_with_may_have_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")  # it is asked for, which is enough here
    out, said = tmp_path / "out", list[str]()
    clock.run(lambda: run(parse_config({**TABLE, "watch": False}, "test"), out=out), clock="virtual")
    watchers = Watchers(pages=(said.append,))
    changes = ["watch=true", "budget.proposals=2"]
    clock.run(lambda: fe.resume(out, changes=changes, watchers=watchers), clock="virtual")
    assert said == ["none: it did not start"]


def test_optimize_tells_the_address_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    budget = fe.Budget(proposals=1)
    result = fe.optimize(budget=budget, clock="virtual", progress=False, watch=True, out=tmp_path / "out")
    assert result.directory == tmp_path / "out"
    assert capsys.readouterr().err == "the live page: none: it did not start\n"
    with pytest.raises(fe.InputError, match="optimize: watch shows the run in a directory; give it as out="):
        fe.optimize(budget=budget, clock="virtual", watch=True)


def test_a_run_goes_on_where_its_page_can_not_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    said: list[str] = []
    watchers = Watchers(pages=(said.append,))
    result = clock.run(lambda: run(parse_config(TABLE, "test"), out=tmp_path, watchers=watchers), clock="virtual")
    assert result.proposals == 1
    assert said == ["none: it did not start"]


def test_a_run_without_a_directory_has_no_page() -> None:
    said: list[str] = []
    watchers = Watchers(pages=(said.append,))
    clock.run(lambda: run(parse_config(TABLE, "test"), watchers=watchers), clock="virtual")
    assert said == []
