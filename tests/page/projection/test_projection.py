"""The tables say what the journal and the result say, whether they are read at once or while the run goes on."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flowevolve.journal.export import candidate_rows
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.reading import RecordedRun
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.candidates import CandidateRow, ComponentRow, CurveRow, JudgementRow, ScoreRow
from flowevolve.page.tables.contract import TABLES
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import LogRow, RunRow, StageRow
from flowevolve.page.tables.work import CallRow, SpanRow
from flowevolve.runner.result import Result


def test_the_run_is_what_its_result_says(tables: Tables, result: Result) -> None:
    (run,) = tables.of(RunRow)
    assert result.best is not None
    assert (run.name, run.state, run.algorithm, run.task) == ("ended", "finished", "gepa", "house_style")
    assert (run.best, run.best_score, (run.low, run.high)) == (result.best.id, result.best.score, result.best.interval)
    assert (run.seed_score, run.proposals) == (result.seed_score, result.proposals)
    assert run.version == result.report.pool.version
    assert run.seconds == pytest.approx(result.wall_seconds, abs=1e-3)
    assert run.budget == {"proposals": 16}


def test_calls_add_up_to_what_the_run_paid(tables: Tables, result: Result) -> None:
    every = list(tables.of(CallRow))
    assert [call.id for call in every] == list(range(1, len(every) + 1))
    calls = [call for call in every if call.stage != "held_out"]
    assert len(calls) == result.llm.requests
    assert sum(call.prompt_tokens or 0 for call in calls) == result.llm.usage.prompt_tokens
    assert sum(call.completion_tokens or 0 for call in calls) == result.llm.usage.completion_tokens
    assert sum(call.cost or 0 for call in calls) == pytest.approx(result.llm.dollars)
    assert sum(call.outcome == "failed" for call in calls) == result.llm.failed


def test_no_two_requests_in_flight_share_a_slot(tables: Tables) -> None:
    last: dict[int, float] = {}
    for call in sorted(tables.of(CallRow), key=lambda each: each.begun):
        assert last.get(call.slot, 0.0) <= call.begun <= call.ended
        last[call.slot] = call.ended


def test_spans_are_the_work_that_the_stages_report(tables: Tables, result: Result) -> None:
    spans = list(tables.of(SpanRow))
    ended = Counter((span.stage, span.state) for span in spans)
    for name, stage in result.report.stages.items():
        assert ended[name, "discarded"] == stage.counts.discarded
        worked = [span for span in spans if span.stage == name]
        assert len(worked) == stage.counts.items_in
        assert sum(span.rollouts for span in worked) == stage.counts.rollouts
        assert sum(span.tokens for span in worked) == stage.counts.tokens
        assert sum(span.busy or 0 for span in worked) == pytest.approx(stage.counts.busy_seconds, abs=1e-3)
    assert [stage.stage for stage in tables.of(StageRow)] == list(result.report.stages)


def test_a_worker_has_one_item_at_a_time(tables: Tables, result: Result) -> None:
    last: dict[tuple[str, int | None], float] = {}
    for span in sorted(
        (each for each in tables.of(SpanRow) if each.taken is not None), key=lambda each: each.taken or 0
    ):
        assert last.get((span.stage, span.worker), 0.0) <= (span.taken or 0) <= (span.done or 0)
        last[span.stage, span.worker] = span.done or 0
    for name, stage in result.report.stages.items():
        assert all((worker or 0) < stage.workers for each, worker in last if each == name)


def test_candidates_and_scores_are_those_of_an_export(tables: Tables, directory: Path) -> None:
    with RecordedRun(directory) as recorded:
        exported = {row["id"]: row for row in candidate_rows(recorded)}
    candidates = {each.id: each for each in tables.of(CandidateRow)}
    assert list(candidates) == list(exported)
    for name, row in exported.items():
        candidate = candidates[name]
        assert (candidate.status, candidate.score, list(candidate.parents)) == (
            row["status"],
            row["mean"],
            row["parents"],
        )
        scored = {
            each.example: each.value
            for each in tables.of(ScoreRow)
            if (each.candidate, each.source) == (name, "validation")
        }
        assert scored == row["scores"]
        texts = {each.component: each.text for each in tables.of(ComponentRow) if each.candidate == name}
        assert texts == row["components"]
        assert candidate.length == sum(len(text or "") for text in texts.values())


def test_screened_candidates_have_a_score_for_each_example(tables: Tables) -> None:
    screened = {each.id: each for each in tables.of(CandidateRow) if each.screen is not None}
    assert screened
    for name, candidate in screened.items():
        scores = [each.value for each in tables.of(ScoreRow) if (each.candidate, each.source) == (name, "screen")]
        assert sum(scores) / len(scores) == pytest.approx(candidate.screen)


def test_the_curve_ends_with_the_best_and_what_was_spent(tables: Tables, result: Result) -> None:
    steps = [row for row in tables.of(CurveRow) if row.series == "validation"]
    assert result.best is not None
    assert result.held_out is not None
    assert [row.score for row in steps] == sorted(row.score for row in steps)
    assert steps[0].score == result.seed_score
    last = max(steps, key=lambda row: row.seconds)
    assert (last.version, last.candidate, last.score, last.calls) == (
        -1,
        result.best.id,
        result.best.score,
        result.llm.requests,
    )
    assert last.tokens == result.llm.usage.total_tokens
    held_out = {row.candidate: row.score for row in tables.of(CurveRow) if row.series == "held_out"}
    assert held_out[result.best.id] == result.held_out.best_score
    assert next(row.held_out for row in tables.of(CandidateRow) if row.kind == "seed") == result.held_out.seed_score


def test_every_judged_item_has_a_judgement(tables: Tables, result: Result) -> None:
    judged = {span.item: span for span in tables.of(SpanRow) if span.judged is not None}
    judgements = {row.item: row for row in tables.of(JudgementRow)}
    assert set(judgements) == set(judged)
    assert judged
    for item, row in judgements.items():
        assert (row.policy, row.gap) == (judged[item].judged, judged[item].gap)
    assert sum(row.verdict == "orthogonal" for row in judgements.values()) == result.report.staleness.repaired


def test_the_log_has_every_event(tables: Tables, directory: Path) -> None:
    with RecordedRun(directory) as recorded:
        events = [(event.seq, event.kind) for event in recorded.events()]
    assert [(row.seq, row.kind) for row in tables.of(LogRow)] == events


def in_order(tables: Tables) -> list[list[Row]]:
    """The rows of all tables, sorted by their keys."""
    return [sorted(tables.of(table), key=lambda row: str(row.identity())) for table in TABLES.values()]


def test_a_run_that_is_followed_ends_with_the_same_tables(tables: Tables, directory: Path, tmp_path: Path) -> None:
    """The last third of the journal and the result come when the first two thirds have been read."""
    run = tmp_path / "ended"
    shutil.copytree(directory, run)
    result = (run / "result.json").read_text("utf-8")
    for name in ("result.json", "journal.end"):
        (run / name).unlink()
    with closing(sqlite3.connect(run / JOURNAL)) as database:
        (events,) = database.execute("SELECT max(seq) FROM events").fetchone()
        cut = {"events": ("seq", events * 2 // 3), "calls": ("seq", events * 2 // 3 + 5)}  # some calls come early
        later = {
            table: database.execute(f"SELECT * FROM {table} WHERE {column} > ?", (at,)).fetchall()
            for table, (column, at) in cut.items()
        }
        for table, (column, at) in cut.items():
            database.execute(f"DELETE FROM {table} WHERE {column} > ?", (at,))
        database.commit()
        followed = Tables()
        with RunSource(run, "ended") as source:
            followed.update(source.changes())
            (before,) = followed.of(RunRow)
            for table, rows in later.items():
                database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            database.commit()
            (run / "result.json").write_text(result, "utf-8")
            followed.update(source.changes())
            assert list(source.changes()) == []
    assert before.state == "interrupted"
    followed.update([replace(row, directory=str(directory)) for row in followed.of(RunRow)])
    assert in_order(followed) == in_order(tables)
