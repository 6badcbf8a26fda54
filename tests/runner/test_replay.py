"""A recorded run replayed on the virtual clock: as it was, under other settings, and what can't be replayed."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.core.task import Task
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory, read_result
from flowevolve.journal.texts import text_key
from flowevolve.policies.staleness import Full
from flowevolve.runner.replay import Replayed, replay
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import Watchers, run
from flowevolve.tasks.house_style import house_style_task
from flowevolve.telemetry.comparison import compare
from flowevolve.telemetry.summary import summarize
from tests.support.journals import edited

SHORT = house_style_task(make_rows(rules=12, per_example=3, overlap=0.3, rows=90, seed=1))
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "stream": {
        "algorithm": {"max_in_flight": 8, "merge": True},
        "staleness": {"policy": "reflective"},
        "speculation": {"alpha": {"generate": 0.34, "evaluate": 0.3}},
        "allocation": {"policy": "pressure", "interval_seconds": 5},
        "budget": {"proposals": 25},
        "held_out": True,
    },
    "models": {
        "llm": {
            "concurrency": 24,
            "roles": {
                "task": {"model": "small", "concurrency": 16},
                "reflection": {"models": [{"model": "wise"}, {"model": "quick"}], "bandit": "ucb"},
            },
        },
        "budget": {"proposals": 12},
    },
    "lockstep": {"algorithm": {"mode": "sync", "width": 3}, "budget": {"proposals": 12}},
}


def record(path: Path, settings: Mapping[str, object], task: Task | None = SHORT, **objects: Any) -> Result:
    config = parse_config({"clock": "virtual", **settings}, "test")

    async def go() -> Result:
        return await run(config, task=task, out=path, **objects)

    return clock.run(go, clock="virtual")


def play(path: Path, *changes: str, task: Task | None = SHORT, **more: Any) -> Replayed:
    async def go() -> Replayed:
        return await replay(path, changes=changes, task=task, **more)

    return clock.run(go, clock="virtual")


def shown(replayed: Replayed) -> str:
    console = Console(file=io.StringIO(), width=200)
    scores = not replayed.replies.stand_ins
    console.print(compare(replayed.recorded, replayed.replayed, scores=scores, notes=replayed.notes))
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]  # a StringIO


def facts(path: Path) -> list[tuple[str, Mapping[str, object]]]:
    """What happened in a run, without the times, which differ in their last digits."""
    with RecordedRun(path) as recorded:
        return [
            (event.kind, {name: value for name, value in event.data.items() if name != "seconds"})
            for event in recorded.events()
        ]


@pytest.mark.parametrize("name", list(SETTINGS))
def test_with_the_same_settings_everything_happens_again(name: str, tmp_path: Path) -> None:
    before = record(tmp_path / "run", SETTINGS[name])
    replayed = play(tmp_path / "run", out=tmp_path / "replay")
    result, replies = replayed.result, replayed.replies
    assert facts(tmp_path / "replay") == facts(tmp_path / "run")
    with RecordedRun(tmp_path / "run") as recorded:
        calls = len(list(recorded.calls()))
    assert (replies.matched, replies.stand_ins) == (calls, 0)
    assert replies.peak_in_flight == replies.recorded_peak_in_flight > 1
    assert result.report.wall_seconds == pytest.approx(before.report.wall_seconds)
    assert result.llm == replace(before.llm, latency_seconds=result.llm.latency_seconds)
    assert (result.best, result.held_out) == (before.best, before.held_out)
    assert replayed.replayed.wall_seconds == pytest.approx(replayed.recorded.wall_seconds)
    assert replayed.replayed.spent == replayed.recorded.spent
    for stage, old in replayed.recorded.stages.items():
        new = replayed.replayed.stages[stage]
        assert new.items == old.items
        assert (new.busy_seconds, new.wait_seconds) == pytest.approx((old.busy_seconds, old.wait_seconds), abs=1e-3)
    assert replayed.replayed.llm.requests == replayed.recorded.llm.requests == before.llm.requests
    assert f"all {calls} are those recorded" in shown(replayed)
    assert "best score" in shown(replayed)


def test_no_call_of_a_replay_is_hedged_and_each_has_the_latency_of_the_first_answer(tmp_path: Path) -> None:
    before = record(tmp_path / "run", {"llm": {"concurrency": 24, "hedge": 0.2}, "budget": {"proposals": 12}})
    replayed = play(tmp_path / "run")
    hedged = before.traffic.hedged
    assert hedged is not None
    assert hedged.sent > 0
    assert replayed.result.traffic.hedged is None
    assert (replayed.replies.matched, replayed.replies.stand_ins) == (before.llm.requests, 0)
    assert replayed.result.best == before.best


def test_other_settings_answer_with_stand_ins_and_say_so(tmp_path: Path) -> None:
    record(tmp_path / "run", SETTINGS["lockstep"], task=None)
    before = facts(tmp_path / "run")
    prices = "llm.prices.simulated={input=1, output=2}"
    more = ("algorithm.mode=stream", "algorithm.max_in_flight=24", "llm.concurrency=256", prices)
    replayed = play(tmp_path / "run", *more, task=None, out=tmp_path / "replay")
    replies = replayed.replies
    assert facts(tmp_path / "run") == before
    assert replayed.result.mode == "stream"
    assert min(replies.matched, replies.stand_ins) > 0
    assert replies.matched + replies.stand_ins == replayed.result.llm.requests
    assert replies.peak_in_flight > replies.recorded_peak_in_flight
    assert replayed.replayed.wall_seconds < 0.7 * replayed.recorded.wall_seconds
    usage = replayed.recorded.llm.usage
    assert replayed.recorded.llm.dollars == pytest.approx((usage.prompt_tokens + 2 * usage.completion_tokens) / 1e6)
    said = shown(replayed)
    assert "scores mean nothing" in said
    assert f"with more than {replies.recorded_peak_in_flight} in flight" in said
    assert f"at most {replies.peak_in_flight}" in said
    assert "best score" not in said

    result = read_result(tmp_path / "replay")
    assert (result["backend"], result["simulated"]) == ("replay", True)
    about = result["replay"]
    assert isinstance(about, dict)
    assert (about["of"], about["stand_ins"]) == (str(tmp_path / "run"), replies.stand_ins)
    console = Console(file=io.StringIO(), width=200)
    console.print(summarize(result))
    assert "scores mean nothing" in console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO


def test_fewer_slots_take_longer(tmp_path: Path) -> None:
    record(tmp_path / "run", {"algorithm": {"max_in_flight": 16}, "preset": "plain", "budget": {"proposals": 6}})
    free, tight = play(tmp_path / "run"), play(tmp_path / "run", slots=4)
    assert tight.replies.peak_in_flight == 4
    assert tight.replayed.wall_seconds > 2 * free.replayed.wall_seconds


def test_a_replay_repeats_itself_and_can_be_replayed(tmp_path: Path) -> None:
    record(tmp_path / "run", SETTINGS["lockstep"])
    change = "algorithm.width=8"
    play(tmp_path / "run", change, out=tmp_path / "a")
    play(tmp_path / "run", change, out=tmp_path / "b")
    assert facts(tmp_path / "a") == facts(tmp_path / "b")
    again = play(tmp_path / "a", out=tmp_path / "c")
    assert again.replies.stand_ins == 0
    assert facts(tmp_path / "c") == facts(tmp_path / "a")


def test_a_run_going_on_can_be_replayed(tmp_path: Path) -> None:
    config = parse_config({"preset": "plain", "clock": "virtual", "budget": {"proposals": 20}}, "test")

    def die(event: Event) -> None:
        if event.kind == "pool.commit" and event.data["version"] == 3:
            raise KeyboardInterrupt

    async def go() -> Result:
        return await run(config, out=tmp_path / "run", watchers=Watchers(events=[die]))

    with pytest.raises(KeyboardInterrupt):
        clock.run(go, clock="virtual")
    at_work = RunDirectory(tmp_path / "run", config.model_dump(mode="json"), resume=True)
    try:
        replayed = play(tmp_path / "run")
    finally:
        at_work.close()
    assert replayed.result.report.stop_reason == "proposals"
    assert replayed.recorded.wall_seconds < replayed.replayed.wall_seconds
    assert replayed.recorded.accepted < replayed.replayed.accepted
    assert replayed.replies.matched > 0


def test_cached_replies_are_cached_again_and_the_cache_is_left_alone(tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    settings = {"budget": {"proposals": 4}, "llm": {"cache": {"path": str(cache)}}}
    record(tmp_path / "first", {**settings, "budget": {"proposals": 2}})
    before = record(tmp_path / "run", settings)
    held = cache.read_bytes()
    assert min(before.llm.cached_calls, before.llm.requests) > 0
    result = play(tmp_path / "run").result
    assert (result.llm.cached_calls, result.llm.requests) == (before.llm.cached_calls, before.llm.requests)
    assert result.best == before.best
    assert cache.read_bytes() == held


def test_what_was_given_as_an_object_has_to_be_given_again(tmp_path: Path) -> None:
    task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))
    record(tmp_path / "run", {"budget": {"proposals": 3}}, task, staleness=Full())
    with pytest.raises(InputError, match=r"staleness and task were given in Python.*task=…"):
        play(tmp_path / "run", task=None)
    assert play(tmp_path / "run", task=task, staleness=Full()).replies.stand_ins == 0
    assert play(tmp_path / "run", "staleness.policy=full", task=task).replies.stand_ins == 0


@pytest.mark.parametrize(
    ("changes", "more", "says"),
    [
        (["seed=2"], {}, "can't change seed, only algorithm.max_in_flight"),
        (["algorithm.minibatch=2"], {}, "can't change algorithm.minibatch"),
        (["task.name=math"], {}, "can't change task.name"),
        (["llm.model=other"], {}, "can't change llm.model"),
        (["stages.evaluat.workers=3"], {}, "evaluat"),
        (["budget.proposals=0"], {}, "budget.proposals"),
        (["stages"], {}, "such as --set budget.minutes=10"),
        ([], {"slots": 0}, "--slots is 0"),
        ([], {"out": "run"}, "holds a run already"),
    ],
)
def test_what_can_not_be_asked_is_explained(
    changes: list[str], more: dict[str, Any], says: str, tmp_path: Path
) -> None:
    record(tmp_path / "run", {"budget": {"proposals": 1}})
    if "out" in more:
        more = {"out": tmp_path / "run"}
    with pytest.raises(InputError, match=says) as error:
        play(tmp_path / "run", *changes, **more)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("UPDATE calls SET messages = NULL, reply = NULL", "was compacted"),
        ("DELETE FROM calls", "nothing to replay"),
        ("UPDATE calls SET messages = '[[\"input\", 1]]'", "asked for embeddings"),
        ("UPDATE calls SET reply = NULL, error = 'ServerError: down'", "nothing to replay"),
        ("UPDATE meta SET value = '2' WHERE key = 'schema'", "earlier version of flowevolve \\(schema 2\\)"),
    ],
)
def test_records_that_can_not_be_replayed_are_explained(damage: str, says: str, tmp_path: Path) -> None:
    record(tmp_path / "run", {"budget": {"proposals": 1}})
    with edited(tmp_path / "run") as journal:
        journal.execute(damage)
    with pytest.raises(InputError, match=says):
        play(tmp_path / "run")
    with pytest.raises(InputError, match="no such run directory"):
        play(tmp_path / "nowhere")


def test_a_replay_needs_the_virtual_clock_and_is_not_gone_on_with(tmp_path: Path) -> None:
    record(tmp_path / "run", {"budget": {"proposals": 1}}, task=None)
    with pytest.raises(InputError, match="virtual clock"):
        clock.run(lambda: replay(tmp_path / "run"), clock="real")
    play(tmp_path / "run", task=None, out=tmp_path / "replay")
    with pytest.raises(InputError, match="flowevolve replay DIR"):
        clock.run(lambda: resume(tmp_path / "replay", changes=["budget.proposals=3"]), clock="virtual")
    with pytest.raises(InputError, match="flowevolve replay DIR"):
        record(tmp_path / "new", {"llm": {"backend": "replay"}, "budget": {"proposals": 1}})
    assert json.loads((tmp_path / "replay" / "result.json").read_text())["backend"] == "replay"


def test_a_replay_has_the_thinking_of_its_run_and_takes_nothing_more_off(tmp_path: Path) -> None:
    record(tmp_path / "run", {"budget": {"proposals": 1}})
    with edited(tmp_path / "run") as journal:
        journal.execute("UPDATE calls SET thinking = 'hmm', reply = '<think>kept</think> yes'")
    play(tmp_path / "run", "budget.rollouts=60", out=tmp_path / "replay")
    with RecordedRun(tmp_path / "replay") as replayed:
        assert {(call.thinking, call.reply) for call in replayed.calls()} == {("hmm", "<think>kept</think> yes")}


def test_that_programs_take_no_time_is_told(tmp_path: Path) -> None:
    settings = {
        "algorithm": {"name": "best_of_n"},
        "task": {"name": "program", "problem": "circle_packing_26"},
        "sim": {"world": "code"},
        "budget": {"proposals": 2},
    }
    record(tmp_path, settings, task=None)
    notes = shown(play(tmp_path, task=None))
    assert "programs: they are run again, but take no time in a replay" in notes
    assert "never the same twice" not in notes, "every reply was recorded for the same request"
    with edited(tmp_path) as journal:
        shown_then = "It took 0.125 s."
        journal.execute("INSERT INTO texts VALUES (999, ?, ?)", (text_key(shown_then), shown_then))
        journal.execute("""UPDATE calls SET messages = '[["user",999]]'""")
    assert "never the same twice" in shown(play(tmp_path, task=None))
