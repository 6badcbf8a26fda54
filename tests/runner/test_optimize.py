"""The Python front door, on the simulated backend and the virtual clock."""

from __future__ import annotations

import inspect
import io
import json
import re
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from rich.console import Console

import flowevolve as fe
from flowevolve import stages
from flowevolve.algorithms.gepa import GEPA
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.run import RunRow
from flowevolve.policies.staleness import Full
from flowevolve.programs import ProgramTask
from flowevolve.runner.arguments import Arguments
from flowevolve.runner.overview import read_overview
from flowevolve.sandbox import SandboxSettings
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from flowevolve.tasks.house_style import house_style_task
from flowevolve.telemetry.summary import summarize
from tests.support.depth import LONG
from tests.support.memory_cluster import MemoryCluster
from tests.support.number_programs import NumberTask
from tests.support.own_algorithm import Climb
from tests.support.problems import Nearest


def test_optimize_improves_on_the_seed_and_says_it_was_simulated(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = fe.optimize(budget=fe.Budget(minutes=10 if LONG else 4), clock="virtual", staleness="reflective", out=out)
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score
    assert "system_prompt" in result.best.components
    written = json.loads((out / "result.json").read_text())
    assert written["simulated"] is True
    assert written["schema"] == 1
    assert written["best"]["score"] == result.best.score
    assert written["llm"]["requests"] == result.llm.requests
    assert (out / "journal.sqlite").exists()
    assert (out / "config.toml").exists()


def test_objects_stand_in_for_names() -> None:
    task = house_style_task()
    result = fe.optimize(task, staleness=Full(), budget=fe.Budget(proposals=5), clock="virtual")
    assert result.report.spent.proposals >= 5
    assert result.report.staleness.discarded == 0


@pytest.mark.parametrize(("algorithm", "name"), [(Climb, "tests.support.own_algorithm:Climb"), (GEPA, "gepa")])
def test_an_algorithm_is_given_as_a_class_and_found_again_by_its_name(
    algorithm: type[fe.Algorithm], name: str, tmp_path: Path
) -> None:
    def evolve(proposals: int) -> fe.Result:
        budget = fe.Budget(proposals=proposals)
        return fe.optimize(algorithm=algorithm, budget=budget, clock="virtual", out=tmp_path / "run", resume=True)

    assert evolve(2).algorithm == algorithm.name
    assert tomllib.loads((tmp_path / "run" / "config.toml").read_text())["algorithm"]["name"] == name
    assert evolve(4).proposals == 4


def test_a_simulated_model_writes_programs_for_a_task_of_programs_that_is_given_as_an_object(tmp_path: Path) -> None:
    result = fe.optimize(
        NumberTask(),
        "one_plus_lambda",
        llm="simulated",
        clock="virtual",
        budget=fe.Budget(proposals=4),
        out=tmp_path / "run",
        progress=False,
    )
    assert result.proposals >= 4
    assert tomllib.loads((tmp_path / "run" / "config.toml").read_text())["sim"]["world"] == "code"


@pytest.mark.parametrize("progress", [True, False])
def test_that_a_machine_is_awaited_is_part_of_how_it_goes(
    progress: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox = SandboxSettings(preload=(), concurrency=1)
    cluster = MemoryCluster(partial(LocalEvaluators, sandbox), size=1)
    cluster.open_seconds = 30.0
    monkeypatch.setattr(
        "flowevolve.programs.task.open_evaluators", lambda settings, tell: LeasedEvaluators(cluster, tell=tell)
    )
    task, budget = ProgramTask(Nearest(), sandbox), fe.Budget(evaluations=2)
    fe.optimize(task, "best_of_n", clock="virtual", budget=budget, progress=progress)
    assert ("1 node has not said yet" in capsys.readouterr().err) is progress


class Broken:
    """A task whose own code always fails."""

    description: ClassVar[str] = "broken"
    name = "broken"
    data = Dataset([Example("a", {}), Example("b", {})], [Example(str(n), {}) for n in range(20)])

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "x"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        raise KeyError("nothing here")


def test_a_task_that_always_fails_ends_the_run_and_says_where() -> None:
    with pytest.raises(fe.TaskFailedError, match=r"failed on each of the first 10 examples.*test_optimize\.py:\d+"):
        fe.optimize(Broken(), budget=fe.Budget(minutes=1), clock="virtual")


class Flaky(Broken):
    """Fails on some examples: those score 0 and the run goes on."""

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        if example.id in ("a", "3"):
            raise ValueError("cannot")
        output = await llm([Message("user", "hello")])
        calls = (Call("prompt", {"request": "hello"}, output),)
        return Rollout(example.id, output, Score(0.5, "Not met: Do not use any commas.", passed=False), calls)


def test_a_task_that_fails_sometimes_costs_score_only() -> None:
    result = fe.optimize(Flaky(), budget=fe.Budget(proposals=3), clock="virtual")
    assert result.seed_score == pytest.approx(0.5 * 19 / 20)
    assert result.report.error is None


class OfNumpy(Broken):
    """Scores by numpy's functions, which give numpy's own numbers."""

    def __init__(self, number: type[np.number[Any]]) -> None:
        self.number: Callable[[float], Any] = number

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        output = await llm([Message("system", artifact["prompt"]), Message("user", "hello")])
        value = self.number(len(output) % 10 / 10)
        score = Score(value, "Be brief.", passed=value >= 1, metrics={"length": self.number(len(output))})
        return Rollout(example.id, output, score, (Call("prompt", {"request": "hello"}, output),))


@pytest.mark.parametrize("number", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("algorithm", ["gepa", "ace", "combee"])
def test_scores_may_be_numbers_of_numpy(algorithm: str, number: type[np.number[Any]], tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = fe.optimize(OfNumpy(number), algorithm=algorithm, budget=fe.Budget(rollouts=80), clock="virtual", out=out)
    assert result.best is not None
    assert json.loads((out / "result.json").read_text())["best"]["score"] == result.best.score


class WithoutModel(Broken):
    """Its code asks no model that a run knows of."""

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        return Rollout(example.id, "an answer", Score(0.5, "It could be better.", passed=False), ())


def test_a_run_in_which_no_model_was_called_is_not_said_to_be_simulated(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = fe.optimize(WithoutModel(), budget=fe.Budget(rollouts=20), clock="virtual", progress=False, out=out)
    assert (result.llm.requests, result.simulated) == (0, False)
    assert "simulated" not in repr(result)
    shown = io.StringIO()
    Console(file=shown, width=200).print(summarize(result.to_json()))
    assert "simulated" not in shown.getvalue()
    assert read_overview(out).to_json()["simulated"] is False
    with RunSource(out, "run") as source:
        (about,) = [row for row in source.changes() if isinstance(row, RunRow)]
    assert about.simulated is False


def test_public_names_are_there() -> None:
    expected: Sequence[str] = (
        "Algorithm",
        "Artifact",
        "Budget",
        "Engine",
        "LLM",
        "Stage",
        "load_config",
        "optimize",
        "run",
    )
    assert all(hasattr(fe, name) for name in expected)


@pytest.mark.parametrize("function", [fe.optimize, fe.optimize_async])
def test_help_and_completion_show_every_argument(function: Callable[..., object]) -> None:
    shown = inspect.signature(function).parameters
    named = [name for name, each in shown.items() if each.kind is each.KEYWORD_ONLY]
    assert named == list(Arguments.__annotations__)
    assert [name for name in named if shown[name].default is inspect.Parameter.empty] == ["budget"]
    assert shown["budget"].annotation == "Budget"


def test_help_says_what_each_argument_and_each_setting_of_a_model_is() -> None:
    arguments = (inspect.getdoc(fe.optimize) or "").partition("What each argument means:")[2].partition("Raises:")[0]
    described = re.findall(r"^- ``(\w+)``: ", arguments, re.MULTILINE)
    assert described == list(inspect.signature(fe.optimize).parameters)
    said = inspect.getdoc(fe.LLM) or ""
    assert {name for name in fe.LLM.model_fields if f"``{name}``" not in said} <= {"model"}


def test_arguments_that_are_left_out_are_as_their_defaults_say() -> None:
    defaults = {
        name: each.default
        for name, each in inspect.signature(fe.optimize).parameters.items()
        if name in ("preset", "settings", "seed", "clock", "resume", "progress", "watch", "mode", "staleness", "out")
    }
    budget = fe.Budget(proposals=2)
    with_defaults = fe.optimize(budget=budget, **{**defaults, "clock": "virtual"})
    assert with_defaults.to_json() == fe.optimize(budget=budget, clock="virtual").to_json()


def test_the_reference_of_plugins_names_what_can_be_imported() -> None:
    """Its table of `flowevolve.stages` is complete."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "plugins.md").read_text("utf-8")
    public = {
        name for name, value in vars(stages).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert {name for name in public if f"`{name}`" not in page} == set()


def test_a_setting_of_the_model_that_is_wrong_is_named() -> None:
    with pytest.raises(fe.InputError, match=r"LLM: modle: unknown key; did you mean 'model'"):
        fe.LLM("m", modle="n")
    with pytest.raises(fe.InputError, match=r"LLM: api_key: keys don't belong in a configuration") as caught:
        fe.LLM("m", api_key="sk-secret")
    assert "secret" not in str(caught.value)
