"""Going on with runs in directories, and starting from another run's pool."""

from __future__ import annotations

import json
import os
import pickle
import re
import sqlite3
import sys
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import anyio
import pytest
from structlog.testing import capture_logs

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError, InputError, StorageError
from flowevolve.config.run import Config, parse_config
from flowevolve.core.policies import Resize, Workload
from flowevolve.journal.examination import Findings, examine
from flowevolve.journal.export import export
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.repair import repair
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.runner.plan import Plan, ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers
from flowevolve.tasks.house_style import house_style_task
from tests.support.journals import edited

SETTINGS: Mapping[str, object] = {
    "clock": "virtual",
    "algorithm": {"max_in_flight": 6},
    "staleness": {"policy": "reflective"},
    "speculation": {"alpha": {"generate": 0.34, "evaluate": 0.3}},
    "budget": {"proposals": 8},
}


def config(**sections: object) -> Config:
    return parse_config({**SETTINGS, **sections}, "test")


def run(out: Path, **sections: object) -> Result:
    async def go() -> Result:
        return await fe.run(config(**sections), out=out, events=True)

    return clock.run(go, clock="virtual")


def resume(directory: Path, *changes: str, task: fe.Task | None = None) -> tuple[Result, list[fe.Event]]:
    events: list[fe.Event] = []

    async def go() -> Result:
        return await fe.resume(directory, changes=changes, task=task, watchers=Watchers(events=(events.append,)))

    return clock.run(go, clock="virtual"), events


def kill(directory: Path, share: float) -> None:
    """Leave a run as if it had been killed when so much of it had been done."""
    with edited(directory) as database:
        (last,) = database.execute("SELECT max(seq) FROM events").fetchone()
        database.execute("DELETE FROM events WHERE seq > ?", (int(last * share),))
        database.execute("DELETE FROM calls WHERE seq >= ?", (int(last * share),))
    (directory / "result.json").unlink()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_on_the_virtual_clock_a_killed_run_ends_as_if_it_had_not_been(tmp_path: Path, share: float) -> None:
    before = run(tmp_path / "run")
    log = (tmp_path / "run" / "events.jsonl").read_text()
    kill(tmp_path / "run", share)
    after, _ = resume(tmp_path / "run")
    assert (tmp_path / "run" / "events.jsonl").read_text() == log
    assert after.to_json() == before.to_json()


def test_a_run_done_again_that_goes_another_way_says_where(tmp_path: Path) -> None:
    run(tmp_path)
    kill(tmp_path, 0.5)
    with edited(tmp_path) as database:
        database.execute("UPDATE events SET kind = 'other' WHERE seq = 40")
    with pytest.raises(InputError, match="another way at event 40"):
        resume(tmp_path)


def test_a_run_that_has_ended_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    before = run(tmp_path)
    with pytest.raises(InputError, match=r"has ended \(the limit on proposals\)"):
        resume(tmp_path)
    changes = ("stages.evaluate.workers=3", "algorithm.max_in_flight=3", "algorithm.aim=time")
    after, events = resume(tmp_path, "budget.proposals=12", *changes)
    assert before.report.spent.proposals < 11 <= after.report.spent.proposals <= 12, "one short where a flow takes two"
    assert after.report.wall_seconds > before.report.wall_seconds
    assert after.llm.requests > before.llm.requests
    assert events[0].kind == "run.resumed"
    assert events[0].data["spent"] == before.report.spent.to_json()
    assert json.loads((tmp_path / "result.json").read_text())["proposals"] == after.report.spent.proposals
    log = [json.loads(line)["seq"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert log == list(range(len(log)))


class Planted:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self._path),)


