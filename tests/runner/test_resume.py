"""Going on with runs in directories."""

from __future__ import annotations

import json
import os
import pickle
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import anyio
import pytest
from structlog.testing import capture_logs

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.errors import InputError, StorageError
from flowevolve.config.run import Config
from flowevolve.core.policies import Resize, Workload
from flowevolve.journal.examination import Findings, examine
from flowevolve.journal.export import export
from flowevolve.journal.repair import repair
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.runner.plan import Plan, ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers
from tests.support.journals import edited
from tests.support.resuming import config, kill, resume, rules, run


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
    with pytest.raises(InputError, match="another course at event 40"):
        resume(tmp_path)


def test_a_run_that_has_ended_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    before = run(tmp_path)
    with pytest.raises(InputError, match=r"has ended, stopped by the limit on proposals\."):
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
    with pytest.raises(StorageError, match="whose runs can't be resumed; report and export can read it") as caught:
        resume(tmp_path / "run", "budget.proposals=12")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()
    export(tmp_path / "run", tmp_path / "exported")
    assert len((tmp_path / "exported" / "candidates.jsonl").read_text().splitlines()) >= before.report.spent.proposals


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            ["budget.proposals=3"],
            r"has taken \d+ proposals, so with a limit of 3 proposals .*--set budget\.proposals=…",
        ),
        (["budget.proposals=null", "budget.rollouts=20"], r"has taken \d+ rollouts, so with a limit of 20 rollouts"),
        (["budget.proposals=12", "budget.minutes=0.01"], r"has taken [\d.]+ seconds, so with a limit of 0\.6 seconds"),
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
        f"{tmp_path}: nothing new was begun, as what ends the run had been reached before (the target score). To go on "
        "with it, give it a higher target with --set budget.target_score=…"
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
    assert note.endswith("(the limit on proposals). To go on with it, raise that limit with --set budget.proposals=…")


def test_a_run_that_a_stopping_rule_ended_is_told_which_to_loosen(tmp_path: Path) -> None:
    before = run(tmp_path, stopping={"no_improvement": 1}, budget={"proposals": 60})
    assert before.report.stop_reason == "no_improvement"
    with pytest.raises(
        InputError, match=r"has ended, stopped by proposals without improvement\. .* --set stopping\.no_improvement=…"
    ):
        resume(tmp_path)
    after, _ = resume(tmp_path, "stopping.no_improvement=5")
    assert after.report.spent.proposals >= before.report.spent.proposals + 4


def test_a_run_whose_algorithm_had_nothing_left_to_do_is_not_told_to_get_more_time(tmp_path: Path) -> None:
    run(tmp_path, algorithm={"name": "ace", "epochs": 1}, staleness={}, speculation={}, budget={"proposals": 10_000})
    with pytest.raises(
        InputError,
        match=r"has ended, stopped by the end of the algorithm's work\. .*nothing left to do.* --from DIR, or",
    ):
        resume(tmp_path)


class Noting:
    """An allocation policy that notes what stages handed on between its looks."""

    interval_seconds = 5.0
    produced: ClassVar[list[int]] = []

    def decide(self, load: Workload) -> Sequence[Resize]:
        self.produced.append(sum(stage.produced for stage in load.stages))
        return ()


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
    with pytest.raises(InputError, match=r"algorithm\.minibatch is now 5, but was not given; seed is now 4, but was 0"):
        resume(tmp_path, "seed=4", "algorithm.minibatch=5", "budget.proposals=12")


def edit_config(directory: Path, old: str, new: str) -> None:
    file = directory / "config.toml"
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize("repaired", [False, True])
def test_settings_that_were_edited_in_the_directory_are_refused_by_name_too(tmp_path: Path, repaired: bool) -> None:
    run(tmp_path)
    kill(tmp_path, 0.5)
    if repaired:
        with edited(tmp_path) as database:
            database.execute("UPDATE events SET data = '{}' WHERE seq = 40")
        repair(tmp_path)
    edit_config(tmp_path, "\nseed = 0", "\nseed = 4")
    with pytest.raises(InputError, match="settings that have changed: seed is now 4, but was 0"):
        resume(tmp_path)


