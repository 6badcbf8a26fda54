"""What the page on runs that last says of what the journal costs, and of what a run has open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench._lib.text import Content
from bench.durability.runs import CONCURRENCY
from bench.durability.section import section
from bench.durability.server_log import ServerLog
from bench.report.results import read


def result() -> Content:
    content = read("durability")
    assert content is not None
    return content


def test_what_the_journal_costs_has_its_spread_and_its_limit() -> None:
    lost = {"median": -0.006, "low": -0.015, "high": 0.107, "n": 7}
    details = {**result()["journal_overhead_details"], "lost_throughput": lost}
    said = section({**result(), "journal_overhead_details": details})
    assert "where the server allows 500 and is the limit (median of 7 pairs) | -0.6 % (-1.5 % to 10.7 %); " in said


def test_what_is_open_is_told_on_both_clocks() -> None:
    soaks = {
        "soak_virtual": {**result()["soak_virtual"], "handles": [14, 14], "tasks": [42, 42]},
        "soak_real": {**result()["soak_real"], "handles": [39, 47], "tasks": [42, 48]},
    }
    said = section({**result(), **soaks})
    assert "virtual clock | 14; 42 |" in said
    assert "real clock | 39 to 47; 42 to 48 |" in said


def log_of(folder: Path, lines: Sequence[tuple[str, str]]) -> ServerLog:
    log = folder / "server.log"
    log.write_text("".join(f"{what} run/1 {key}\n" for what, key in lines), encoding="ascii")
    return ServerLog(log, "run")


def test_a_call_that_its_process_cancelled_was_not_in_flight_at_the_kill(tmp_path: Path) -> None:
    others = [(what, f"other{number}") for number in range(CONCURRENCY + 1) for what in ("begun", "ended")]
    kept = frozenset(key for _, key in others)
    cancelled = [("begun", "cancelled"), ("gone", "cancelled")]
    assert log_of(tmp_path, [*cancelled, *others]).in_flight("run/1", kept) == 0
    assert log_of(tmp_path, [*cancelled, *others, ("begun", "cancelled")]).in_flight("run/1", kept) == 1, "asked again"


def test_a_call_that_the_kill_cancelled_was_in_flight(tmp_path: Path) -> None:
    lines = [("begun", "cut-off"), ("begun", "answered"), ("ended", "answered"), ("begun", "kept"), ("gone", "cut-off")]
    assert log_of(tmp_path, lines).in_flight("run/1", frozenset({"kept"})) == 2