def test_a_pickle_in_a_journal_is_refused_and_runs_no_code_and_the_run_can_still_be_read(tmp_path: Path) -> None:
    """Earlier versions wrote pickles, and anybody may plant one."""
    before = run(tmp_path / "run")
    with edited(tmp_path / "run") as database:
        planted = pickle.dumps(Planted(tmp_path / "ran"))
        database.execute("INSERT INTO payloads VALUES ('1.0', 1, ?)", (planted,))
    with pytest.raises(StorageError, match="kept payloads as pickles: report and export read it") as caught:
        resume(tmp_path / "run", "budget.proposals=12")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()
    export(tmp_path / "run", tmp_path / "exported")
    assert len((tmp_path / "exported" / "candidates.jsonl").read_text().splitlines()) >= before.report.spent.proposals


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (["budget.proposals=3"], r"has taken \d+ proposals, and now may take 3: .*--set budget\.proposals=…"),
        (["budget.proposals=null", "budget.rollouts=20"], r"has taken \d+ rollouts, and now may take 20"),
        (["budget.proposals=12", "budget.minutes=0.01"], r"has taken [\d.]+ seconds, and now may take 0\.6"),
    ],
)
def test_a_run_that_has_ended_is_not_ended_once_more_by_a_limit_that_it_has_passed(
    tmp_path: Path, changed: list[str], told: str
) -> None:
    run(tmp_path)
    before = (tmp_path / "result.json").read_text()
    with pytest.raises(InputError, match=told):
        resume(tmp_path, *changed)
    assert (tmp_path / "result.json").read_text() == before


def test_a_run_that_has_ended_goes_on_with_a_score_to_reach_whatever_that_is(tmp_path: Path) -> None:
    run(tmp_path)
    after, _ = resume(tmp_path, "budget.proposals=12", "budget.target_score=-0.5")
    assert after.report.stop_reason == "target_score"


def test_a_run_that_had_reached_its_target_before_says_so_and_what_to_do(tmp_path: Path) -> None:
    first = run(tmp_path, budget={"proposals": 8, "target_score": -0.5})
    assert not first.reached_before
    with capture_logs() as logs:
        again, _ = resume(tmp_path, "budget.proposals=12")
    (note,) = [record["note"] for record in logs if record["event"] == "resume.note"]
    assert note == (
        f"{tmp_path}: nothing new was begun, as what ends the run had been reached before (the target score); to go on "
        "with it, give it a higher target: --set budget.target_score=…"
    )
    assert (again.stop_reason, again.proposals) == ("target_score", first.proposals)
    assert "stopped by the target score, reached before the run was resumed" in repr(again)
    assert fe.Result.load(tmp_path).reached_before
    after, _ = resume(tmp_path, "budget.target_score=2")
    assert (after.stop_reason, after.reached_before) == ("proposals", False)


def test_a_run_whose_budget_had_been_used_up_says_so_though_other_settings_have_changed(tmp_path: Path) -> None:
    run(tmp_path)
    with capture_logs() as logs:
        again, _ = resume(tmp_path, "algorithm.max_in_flight=3")
    assert again.reached_before
    (note,) = [record["note"] for record in logs if record["event"] == "resume.note"]
    assert note.endswith("(the limit on proposals); to go on with it, give it more, such as --set budget.proposals=…")


def test_a_run_that_a_stopping_rule_ended_is_told_which_to_loosen(tmp_path: Path) -> None:
    before = run(tmp_path, stopping={"no_improvement": 1}, budget={"proposals": 60})
    assert before.report.stop_reason == "no_improvement"
    with pytest.raises(
        InputError, match=r"has ended \(proposals without improvement\).* --set stopping\.no_improvement=…"
    ):
        resume(tmp_path)
    after, _ = resume(tmp_path, "stopping.no_improvement=5")
    assert after.report.spent.proposals >= before.report.spent.proposals + 4


def test_a_run_whose_algorithm_had_nothing_left_to_do_is_not_told_to_get_more_time(tmp_path: Path) -> None:
    run(tmp_path, algorithm={"name": "ace", "epochs": 1}, staleness={}, speculation={}, budget={"proposals": 10_000})
    with pytest.raises(
        InputError, match=r"has ended \(the end of the algorithm's work\): .*nothing left to do.* --from DIR$"
    ):
        resume(tmp_path)


