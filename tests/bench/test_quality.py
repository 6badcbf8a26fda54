"""The quality bench: what is measured of a run, and what is made of many."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench._lib.intervals import interval
from bench.quality import __main__ as command
from bench.quality.beside import beside_presets, others_answer, others_section, without_answer, without_section
from bench.quality.charts import draw_quality
from bench.quality.figures import Content, summarise
from bench.quality.kept import KeptPairs
from bench.quality.methods import CANDIDATES, METHODS, ONLY_IN, OTHERS, WITHOUT
from bench.quality.pairs import GRID, Lockstep, Pair, Scores, Streamed, compare
from bench.quality.results import SEEDS, TUNING_SEEDS, methods_for, run_pairs
from bench.quality.runs import PROFILE, ROWS, SYNC, WORLDS, Goals, configure, evolve, held_out, task
from bench.quality.section import CHANGED_AFTER, CHOSEN_ON, VALIDATION, answer, section

MINUTES = 6.0
CHOSEN = list(METHODS)[-1]


def stream_like(score: float, *, seconds: float | None, at_equal_tokens: float) -> Streamed:
    scores = Scores(at_equal_tokens, at_equal_tokens - 0.01)
    return Streamed(
        final_seconds=seconds,
        held_out_seconds=seconds,
        most_seconds=seconds,
        fixed=Scores(score, score - 0.01),
        at={30.0: scores, 180.0: scores},
        minutes=60.0,
        proposals_per_minute=6.0,
        tokens_per_minute=3000.0,
        cancelled_share=0.0,
        curve=tuple(score for _ in GRID),
    )


def pair_of(world: str, seed: int, streams: dict[str, Streamed]) -> Pair:
    sync = Lockstep(
        seed_score=0.4,
        final_seconds=1000.0,
        held_out_seconds=1000.0,
        most_seconds=800.0,
        fixed=Scores(0.6, 0.59),
        at={30.0: Scores(0.6, 0.59), 180.0: Scores(0.8, 0.79)},
        tokens={30.0: 30_000, 180.0: 180_000},
        proposals_per_minute=1.5,
        curve=tuple(0.8 for _ in GRID),
    )
    return Pair(world, seed, 180.0, sync, streams)


def whole(pairs: list[Pair]) -> Content:
    settings = {
        "profile": PROFILE,
        "rows": ROWS,
        "minutes": 180.0,
        "seeds": [0, 1],
        "worlds": {"normal": {"about": "as it is"}, "noisy": {"about": "noisy"}},
    }
    content: Content = json.loads(json.dumps({**summarise(pairs, ["chosen"]), "settings": settings}))
    return content


def test_an_interval_holds_its_value_and_resamples_inside_groups() -> None:
    mixed = interval([[0.0] * 10, [1.0] * 10])
    assert (mixed.value, mixed.low, mixed.high, mixed.n) == (0.5, 0.5, 0.5, 20)
    spread = interval([[0.0, 1.0, 2.0, 3.0, 10.0]], "median")
    assert spread.value == 2.0
    assert spread.low < spread.value < spread.high


def test_a_pair_repeats_and_compares_at_equal_tokens() -> None:
    methods = {CHOSEN: METHODS[CHOSEN]}
    pair = compare("easy", 7, MINUTES, methods)
    assert compare("easy", 7, MINUTES, methods) == pair
    stream = pair.streams[CHOSEN]
    assert list(stream.at) == list(pair.sync.at) == [5.0, MINUTES]
    assert pair.sync.curve[0] == stream.curve[0] == pair.sync.seed_score
    assert 0 < pair.sync.final_seconds <= MINUTES * 60
    assert stream.proposals_per_minute > pair.sync.proposals_per_minute


def test_tokens_and_scores_are_read_off_a_run() -> None:
    trace = evolve(WORLDS["easy"], SYNC, 7, MINUTES)
    spent = trace.calls[-1][1]
    assert spent == trace.result.llm.usage.total_tokens
    assert trace.tokens_at(-1.0) == 0
    assert trace.tokens_at(trace.time_of(spent // 2)) > spent // 2
    assert trace.time_of(10 * spent) == trace.result.report.wall_seconds
    last = trace.gains[-1]
    prompt = "\n".join(trace.result.report.pool[last.candidate].artifact.values())
    assert trace.best_at(0.0) == trace.gains[0]
    assert trace.best_at(1e9) == last
    assert trace.final == last.score == trace.result.report.pool[last.candidate].mean_score
    assert trace.final_held_out == last.held_out == held_out(WORLDS["easy"], prompt, 7)
    assert trace.time_to(trace.final) == last.time
    assert trace.time_to(2.0) is None
    assert trace.time_to_held_out(2.0) is None
    assert (trace.time_to_held_out(last.held_out) or 0.0) <= last.time


def test_a_stream_stops_when_it_has_answered_everything() -> None:
    trace = evolve(
        WORLDS["easy"], METHODS[CHOSEN], 7, 60.0, Goals(score=0.0, held_out=0.0, tokens=1, seconds=120.0, given_up=1e9)
    )
    assert trace.result.report.stop_reason == "goals reached"
    assert 2.0 <= trace.result.report.wall_seconds / 60 < 5.0
    lost = evolve(
        WORLDS["easy"], METHODS[CHOSEN], 7, 60.0, Goals(score=2.0, held_out=0.0, tokens=1, seconds=60.0, given_up=180.0)
    )
    assert 3.0 <= lost.result.report.wall_seconds / 60 < 6.0


def test_held_out_scores_tell_a_prompt_that_states_the_rules() -> None:
    world = WORLDS["normal"]
    assert held_out(world, "Be brief.\n- Do not use any commas.", 3) >= held_out(world, "Be brief.", 3)


def test_prompts_that_say_the_same_are_worth_the_same_on_rows_held_out() -> None:
    lines = [
        "- Do not use any commas.",
        "- Mention the exact date.",
        '- Include the keywords "safety" in the response.',
    ]
    worth = {held_out(WORLDS["easy"], "\n".join(["Be brief.", *each]), 3) for each in (lines, lines[::-1], lines[1:])}
    assert len(worth) == 2


def test_all_configurations_can_be_run() -> None:
    for settings in (SYNC, *METHODS.values(), *OTHERS.values(), *WITHOUT.values(), *CANDIDATES.values()):
        for world in WORLDS.values():
            assert configure(world, settings, 0, 1.0).sim.preset == world.preset


def test_no_seed_is_both_tuned_on_and_reported() -> None:
    assert len(SEEDS) >= 20
    assert not {*SEEDS} & {*TUNING_SEEDS, *CHOSEN_ON, *CHANGED_AFTER}
    assert all(set(worlds) < set(WORLDS) for worlds in ONLY_IN.values())
    assert list(methods_for("normal", METHODS)) == list(METHODS)
    assert list(methods_for("easy", METHODS)) == ["default"]
    assert list(methods_for("easy", OTHERS)) == list(OTHERS)


def test_figures_are_paired_and_the_last_method_stands_on_top() -> None:
    faster = stream_like(0.8, seconds=200.0, at_equal_tokens=0.83)
    slower = stream_like(0.7, seconds=None, at_equal_tokens=0.77)
    content = whole([pair_of("normal", 0, {"chosen": faster}), pair_of("noisy", 0, {"chosen": slower})])
    time, tokens = content["time_to_sync_score"], content["score_at_equal_tokens"]
    assert isinstance(time, dict)
    assert isinstance(tokens, dict)
    assert (time["median"], time["max"], time["not_reached"]) == (pytest.approx(1.1), 2.0, 1)
    assert tokens["mean"] == pytest.approx(0.0, abs=1e-9)
    assert tokens["ci95"] is None, "one seed in each world"
    rows = content["rows"]
    assert isinstance(rows, list)
    assert [row["world"] for row in rows] == ["normal", "noisy"]
    assert rows[0]["evolution_rate"]["median"] == pytest.approx(2.0)


def test_a_method_that_was_run_in_no_world_has_no_figures() -> None:
    pair = pair_of("easy", 0, {"chosen": stream_like(0.8, seconds=200.0, at_equal_tokens=0.8)})
    methods = summarise([pair], ["only elsewhere", "chosen"])["methods"]
    assert isinstance(methods, dict)
    assert list(methods) == ["chosen"]


def test_times_of_single_runs_are_told_with_how_many_never_get_there() -> None:
    seconds = [50.0] * 4 + [300.0] * 14 + [700.0, None]
    runs = [stream_like(0.8, seconds=each, at_equal_tokens=0.83) for each in seconds]
    content = whole([pair_of("normal", seed, {"chosen": run}) for seed, run in enumerate(runs)])
    text = section(content)
    assert "10 % 0.05, 25 % 0.30, 50 % 0.30, 75 % 0.30, 90 % 0.30, 95 % 0.70 |" in text
    assert "| 0.05–0.30, 1 never |" in text
    assert answer(content).endswith("; nine in ten runs take at most 0.30, and 1 of 20 runs do not in twice its time")


def test_times_of_single_runs_that_a_result_does_not_have_take_no_row_and_no_column() -> None:
    run = stream_like(0.8, seconds=50.0, at_equal_tokens=0.83)
    content = whole([pair_of("normal", seed, {"chosen": run}) for seed in range(3)])
    assert "single runs" in section(content)
    methods = content["methods"]
    assert isinstance(methods, dict)
    del methods["chosen"]["time_to_sync_held_out"]["quantiles"]
    older = section(content)
    assert "single runs" not in older
    head, line = (
        next(each for each in older.splitlines() if each.startswith(start)) for start in ("| world", "| normal")
    )
    assert head.count("|") == line.count("|")


def test_the_page_knows_how_many_rows_are_for_validation() -> None:
    assert len(task(WORLDS["normal"].overlap, 0, WORLDS["normal"].rules).data.val) == VALIDATION


def test_where_lockstep_gained_nothing_there_is_no_evolution_rate() -> None:
    pair = pair_of("normal", 0, {"chosen": stream_like(0.8, seconds=200.0, at_equal_tokens=0.8)})
    flat = replace(pair, sync=replace(pair.sync, seed_score=pair.sync.fixed.validation))
    rows = summarise([flat], ["chosen"])["rows"]
    assert isinstance(rows, list)
    assert rows[0]["evolution_rate"] == {"median": None, "ci95": None, "n": 0}


def test_the_headline_is_the_median_time_and_what_is_worst() -> None:
    faster = stream_like(0.8, seconds=200.0, at_equal_tokens=0.83)
    slower = stream_like(0.7, seconds=None, at_equal_tokens=0.77)
    pairs = [pair_of("normal", seed, {"chosen": faster}) for seed in (0, 1, 2)]
    pairs += [pair_of("noisy", seed, {"chosen": slower}) for seed in (0, 1)]
    pairs += [pair_of("harsh", seed, {"chosen": faster}) for seed in (0, 1)]
    headline = summarise(pairs, ["chosen"])["headline"]
    assert isinstance(headline, dict)
    assert (headline["time_median"], headline["worst_world"]) == (pytest.approx(0.2), 2.0)
    assert headline["equal_tokens"] == {"30": pytest.approx(0.17), "180": pytest.approx(-0.03)}
    assert headline["harsh_worst"] == pytest.approx(0.03)


def test_the_section_says_where_a_goal_is_missed(tmp_path: Path) -> None:
    faster = stream_like(0.8, seconds=100.0, at_equal_tokens=0.83)
    slower = stream_like(0.7, seconds=None, at_equal_tokens=0.77)
    pairs = [pair_of("normal", seed, {"chosen": faster}) for seed in (0, 1)]
    won = section(whole(pairs))
    assert "≤ 0.15: met" in won
    assert "In every world the goals are met." in won
    pairs += [pair_of("noisy", seed, {"chosen": slower}) for seed in (0, 1)]
    content = whole(pairs)
    lost = section(content)
    assert "≤ 0.15: missed" in lost
    assert re.search(
        r"^- `noisy`, `chosen`: .*2 of 2 seeds had not got that score in twice the time", lost, re.MULTILINE
    )
    assert "- `normal`" not in lost.split("Where a goal is missed")[1]
    assert "| runs that never have lockstep's final held-out score in twice its time | 2 of 4 |" in lost
    assert "| tokens that it spends a minute over lockstep's, mean (worlds) | 3.0 (3.0 to 3.0) |" in lost
    assert "`fickle`, `harsh`, `noisy`, `normal` with seeds 900 to 907." in lost
    assert "2 of these seeds are reported here." in lost
    settings = content["settings"]
    assert isinstance(settings, dict)
    settings["seeds"] = list(SEEDS)
    assert "None of these seeds is reported here." in section(content)
    assert answer(content).endswith("; 2 of 4 runs do not in twice its time")
    draw_quality(tmp_path / "quality.svg", content)
    assert (tmp_path / "quality.svg").read_text(encoding="utf-8").count('<g id="axes_') == 2


def test_a_pair_is_kept_and_found_again_unless_it_was_made_otherwise(tmp_path: Path) -> None:
    pair = pair_of("easy", 3, {CHOSEN: stream_like(0.9, seconds=None, at_equal_tokens=0.8)})
    methods = {CHOSEN: METHODS[CHOSEN]}
    KeptPairs(tmp_path, "1a2b3c").write(pair, methods)
    assert KeptPairs(tmp_path, "1a2b3c").read("easy", 3, 180.0, methods) == pair
    assert KeptPairs(tmp_path, "4d5e6f").read("easy", 3, 180.0, methods) is None
    assert KeptPairs(tmp_path, "1a2b3c").read("easy", 3, 60.0, methods) is None
    assert KeptPairs(tmp_path, "1a2b3c").read("easy", 3, 180.0, {CHOSEN: {"preset": "plain"}}) is None
    assert KeptPairs(tmp_path, "1a2b3c").read("easy", 4, 180.0, methods) is None


def test_pairs_that_are_kept_are_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = KeptPairs(tmp_path, "1a2b3c")
    pairs = [pair_of("easy", seed, {CHOSEN: stream_like(0.9, seconds=50.0, at_equal_tokens=0.8)}) for seed in range(2)]
    for pair in pairs:
        kept.write(pair, {CHOSEN: METHODS[CHOSEN]})
    assert list(run_pairs(["easy"], range(2), 180.0, {CHOSEN: METHODS[CHOSEN]}, 1, kept)) == pairs
    assert capsys.readouterr().out.count("easy, seed") == 2


def test_nothing_is_kept_of_code_that_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "environment", lambda: {"commit": "1a2b3c", "uncommitted_changes": True})
    monkeypatch.setattr("sys.argv", ["bench.quality", "--quick", "--keep", str(tmp_path)])
    with pytest.raises(SystemExit):
        command.main()
    assert "commit what you changed first" in capsys.readouterr().err


def beside(
    *, first: float | None, second: float, loss: float = 0.08, rate: float = 3000.0, name: str = "first"
) -> Content:
    """Two methods in one world, by the seconds to lockstep's held-out score; the second is the one on top, and the
    first, which has another name, has a score that is lower by so much and spends so many tokens a minute.
    """
    streams = {
        name: replace(stream_like(0.8, seconds=first, at_equal_tokens=0.83 - loss), tokens_per_minute=rate),
        "second": stream_like(0.8, seconds=second, at_equal_tokens=0.83),
    }
    pairs = [pair_of("normal", seed, streams) for seed in (0, 1)]
    worlds = {"normal": {"about": "as it is"}}
    settings = {"profile": PROFILE, "minutes": 180.0, "seeds": [0, 1], "worlds": worlds}
    content: Content = json.loads(json.dumps({**summarise(pairs, [name, "second"]), "settings": settings}))
    return content


def test_the_page_on_what_else_could_be_taken_says_where_that_is_sooner() -> None:
    sooner, later = beside(first=400.0, second=100.0), beside(first=100.0, second=400.0)
    assert "than first in 1 and 1 of 1" in others_answer(sooner)
    assert "| first | 1 | 1 | 1 | 0 | 1 |" in beside_presets(sooner)
    assert "It spends 3.0 (3.0 to 3.0) times the tokens a minute of the loop" in beside_presets(sooner)
    assert "at least one world: none. These reach it for fewer tokens: none." in beside_presets(sooner)
    assert "at least one world: *first*. These reach it for fewer tokens: *first*" in beside_presets(later)
    assert "lies below that of *first* (normal)" in others_section(sooner).replace("\n", " ")
    assert "in every world" in others_section(sooner)
    assert "than first in 0 and 0 of 1" in others_answer(later)
    assert "| first | 1 | 0 | 0 | 1 | 0 |" in beside_presets(later)
    assert "lies below that of none. It lies above that of *first* (normal)." in others_section(later)
    assert "- `normal`: 0.10 for *first*, 0.40 for the default." in others_section(later)


def test_the_page_on_parts_switched_off_says_what_is_lost_of_the_score() -> None:
    content = beside(first=400.0, second=100.0)
    assert without_answer(content).startswith(
        "of held-out score at the tokens of lockstep's 180 minutes 0.080 with *first"
    )
    assert "| first | 0.40 (0.10) | +0.080 | +0.080 | 1 of 1 |" in without_section(content)
    same = beside(first=400.0, second=100.0, loss=0.0)
    assert "nothing clearly; with the others 0.000 to 0.000, which 2 seeds can't tell" in without_answer(same)
    assert without_answer(same).endswith(" minutes +0.000 to +0.000")
    assert "| first | 0.40 (0.10) | +0.000 | +0.000 | 0 of 1 |" in without_section(same)


def test_who_is_ahead_at_the_tokens_of_the_first_minutes_is_named() -> None:
    content = beside(first=400.0, second=100.0, loss=-0.01)
    said = "; at the tokens of lockstep's first 30 and 180 minutes *first* is ahead in every world"
    assert said in beside_presets(content)
    assert said in others_section(content)
    assert "is ahead" not in others_section(beside(first=400.0, second=100.0))


def test_what_is_sooner_may_be_dearer_and_each_kind_is_counted_by_itself() -> None:
    slow_and_cheap = beside(first=300.0, second=200.0, rate=1500.0, name="combee 10")
    assert "than Combee as published in 1 and 0 of 1" in others_answer(slow_and_cheap)
    assert "for fewer tokens than the default: *combee 10* (in 1 of 1 worlds)" in others_section(slow_and_cheap)
    assert "| normal | combee 10 | 0.30 (0.30–0.30) | 1.5 |" in others_section(slow_and_cheap)
    never = beside(first=None, second=200.0, rate=1.0, name="preset careful")
    assert "for fewer tokens than the default: none." in others_section(never), "nothing gets to a score for less"
    rows = never["rows"]
    assert isinstance(rows, list)
    both = {**never, "rows": [{**rows[0], "method": "combee 10"}, *rows]}
    assert "than Combee as published in 1 and 1 of 1, than other presets in 1 and 1 of 1" in others_answer(both)
