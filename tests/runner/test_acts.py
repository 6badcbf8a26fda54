"""Acts on a run that is kept on disk: they hold after it was stopped, compacted and resumed, and are told of."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.acts import Act
from flowevolve.journal.compact import compact
from flowevolve.journal.export import candidate_rows
from flowevolve.journal.lock import Lock
from flowevolve.journal.reading import RecordedRun
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.candidates import CandidateRow
from flowevolve.page.tables.run import ActRow, RunRow
from flowevolve.runner.overview import read_overview
from tests.support.odd_runs import instructions


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose best candidate of then was vetoed, stopped soon after that."""
    out = tmp_path_factory.mktemp("acts") / "run"
    config = parse_config(
        {"clock": "virtual", "preset": "plain", "algorithm": {"max_in_flight": 4}, "budget": {"proposals": 6}}, "test"
    )

    async def go() -> None:
        async with fe.open_run(config, task=instructions(out), out=out) as engine:
            async for event in engine.events():
                if event.kind == "pool.commit" and event.data["version"] == 2:
                    assert engine.best is not None
                    await engine.act(fe.Comment("Sign it.", candidate=engine.best.id), "ada")
                    await engine.act(fe.RaiseBudget({"proposals": 9}), "ada")
                    await engine.act(fe.Veto(engine.best.id), "ada")
                    await engine.act(fe.Stop(), "ada")

    clock.run(go, clock="virtual")
    compact(out)
    return out


def test_they_hold_in_a_run_that_was_compacted_and_resumed(directory: Path) -> None:
    result = clock.run(lambda: fe.resume(directory, task=instructions(directory)), clock="virtual")
    assert result.proposals == 9
    assert result.stop_reason == "proposals"
    with RecordedRun(directory) as recorded:
        (banned,) = [str(row["id"]) for row in candidate_rows(recorded) if row["vetoed"]]
    assert result.best is not None
    assert result.best.id != banned
    assert result.report.pool.vetoed(banned)
    assert "of 9 proposals" in read_overview(directory).used


@pytest.mark.parametrize(("acts", "told"), [([fe.Pause()], "paused for 30 s by ada"), ([fe.Pause(), fe.Unpause()], "")])
def test_a_pause_is_seen_from_outside_until_it_is_over(tmp_path: Path, acts: list[Act], told: str) -> None:
    out = tmp_path / "run"
    config = parse_config({"clock": "virtual", "preset": "plain", "budget": {"proposals": 6}}, "test")

    async def go() -> None:
        async with fe.open_run(config, task=instructions(out), out=out) as engine:
            async for event in engine.events():
                if event.kind == "pool.commit" and event.data["version"] == 2:
                    for act in acts:
                        await engine.act(act, "ada")
                    await anyio.sleep(30)
                    await engine.act(fe.Stop(), "ada")

    clock.run(go, clock="virtual")
    (out / "result.json").unlink()
    assert read_overview(out).pause == ""
    lock = Lock(out)
    try:
        assert read_overview(out).pause == told
    finally:
        lock.release()


def test_the_page_tells_of_them(directory: Path) -> None:
    with RunSource(directory, "run") as source:
        rows = list(source.changes())
    acts = [row for row in rows if isinstance(row, ActRow)]
    said = [(row.by, row.act, row.is_example, row.text, row.refused) for row in acts]
    assert said == [
        ("ada", "comment", False, "Sign it.", None),
        ("ada", "raise_budget", False, "proposals 9", None),
        ("ada", "veto", False, "", None),
        ("ada", "stop", False, "", None),
    ]
    assert acts[0].about == acts[2].about
    assert [row.vetoed for row in rows if isinstance(row, CandidateRow) and row.id == acts[2].about][-1]
    assert [row.budget for row in rows if isinstance(row, RunRow)][-1] == {"proposals": 9}


def test_a_run_that_starts_from_its_pool_keeps_the_vetoes(directory: Path) -> None:
    config = parse_config(
        {
            "clock": "virtual",
            "preset": "plain",
            "algorithm": {"max_in_flight": 4},
            "budget": {"proposals": 2},
            "start": {"run": str(directory)},
        },
        "test",
    )
    result = clock.run(lambda: fe.run(config, task=instructions(directory)), clock="virtual")
    with RecordedRun(directory) as recorded:
        (banned,) = [str(row["id"]) for row in candidate_rows(recorded) if row["vetoed"]]
    assert result.report.pool.vetoed(banned)
    assert result.best is not None
    assert result.best.id != banned