class Noting:
    """An allocation policy that notes what stages handed on between its looks."""

    interval_seconds = 5.0
    produced: ClassVar[list[int]] = []

    def decide(self, load: Workload) -> Sequence[Resize]:
        self.produced.append(sum(stage.produced for stage in load.stages))
        return ()


def test_the_calls_of_a_held_out_test_are_not_the_runs_whether_it_goes_on_after_it_or_not(tmp_path: Path) -> None:
    before = run(tmp_path, held_out=True)
    after, _ = resume(tmp_path, "budget.proposals=12")
    with RecordedRun(tmp_path) as recorded:
        calls = [call for call in recorded.calls() if call.stage != "held_out"]
    assert before.llm.requests < after.llm.requests == len(calls)


class Refused:
    """A task that is refused an answer once, on the first example that evolution never sees."""

    def __init__(self) -> None:
        self._task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))
        self.name, self.data = self._task.name, self._task.data
        self._refuses = True

    def seed(self) -> fe.Artifact:
        return self._task.seed()

    async def rollout(self, artifact: fe.Artifact, example: fe.Example, llm: fe.ChatModel) -> fe.Rollout:
        if self._refuses and example in self.data.test:
            self._refuses = False
            raise BackendRefusedError("the key is spent")
        return await self._task.rollout(artifact, example, llm)


class RefusedFrom:
    """A task that is refused all answers after so many, until ``left`` is None."""

    def __init__(self, left: int) -> None:
        self._task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))
        self.name, self.data = self._task.name, self._task.data
        self.left: int | None = left

    def seed(self) -> fe.Artifact:
        return self._task.seed()

    async def rollout(self, artifact: fe.Artifact, example: fe.Example, llm: fe.ChatModel) -> fe.Rollout:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise BackendRefusedError("the key is spent")
        return await self._task.rollout(artifact, example, llm)


def test_a_run_whose_held_out_test_failed_writes_no_result_and_goes_on_with_the_test_alone(tmp_path: Path) -> None:
    task = Refused()

    async def go() -> Result:
        return await fe.run(config(held_out=True), task=task, out=tmp_path)

    with pytest.raises(BackendRefusedError, match="the key is spent"):
        clock.run(go, clock="virtual")
    assert not (tmp_path / "result.json").exists()
    result, _ = resume(tmp_path, task=task)
    assert result.held_out is not None
    assert (tmp_path / "result.json").exists()
    with RecordedRun(tmp_path) as recorded:
        stages = [call.stage for call in recorded.calls()]
    assert "held_out" not in stages[: result.llm.requests]
    assert set(stages[result.llm.requests :]) == {"held_out"}


def test_an_allocation_policys_first_look_after_a_resume_is_at_what_was_done_since(tmp_path: Path) -> None:
    def handed_on(result: Result) -> int:
        return sum(stage.counts.items_out for stage in result.report.stages.values())

    before = run(tmp_path, allocation={"policy": "tests.runner.test_resume:Noting"}, budget={"proposals": 30})
    Noting.produced.clear()
    after, _ = resume(tmp_path, "budget.proposals=40")
    assert 0 < sum(Noting.produced) <= handed_on(after) - handed_on(before)


@pytest.mark.parametrize("changes", [(), ("budget.proposals=12",)])
def test_a_run_killed_before_it_could_write_its_result_writes_it(tmp_path: Path, changes: tuple[str, ...]) -> None:
    before = run(tmp_path)
    if changes:
        before, _ = resume(tmp_path, *changes)
    (tmp_path / "result.json").unlink()
    after, _ = resume(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text()) == after.to_json()
    assert after.best == before.best
    assert after.report.spent == before.report.spent
    assert after.llm.requests == before.llm.requests


