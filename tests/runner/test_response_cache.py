"""Whole runs with a response cache, on the simulated backend and the virtual clock."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.runner.check import check
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.sim.backend import SimBackend
from flowevolve.telemetry.summary import summarize


def go(
    path: Path, out: Path | None = None, *, mode: str = "sync", budget: Mapping[str, object] | None = None, **sim: str
) -> tuple[Result, list[Event]]:
    config = parse_config(
        {
            "clock": "virtual",
            "algorithm": {"mode": mode},
            "budget": budget or {"proposals": 6},
            "llm": {"cache": {"path": str(path)}, "prices": {"simulated": {"input": 1, "output": 1}}},
            "sim": sim,
        },
        "test",
    )
    events: list[Event] = []

    async def start() -> Result:
        return await run(config, out=out, watchers=Watchers(events=[events.append]))

    return clock.run(start, clock="virtual"), events


def test_a_second_run_of_the_same_config_makes_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cold, _ = go(tmp_path / "c.sqlite")
    monkeypatch.delattr(SimBackend, "chat")
    warm, _ = go(tmp_path / "c.sqlite", tmp_path / "run")
    assert (warm.best, warm.report.spent.rollouts) == (cold.best, cold.report.spent.rollouts)
    written = json.loads((tmp_path / "run" / "result.json").read_text())["llm"]
    saved = {"cached_calls": cold.llm.requests, "cached_calls_tokens": cold.llm.usage.total_tokens}
    assert {name: written[name] for name in saved} == saved
    paid = ("requests", "failed", "prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "mean_in_flight")
    assert {written[name] for name in paid} == {0}
    assert sum(stage.counts.tokens for stage in warm.report.stages.values()) == 0
    console = Console(file=io.StringIO(), width=200)
    console.print(summarize(warm.to_json()))
    assert f"{cold.llm.requests} calls answered by the response cache" in console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    with sqlite3.connect(tmp_path / "run" / "journal.sqlite") as journal:
        assert journal.execute("SELECT cached, count(*) FROM calls GROUP BY cached").fetchall() == [
            (1, cold.llm.requests)
        ]
    journal.close()


def test_only_what_is_paid_for_is_charged_to_the_budget(tmp_path: Path) -> None:
    cold, _ = go(tmp_path / "c.sqlite", budget={"tokens": 200_000})
    warm, _ = go(tmp_path / "c.sqlite", budget={"tokens": 200_000})
    assert cold.report.spent.tokens == cold.llm.usage.total_tokens
    assert warm.report.spent.tokens == warm.llm.usage.total_tokens >= 200_000
    assert warm.report.spent.dollars == pytest.approx(warm.llm.dollars)
    assert warm.llm.cached_calls == cold.llm.requests
    assert warm.report.spent.rollouts > cold.report.spent.rollouts


def test_runs_repeat_event_by_event_on_caches_with_the_same_contents(tmp_path: Path) -> None:
    """Stream mode: answers from the cache change what meets what, so such runs are hits and misses mixed."""
    go(tmp_path / "warm", mode="stream", budget={"proposals": 15})
    for name in ("first", "second"):
        shutil.copy(tmp_path / "warm", tmp_path / name)
    first, events = go(tmp_path / "first", mode="stream", budget={"proposals": 25})
    second, same_events = go(tmp_path / "second", mode="stream", budget={"proposals": 25})
    assert events == same_events
    assert first.llm == second.llm
    assert min(first.llm.cached_calls, first.llm.requests) > 100


def test_another_simulated_world_gives_other_replies(tmp_path: Path) -> None:
    cold, _ = go(tmp_path / "c.sqlite")
    other, _ = go(tmp_path / "c.sqlite", preset="noisy")
    assert (cold.llm.cached_calls, other.llm.cached_calls) == (0, 0)


def test_a_file_that_is_no_cache_is_found_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but precious all the same")
    with pytest.raises(InputError, match=r"notes\.txt: can't be used as a response cache"):
        go(path, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    config = parse_config({"budget": {"proposals": 1}, "llm": {"cache": {"path": str(path)}}}, "test")
    with pytest.raises(InputError, match=r"notes\.txt"):
        clock.run(check, config)
    assert path.read_text().startswith("not a database")


def test_a_misspelt_key_is_pointed_out() -> None:
    with pytest.raises(InputError, match=r"llm\.cache\.pth: unknown key.*path"):
        parse_config({"budget": {"proposals": 1}, "llm": {"cache": {"pth": "x"}}}, "test")