def test_a_budget_that_was_raised_in_the_directory_is_used(tmp_path: Path) -> None:
    before = run(tmp_path)
    edit_config(tmp_path, "proposals = 8", "proposals = 12")
    after, _ = resume(tmp_path)
    assert before.report.spent.proposals < 11 <= after.report.spent.proposals <= 12
    with pytest.raises(InputError, match=r"has ended, stopped by the limit on proposals\."):
        resume(tmp_path)


def test_a_run_whose_configuration_is_lost_goes_on_with_the_one_in_its_journal(tmp_path: Path) -> None:
    before = run(tmp_path)
    kill(tmp_path, 0.5)
    config_file = tmp_path / "config.toml"
    text = config_file.read_text()
    for damaged, said in (("seed = ", "can't be read: .*"), ("\n", "is empty")):
        config_file.write_text(damaged)
        with pytest.raises(InputError, match=rf"config\.toml {said}\. If you delete it, .* from the journal"):
            resume(tmp_path)
    config_file.unlink()
    after, _ = resume(tmp_path)
    assert after.to_json() == before.to_json()
    assert config_file.read_text() == text


def test_a_run_goes_on_when_its_rows_have_moved_but_not_with_other_rows(tmp_path: Path) -> None:
    rows = [json.dumps({"problem": f"{number} + {number}", "answer": str(2 * number)}) for number in range(40)]
    rows_file, moved = tmp_path / "rows.jsonl", tmp_path / "moved.jsonl"
    rows_file.write_text("\n".join(rows))
    run(tmp_path / "run", task={"name": "math", "data": {"path": str(rows_file)}})
    rows_file.rename(moved)
    changes = ("budget.proposals=12", f"task.data.path={moved}")
    moved.write_text("\n".join(rows[1:]))
    with pytest.raises(InputError, match="not of task 'math' with"):
        resume(tmp_path / "run", *changes)
    moved.write_text("\n".join(rows))
    after, _ = resume(tmp_path / "run", *changes)
    assert after.report.spent.proposals > 8


def test_another_algorithm_is_refused_without_all_that_it_has_other_settings_of(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match=r'have changed: algorithm\.name is now "ace", but was "gepa"\. Leave'):
        resume(tmp_path, "algorithm.name=ace", "budget.proposals=12")


def test_of_many_other_settings_the_first_are_named(tmp_path: Path) -> None:
    run(tmp_path)
    others = [f"llm.roles.r{n}.model=m" for n in range(9)]
    with pytest.raises(InputError, match=r"llm\.roles\.r2\.model is now .*; and \d+ more\. Leave"):
        resume(tmp_path, *others, "budget.proposals=12")


@pytest.mark.parametrize("setting", ["llm.model", "llm.roles.propose.model"])
def test_other_models_are_refused_though_the_rest_of_the_section_may_change(setting: str, tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match=f'settings that have changed: {setting} is now "another", but was not given'):
        resume(tmp_path, f"{setting}=another", "llm.concurrency=4", "budget.proposals=12")


def test_other_models_that_share_a_role_are_refused_too(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match=r"settings that have changed: llm\.roles\.propose\.models is now "):
        resume(tmp_path, 'llm.roles.propose.models=[{model="a"},{model="b"}]', "budget.proposals=12")


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


def test_a_script_that_is_started_again_goes_on(tmp_path: Path) -> None:
    def script(proposals: int) -> Result:
        budget = fe.Budget(proposals=proposals)
        return fe.optimize(budget=budget, clock="virtual", out=tmp_path / "run", resume=True)

    first, second = script(4), script(8)
    assert second.report.pool.version >= first.report.pool.version
    assert second.report.spent.proposals >= 8
    assert second.llm.requests > first.llm.requests


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
    with pytest.raises(InputError, match=r"has ended, stopped by the time limit\. .*--set budget\.minutes=…"):
        resume(tmp_path, task=rules(6))


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
    told = rf"^{re.escape(str(tmp_path))}: the journal can't be followed at event \d+: run\.steered: by has.*"
    advice = rf"keep what came before this event: flowevolve repair {re.escape(str(tmp_path))}$"
    with pytest.raises(InputError, match=told + advice):
        resume(tmp_path, "budget.proposals=12")
    with pytest.raises(InputError, match="can't be followed"):
        export(tmp_path, tmp_path / "export")
    done = repair(tmp_path)
    assert done is not None
    assert "can't be followed (run.steered: by has to be a text)" in done.damage
    assert done.gone_events == 21
    result, _ = resume(tmp_path, "budget.proposals=12")
    assert result.proposals == 12


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