def test_a_result_is_gone_as_soon_as_its_run_goes_on(tmp_path: Path) -> None:
    run(tmp_path)
    seen: list[bool] = []

    def look(event: fe.Event) -> None:
        if event.kind == "run.resumed":
            seen.append((tmp_path / "result.json").exists())

    async def go() -> Result:
        return await fe.resume(tmp_path, changes=["budget.proposals=12"], watchers=Watchers(events=(look,)))

    clock.run(go, clock="virtual")
    assert seen == [False]


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match=r"algorithm\.minibatch is 5 and was not given; seed is 4 and was 0"):
        resume(tmp_path, "seed=4", "algorithm.minibatch=5", "budget.proposals=12")


@pytest.mark.parametrize("setting", ["llm.model", "llm.roles.propose.model"])
def test_other_models_are_refused_though_the_rest_of_the_section_may_change(setting: str, tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match=f'other settings of these: {setting} is "another" and was not given'):
        resume(tmp_path, f"{setting}=another", "llm.concurrency=4", "budget.proposals=12")


def test_other_models_that_share_a_role_are_refused_too(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match=r"other settings of these: llm\.roles\.propose\.models is "):
        resume(tmp_path, 'llm.roles.propose.models=[{model="a"},{model="b"}]', "budget.proposals=12")


def test_what_was_given_is_known_though_the_run_was_paused_before_it_began(tmp_path: Path) -> None:
    task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))

    async def go() -> None:
        async with fe.open_run(config(), task=task, out=tmp_path) as engine:
            engine.pause()
            async for event in engine.events():
                if event.kind == "run.start":
                    engine.unpause()

    clock.run(go, clock="virtual")
    with pytest.raises(InputError, match="task was given as an object"):
        resume(tmp_path, "budget.proposals=12")


def test_a_run_that_was_paused_is_gone_on_with_and_not_done_again(tmp_path: Path) -> None:
    async def go() -> None:
        async with fe.open_run(config(), out=tmp_path) as engine:
            async for event in engine.events():
                if event.kind == "pool.commit" and event.data["version"] == 1:
                    engine.pause()
                    engine.unpause()

    clock.run(go, clock="virtual")
    kill(tmp_path, 0.9)
    result, events = resume(tmp_path)
    assert events[0].kind == "run.resumed"
    assert result.report.stop_reason == "proposals"


def test_a_task_given_as_an_object_has_to_be_given_again(tmp_path: Path) -> None:
    task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))
    budget = fe.Budget(proposals=4)
    fe.optimize(task, budget=budget, clock="virtual", out=tmp_path)
    with pytest.raises(InputError, match="task was given as an object"):
        resume(tmp_path, "budget.proposals=6")
    result, _ = resume(tmp_path, "budget.proposals=6", task=task)
    assert result.report.spent.proposals >= 6


def rules(number: int, *, seed: int = 1) -> fe.Task:
    """A house style of so many rules."""
    return house_style_task(make_rows(rules=number, per_example=2, overlap=0.3, rows=30, seed=seed))


def test_a_run_goes_on_with_the_task_it_began_with_alone(tmp_path: Path) -> None:
    fe.optimize(rules(6), budget=fe.Budget(proposals=4), clock="virtual", out=tmp_path)
    said = (
        r"scores are of task 'house_style' with \d+ validation examples \(digest \w+\), not of task 'house_style' with"
    )
    for other in (rules(6, seed=2), rules(9)):
        with pytest.raises(InputError, match=said):
            resume(tmp_path, "budget.proposals=6", task=other)
    renamed = rules(6)
    renamed.name = "another"
    with pytest.raises(InputError, match="not of task 'another' with"):
        resume(tmp_path, "budget.proposals=6", task=renamed)
    turned = rules(6)
    turned.data = replace(turned.data, val=turned.data.val[::-1])
    result, _ = resume(tmp_path, "budget.proposals=6", task=turned)
    assert result.report.spent.proposals >= 6


def test_a_task_that_was_named_is_not_taken_as_an_object(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match="task was named in its configuration"):
        resume(tmp_path, "budget.proposals=12", task=house_style_task())
    with pytest.raises(InputError, match="scores are of task 'house_style' with"):
        resume(tmp_path, "budget.proposals=12", task=rules(6))


