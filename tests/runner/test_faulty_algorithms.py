"""A mistake in somebody's own algorithm ends the run with a line that says where it is, and is recorded."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.cli.app import app, main
from flowevolve.config.run import Config, parse_config
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout
from flowevolve.journal.run_directory import read_result
from flowevolve.runner.overview import read_overview
from flowevolve.runner.run import open_run, run
from tests.support.own_algorithm import Child, Chosen, Climb, Settings

MENDED: list[bool] = []
"""Filled as soon as the mistakes are mended."""


class Failing(Climb):
    """Fails in the stage propose, once there are two candidates."""

    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        if not MENDED and context.pool.version == 2:
            raise KeyError("late bug")
        async for emission in super().propose(item, context):
            yield emission


class NotGenerator(Climb):
    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> Any:  # type: ignore[override]
        return None


class NotAsync(Climb):
    def propose(self, item: fe.Item[object], context: fe.StageContext) -> Any:
        return []


class NoEmit(Climb):
    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[Any]:
        yield {"query": "x"}


class WrongBest(Climb):
    def best(self) -> Any:
        return None if self.archive.best is None else self.archive.best.mean_score


class WrongFrontier(Climb):
    def frontier(self) -> Any:
        return [each.id for each in super().frontier()]


class FailingFrontier(Climb):
    def frontier(self) -> Any:
        raise LookupError("no front")


class FailingGap(Climb):
    def gap(self, item: fe.Item[object], pool: object) -> int:
        raise LookupError("no gap")


class NoGap(Climb):
    def gap(self, item: fe.Item[object], pool: object) -> Any:
        return None


class NumberInPlaceOfCost(Climb):
    def estimate(self, trigger: str | None = None) -> Any:
        return 1


class FromTheFuture(Climb):
    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        async for emission in super().propose(item, context):
            yield fe.Emit(emission.payload, version=context.pool.version + 1)


class ExhaustedTooLate(Climb):
    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        if item.flow:
            raise fe.Exhausted
        yield fe.Emit(None)


class Cancelled(Climb):
    """Waits for something that others cancel."""

    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        answer = asyncio.get_running_loop().create_future()
        answer.cancel()
        yield fe.Emit(await answer)


class CancelledSideBySide(Cancelled):
    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        async def job() -> None:
            async for _ in Cancelled.propose(self, item, context):
                pass

        async for _ in context.side_by_side([job, job]):
            yield fe.Emit(None)


def config(kind: type[Climb], **sections: object) -> Config:
    settings = {
        "clock": "virtual",
        "algorithm": {"name": f"{__name__}:{kind.__name__}", "max_in_flight": 2},
        "budget": {"proposals": 4},
    }
    return parse_config({**settings, **sections}, "test")


@pytest.fixture(autouse=True)
def unmended() -> None:
    MENDED.clear()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            Failing,
            r"stage 'propose' of algorithm 'climb', item \d\.0: KeyError: 'late bug' \(test_faulty.*, line \d+\)",
        ),
        (NotGenerator, r"stage 'propose' of .*: it is an async function without a yield, but has to be an async gen"),
        (NotAsync, "stage 'propose' of .*: it returned a list; make it an async generator: async def, with a yield"),
        (NoEmit, r"stage 'propose' of .*: it yielded a dict; yield flowevolve\.Emit\(payload\)"),
        (WrongBest, r"stage 'update' of .*: best\(\) returned a float; return the best candidate itself, or None"),
        (FailingGap, r"algorithm 'climb': LookupError: no gap \(test_faulty_algorithms\.py, line \d+\)"),
        (NoGap, r"algorithm 'climb': gap\(\) returned None; return a whole number, 0 or more"),
        (NumberInPlaceOfCost, r"algorithm 'climb': estimate\(\) returned 1; return a flowevolve\.Cost, such as Cost\("),
        (FromTheFuture, r"stage 'propose' of .*: Emit: version is 2, but the pool is at version 1; give the version"),
        (
            ExhaustedTooLate,
            "stage 'propose' of .*: Exhausted was raised: only the entry stage may raise it; to give up one item, raise Discard",
        ),
        (
            Cancelled,
            r"stage 'propose' of .*: RuntimeError: it raised CancelledError, but nobody has cancelled it \(test_faulty_algorithms\.py, line \d+\)",
        ),
        (
            CancelledSideBySide,
            r"stage 'propose' of .*: RuntimeError: it raised CancelledError, but nobody has cancelled it \(test_faulty_algorithms\.py, line \d+\)",
        ),
    ],
)
def test_it_is_told_in_one_line_and_the_run_has_failed(kind: type[Climb], said: str, tmp_path: Path) -> None:
    async def go() -> None:
        await run(config(kind), out=tmp_path)

    with pytest.raises(fe.EngineError, match=f"^{said}") as caught:
        clock.run(go, clock="virtual")
    assert "\n" not in str(caught.value)
    overview = read_overview(tmp_path)
    assert (overview.state, overview.error) == ("failed", str(caught.value))
    assert read_result(tmp_path)["stop_reason"] == "failed"


class FailingEvents(Climb):
    """Takes for granted that every event is about an item."""

    def apply_event(self, event: fe.Event) -> None:
        if not MENDED:
            str(event.body.item)  # type: ignore[attr-defined]  # the mistake


class FailingLater(FailingEvents):
    """Does so for some events only, which the first ones and those of a failure are not among."""

    def apply_event(self, event: fe.Event) -> None:
        if event.kind == "flow.open":
            super().apply_event(event)


@pytest.mark.parametrize("kind", [FailingEvents, FailingLater])
def test_an_event_that_it_can_not_take_is_told_in_one_line_and_so_is_that_of_a_resumed_run(
    kind: type[Climb], tmp_path: Path
) -> None:
    async def go() -> None:
        await run(config(kind), out=tmp_path)

    async def go_on() -> fe.Result:
        return await fe.resume(tmp_path)

    said = r"^algorithm 'climb': AttributeError: '(RunStarted|FlowOpened)' object has no attribute 'item' \(test_faulty_algorithms\.py, line \d+\)$"
    for attempt in (go, go_on):
        with pytest.raises(fe.EngineError, match=said) as caught:
            clock.run(attempt, clock="virtual")
        assert "\n" not in str(caught.value)
        assert read_overview(tmp_path).state == "failed"
    MENDED.append(True)
    assert clock.run(go_on, clock="virtual").proposals == 4


class FailingFreshScore(Climb):
    def fresh_score(self) -> Any:
        raise LookupError("no score")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (WrongFrontier, r"frontier\(\) has a str in it; return the candidates themselves"),
        (FailingFrontier, r"LookupError: no front \(test_faulty_algorithms\.py, line \d+\)"),
        (FailingFreshScore, r"LookupError: no score \(test_faulty_algorithms\.py, line \d+\)"),
    ],
)
def test_what_can_not_be_shown_at_the_end_is_told_in_one_line_and_the_result_comes_when_it_is_mended(
    kind: type[Climb], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        await run(config(kind), out=tmp_path)

    async def go_on() -> fe.Result:
        return await fe.resume(tmp_path)

    with pytest.raises(fe.EngineError, match=f"^algorithm 'climb': {said}$"):
        clock.run(go, clock="virtual")
    for name in ("frontier", "fresh_score"):
        monkeypatch.setattr(kind, name, getattr(Climb, name))
    result = clock.run(go_on, clock="virtual")
    assert result.best is not None
    assert [each.id for each in result.frontier] == [result.best.id]


class FrontierOfNothing(Climb):
    """Takes for granted that there is a best candidate."""

    def frontier(self) -> Any:
        return [self.best()]


class Failed:
    """A task that fails on every example."""

    name = "failed"
    data = Dataset([Example(f"train{row}", {}) for row in range(10)], [Example(f"val{row}", {}) for row in range(10)])

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "seed"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        raise ValueError("no such file")


def test_a_frontier_that_can_not_be_shown_does_not_hide_why_the_run_has_failed(tmp_path: Path) -> None:
    async def go() -> None:
        await run(config(FrontierOfNothing), task=Failed(), out=tmp_path)

    with pytest.raises(fe.TaskFailedError, match="no such file") as caught, capture_logs() as logs:
        clock.run(go, clock="virtual")
    assert (read_overview(tmp_path).state, read_overview(tmp_path).error) == ("failed", str(caught.value))
    result = fe.result_of(caught.value)
    assert result is not None
    assert (result.best, result.frontier) == (None, [])
    (said,) = [record for record in logs if record["event"] == "algorithm.no_best"]
    assert "frontier() has a NoneType in it" in said["why"]


def test_the_run_goes_on_when_it_is_mended(tmp_path: Path) -> None:
    async def go() -> None:
        await run(config(Failing), out=tmp_path)

    async def go_on() -> fe.Result:
        return await fe.resume(tmp_path)

    with pytest.raises(fe.EngineError):
        clock.run(go, clock="virtual")
    before = read_overview(tmp_path).proposals
    assert before < 4
    MENDED.append(True)
    assert clock.run(go_on, clock="virtual").proposals == 4


def test_a_run_in_a_loop_of_ones_own_has_its_result_too(tmp_path: Path) -> None:
    async def go() -> None:
        async with open_run(config(Failing), out=tmp_path) as engine:
            async for _ in engine.events():
                pass

    with pytest.raises(fe.EngineError, match="late bug"):
        clock.run(go, clock="virtual")
    assert read_overview(tmp_path).state == "failed"


def test_the_command_tells_it_as_json_and_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        f'clock = "virtual"\n[algorithm]\nname = "{__name__}:Failing"\nmax_in_flight = 2\n[budget]\nproposals = 4\n'
    )
    with pytest.raises(fe.EngineError):
        app(["run", str(file), "--out", str(tmp_path / "run"), "--json"], standalone_mode=False)
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["state"], told["exit_code"]) == ("failed", 1)
    assert "KeyError: 'late bug'" in told["error"]
    assert f"once that is mended, to go on: flowevolve resume {tmp_path / 'run'}" in printed.err


def test_a_script_shows_where_in_the_users_code_it_is_and_nothing_of_ours() -> None:
    with pytest.raises(fe.EngineError, match="late bug") as caught:
        fe.optimize(
            "house_style",
            algorithm=f"{__name__}:Failing",
            llm="simulated",
            clock="virtual",
            budget=fe.Budget(proposals=4),
            progress=False,
        )
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError)
    assert cause.__traceback__ is not None
    assert Path(cause.__traceback__.tb_frame.f_code.co_filename).name == "test_faulty_algorithms.py"
    assert not re.search("Group", repr(caught.value.__context__))


def test_a_bug_of_ours_keeps_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.toml"
    file.write_text('clock = "virtual"\n[budget]\nproposals = 4\n')
    monkeypatch.setattr("flowevolve.algorithms.gepa.algorithm.Proposed", divmod)  # which can't be made like this
    monkeypatch.setattr("sys.argv", ["flowevolve", "run", str(file), "--out", str(tmp_path / "run")])
    with pytest.raises(fe.EngineError, match="stage 'init' of algorithm 'gepa', item 0: TypeError: divmod"):
        main()


def test_a_mistake_of_the_users_is_a_line_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(f'clock = "virtual"\n[algorithm]\nname = "{__name__}:NoEmit"\n[budget]\nproposals = 4\n')
    monkeypatch.setattr("sys.argv", ["flowevolve", "run", str(file), "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "error: stage 'propose' of algorithm 'climb', item 1.0: it yielded a dict" in said


class Uncharged(Climb):
    """Forgets to charge the budget for what it proposes."""

    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        parent = item.expect(Chosen).parent
        texts = {name: f"{text} {item.id}" for name, text in parent.artifact.items()}
        yield fe.Emit(Child(context.propose(fe.Artifact(texts), parents=[parent], operator="add")))


def test_a_limit_on_proposals_that_nothing_is_charged_to_ends_the_run_and_says_what_to_write() -> None:
    async def go() -> None:
        await run(config(Uncharged))

    said = r"the first 10 candidates .* nothing, .*: charge each .*, with context\.spend\(flowevolve\.Cost\(proposals=1\)\)"
    with pytest.raises(fe.EngineError, match=said):
        clock.run(go, clock="virtual")


def test_where_proposals_are_not_limited_nothing_need_be_charged() -> None:
    async def go() -> fe.Result:
        return await run(config(Uncharged, budget={"rollouts": 2400}))

    result = clock.run(go, clock="virtual")
    assert (result.stop_reason, result.proposals) == ("rollouts", 0)
    assert result.accepted > 10


class Forgetful(Climb):
    """Does not name its archive, so that it is told of no commit."""

    def __init__(self, task: fe.Task, config: Settings, tuning: fe.Tuning) -> None:
        super().__init__(task, config, tuning)
        self.archives = ()


def test_an_archive_that_nobody_is_told_of_is_asked_for() -> None:
    async def go() -> fe.Result:
        return await run(config(Forgetful))

    with capture_logs() as logs:
        result = clock.run(go, clock="virtual")
    assert result.best is None
    (said,) = [record for record in logs if record["event"] == "algorithm.no_best"]
    assert "self.archives" in said["why"]


class Unscored(Climb):
    """Forgets the scores of what it commits, apart from the seed."""

    async def update(self, item: fe.Item[object], context: fe.UpdateContext) -> None:
        candidate = item.expect(Child).candidate
        context.commit([fe.Add(candidate.scored({}) if candidate.parents else candidate)])


def test_candidates_that_were_confirmed_without_scores_are_told_once() -> None:
    for kind, told in ((Unscored, [4]), (Climb, [])):

        async def go(kind: type[Climb] = kind) -> None:
            named = f"{__name__}:{kind.__name__}"
            await run(config(kind, algorithm={"name": named, "max_in_flight": 2}))

        with capture_logs() as logs:
            clock.run(go, clock="virtual")
        assert [record["candidates"] for record in logs if record["event"] == "algorithm.unscored"] == told