def test_a_script_that_is_started_again_goes_on(tmp_path: Path) -> None:
    def script(proposals: int) -> Result:
        budget = fe.Budget(proposals=proposals)
        return fe.optimize(budget=budget, clock="virtual", out=tmp_path / "run", resume=True)

    first, second = script(4), script(8)
    assert second.report.pool.version >= first.report.pool.version
    assert second.report.spent.proposals >= 8
    assert second.llm.requests > first.llm.requests


def test_a_run_starts_from_anothers_pool_at_a_version(tmp_path: Path) -> None:
    before = run(tmp_path / "a")
    version = before.report.pool.version // 2
    after = run(tmp_path / "b", start={"run": str(tmp_path / "a"), "version": version}, seed=7)
    first = before.report.pool.snapshot(version)
    adopted = {candidate.id for candidate in first.candidates("confirmed")}
    assert adopted
    assert adopted <= {candidate.id for candidate in after.report.pool.snapshot().candidates()}
    assert after.seed_score == before.seed_score
    assert after.report.stop_reason == "proposals"
    assert not list(after.report.pool.snapshot().candidates("speculative"))


def test_a_run_starts_from_a_pool_of_its_own_task_alone(tmp_path: Path) -> None:
    fe.optimize(rules(6), budget=fe.Budget(proposals=2), clock="virtual", out=tmp_path / "a")
    with pytest.raises(InputError, match=r"start\.run: the scores in .*a are of task .*, not of task .*same task"):
        run(tmp_path / "b", start={"run": str(tmp_path / "a")})

    async def go() -> Result:
        return await fe.run(config(start={"run": str(tmp_path / "a")}), task=rules(6))

    assert clock.run(go, clock="virtual").report.stop_reason == "proposals"


def test_a_start_that_is_not_there_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "a")
    with pytest.raises(InputError, match=r"start\.version: is 999, but the pool of .* has only"):
        run(tmp_path / "b", start={"run": str(tmp_path / "a"), "version": 999})
    with pytest.raises(InputError, match="no such run directory"):
        run(tmp_path / "c", start={"run": str(tmp_path / "nothing")})


def test_a_run_that_failed_before_it_began_leaves_the_directory_to_the_next(tmp_path: Path) -> None:
    run(tmp_path / "a")
    with pytest.raises(InputError, match="no such run directory"):
        run(tmp_path / "b", start={"run": str(tmp_path / "nothing")}, seed=7)
    first = run(tmp_path / "b", start={"run": str(tmp_path / "a")}, seed=7)
    assert first.report.stop_reason == "proposals"
    with pytest.raises(InputError, match="holds a run already"):
        run(tmp_path / "b", seed=7)


def test_a_run_that_failed_before_it_began_is_begun_by_resume_with_any_settings(tmp_path: Path) -> None:
    before = run(tmp_path / "a")
    with pytest.raises(InputError, match="no such run directory"):
        run(tmp_path / "b", start={"run": str(tmp_path / "nothing")}, seed=7)
    result, events = resume(tmp_path / "b", f"start.run={tmp_path / 'a'}", "seed=8")
    assert events[0].kind == "run.start"
    assert result.seed_score == before.seed_score
    assert tomllib.loads((tmp_path / "b" / "config.toml").read_text())["seed"] == 8
    log = [json.loads(line)["seq"] for line in (tmp_path / "b" / "events.jsonl").read_text().splitlines()]
    assert log == list(range(len(log)))
    again, _ = resume(tmp_path / "b", "budget.proposals=12")
    assert again.report.spent.proposals > result.report.spent.proposals


def test_a_script_whose_time_is_spent_can_be_started_again(tmp_path: Path) -> None:
    def script() -> Result:
        limit = fe.Budget(minutes=1)
        return fe.optimize(rules(6), budget=limit, clock="virtual", out=tmp_path, resume=True, progress=False)

    first = script()
    assert first.wall_seconds > 60, "open work is finished after the limit"
    again = script()
    assert again.stop_reason == "seconds"
    assert again.proposals >= first.proposals, "what the limit had cut off may be finished"
    once_more = script()
    assert once_more.llm.requests == again.llm.requests, "nothing new is begun"
    assert "stopped by the time limit, reached before the run was resumed" in repr(once_more)
    with pytest.raises(InputError, match=r"has ended \(the time limit\).*--set budget\.minutes=…"):
        resume(tmp_path, task=rules(6))


def test_a_run_killed_before_its_first_event_is_begun_by_resume(tmp_path: Path) -> None:
    before = run(tmp_path)
    with edited(tmp_path) as database:
        database.execute("DELETE FROM events")
        database.execute("DELETE FROM calls")
    with pytest.raises(InputError):  # its result says that there was more
        resume(tmp_path)
    (tmp_path / "result.json").unlink()
    after, _ = resume(tmp_path)
    assert after.to_json() == before.to_json()


def test_an_object_has_to_be_given_again_though_the_run_never_began(tmp_path: Path) -> None:
    task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))

    async def go() -> None:
        await fe.run(config(start={"run": str(tmp_path / "nothing")}), task=task, out=tmp_path / "run")

    with pytest.raises(InputError, match="no such run directory"):
        clock.run(go, clock="virtual")
    with pytest.raises(InputError, match="task was given as an object"):
        resume(tmp_path / "run", "start=null")


def test_what_the_engine_refuses_is_one_line_beside_whatever_follows_the_run(tmp_path: Path) -> None:
    run(tmp_path)
    with edited(tmp_path) as database:
        database.execute("UPDATE events SET data = '{}' WHERE seq = 3")

    async def side_task(engine: fe.Engine) -> None:
        await anyio.sleep_forever()

    async def go() -> Result:
        return await fe.resume(tmp_path, changes=["budget.proposals=12"], side_task=side_task)

    with pytest.raises(InputError, match="the journal can't be followed at event 3"):
        clock.run(go, clock="virtual")


def test_a_run_with_an_event_that_can_not_be_followed_is_named_and_goes_on_after_a_repair(tmp_path: Path) -> None:
    run(tmp_path)
    with edited(tmp_path) as database:
        # As versions that did not look at acts wrote one of a caller who gave no name.
        database.execute(
            "UPDATE events SET kind = 'run.steered', data = ? WHERE seq = (SELECT max(seq) - 20 FROM events)",
            ('{"by": null, "act": {"act": "pause"}, "refused": null}',),
        )
    told = rf"^{re.escape(str(tmp_path))}: the journal can't be followed at event \d+: run\.steered: by: .*"
    advice = rf"keep what came before this event: flowevolve repair {re.escape(str(tmp_path))}$"
    with pytest.raises(InputError, match=told + advice):
        resume(tmp_path, "budget.proposals=12")
    with pytest.raises(InputError, match="can't be followed"):
        export(tmp_path, tmp_path / "export")
    done = repair(tmp_path)
    assert done is not None
    assert "can't be followed (run.steered: by: Input should be an instance of str)" in done.damage
    assert done.gone_events == 21
    result, _ = resume(tmp_path, "budget.proposals=12")
    assert result.proposals == 12


ALGORITHM = """
from tests.support.own_algorithm import Climb

MOST = 3

class Mine(Climb):
    name = "mine"

    async def update(self, item, context):
        await super().update(item, context)  # {comment}
        assert MOST {sign} 0
"""


@pytest.mark.parametrize(
    ("comment", "sign", "told"), [("kept", ">", False), ("another comment", ">", False), ("kept", ">=", True)]
)
def test_an_algorithm_of_ones_own_whose_code_has_changed_is_told_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comment: str, sign: str, *, told: bool
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module, notes = tmp_path / "mine_to_change.py", list[str]()

    def write(comment: str, sign: str) -> None:
        module.write_text(ALGORITHM.format(comment=comment, sign=sign))
        monkeypatch.delitem(sys.modules, module.stem, raising=False)

    async def go_on() -> Result:
        return await fe.resume(tmp_path / "run", changes=["budget.proposals=12"], note=notes.append)

    write("kept", ">")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    run(tmp_path / "run", algorithm={"name": f"{module.stem}:Mine"}, staleness={}, speculation={})
    write(comment, sign)
    assert clock.run(go_on, clock="virtual").proposals == 12
    assert [f"{tmp_path / 'run'}: the code of algorithm has changed since the run began" in each for each in notes] == (
        [True] if told else []
    )


def test_nobody_else_works_on_a_run_from_the_moment_it_is_looked_at(tmp_path: Path) -> None:
    run(tmp_path)
    refused: list[str] = []

    def plan(wanted: Config, given: ProvidedObjects) -> Plan:
        with pytest.raises(InputError, match="is at work in this run directory") as caught:
            RunDirectory(tmp_path, {}, resume=True)
        refused.append(str(caught.value))
        return make_plan(wanted, given)

    async def go() -> Result:
        return await fe.resume(tmp_path, changes=["budget.proposals=12"], plan=plan)

    assert clock.run(go, clock="virtual").report.stop_reason == "proposals"
    assert refused
    RunDirectory(tmp_path, {}, resume=True).close()


def test_in_real_time_the_journal_is_looked_at_beside_what_else_the_loop_has_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    looking, went_on = threading.Event(), threading.Event()

    def look(database: sqlite3.Connection, schema: int, *, fields: bool) -> Findings:
        looking.set()
        assert went_on.wait(2)
        return examine(database, schema, fields=fields)

    async def something_else() -> None:
        await clock.in_thread(looking.wait)
        went_on.set()

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(something_else)
            with pytest.raises(InputError, match="the run has ended"):
                await fe.resume(tmp_path)

    monkeypatch.setattr("flowevolve.journal.reading.examine", look)
    clock.run(go)


def test_a_run_whose_budget_was_too_small_to_begin_with_goes_on_when_it_is_raised(tmp_path: Path) -> None:
    too_small = r"budget.rollouts is too small to evaluate what the run begins with"
    with pytest.raises(InputError, match=too_small):
        run(tmp_path / "run", budget={"rollouts": 2})
    with pytest.raises(InputError, match=too_small):
        resume(tmp_path / "run")
    raised, _ = resume(tmp_path / "run", "budget.rollouts=200")
    fresh = run(tmp_path / "fresh", budget={"rollouts": 200})
    assert raised.best is not None
    assert fresh.best is not None
    assert raised.seed_score == fresh.seed_score
    assert raised.report.spent.rollouts <= 200
    assert raised.best.score == fresh.best.score


def test_a_run_whose_evaluations_were_refused_goes_on_when_the_cause_is_gone(tmp_path: Path) -> None:
    task = RefusedFrom(4)

    async def go() -> Result:
        return await fe.run(config(), task=task, out=tmp_path)

    with pytest.raises(BackendRefusedError, match="the key is spent"):
        clock.run(go, clock="virtual")
    with pytest.raises(BackendRefusedError, match="the key is spent"):
        resume(tmp_path, task=task)
    task.left = None
    result, _ = resume(tmp_path, task=task)
    assert result.report.stop_reason == "proposals"
    assert result.seed_score is not None


def test_a_script_whose_server_was_not_up_yet_is_started_again(tmp_path: Path) -> None:
    def script(llm: fe.LLM | None, kind: clock.Clock) -> Result:
        return fe.optimize(llm=llm, budget=fe.Budget(proposals=3), clock=kind, out=tmp_path, resume=True)

    down = fe.LLM("simulated", base_url="http://127.0.0.1:9/v1", patience_seconds=0.01)
    for _ in range(2):
        with pytest.raises(BackendUnreachableError):
            script(down, "real")
    assert script(None, "virtual").report.stop_reason == "proposals"
