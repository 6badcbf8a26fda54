"""What is wrong in a call of the Python API is told in a line: where it is, what it is and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import flowevolve as fe
from flowevolve.core.task import Call, ChatModel, Example, Rollout, Score

# Calls that types forbid
CONFIG, BUDGET, ARTIFACT, LLM = (cast("Any", each) for each in (fe.Config, fe.Budget, fe.Artifact, fe.LLM))
DATASET, EXAMPLE = cast("Any", fe.Dataset), cast("Any", fe.Example)
OPTIMIZE = cast("Any", fe.optimize)
ROW = fe.Example("a", {})
MINUTE = fe.Budget(minutes=1)


class Steady:
    """A task that works; those below are wrong in one part."""

    name = "steady"
    data = fe.Dataset([Example("a", {}), Example("b", {})], [Example(str(n), {}) for n in range(4)])
    score = 0.5
    rollouts = 0

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "x"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        self.rollouts += 1
        output = await llm([fe.Message("user", "hello")])
        score = Score(self.score, "Not met: Do not use any commas.", passed=False)
        return Rollout(example.id, output, score, (Call("prompt", {"request": "hello"}, output),))


def wrong(**parts: object) -> Steady:
    """The task with parts that are wrong."""
    task = Steady()
    for name, part in parts.items():
        setattr(task, name, part)
    return task


def optimized(task: object, **arguments: object) -> fe.Result:
    made: fe.Result = OPTIMIZE(task, budget=fe.Budget(proposals=2), clock="virtual", progress=False, **arguments)
    return made


def ran(config: object) -> fe.Result:
    async def go() -> fe.Result:
        return await fe.run(cast("fe.Config", config))

    return fe.clock.run(go, clock="virtual")


class Frame:
    """Like a data frame: it has columns and no truth value."""

    def __bool__(self) -> bool:
        raise ValueError("The truth value of a DataFrame is ambiguous.")


def sync_rollout(artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
    raise AssertionError


async def async_seed() -> fe.Artifact:
    raise AssertionError


MISUSES: dict[str, tuple[Callable[[], object], str]] = {
    "budget, a limit misspelt": (lambda: BUDGET(minuts=3), "Budget: minuts: unknown key; did you mean 'minutes'?"),
    "budget, no name": (
        lambda: BUDGET(10),
        "Budget takes settings by name, such as Budget(hours=…), but was given 10",
    ),
    "budget, negative": (lambda: BUDGET(minutes=-1), "Budget: minutes is -1, but has to be above 0"),
    "budget, a text": (lambda: BUDGET(proposals="x"), "Budget: proposals is 'x', but has to be a whole number"),
    "budget, two faults": (
        lambda: BUDGET(minutes=-1, tokens=0),
        "Budget: minutes is -1, but has to be above 0; 1 more value is wrong",
    ),
    "config, a section misspelt": (
        lambda: CONFIG(budget=MINUTE, algorthm={}),
        "Config: algorthm: unknown key; did you mean 'algorithm'?",
    ),
    "config, a key misspelt": (
        lambda: CONFIG(budget=MINUTE, stopping={"no_improvment": 3}),
        "Config: stopping.no_improvment: unknown key; did you mean 'no_improvement'?",
    ),
    "config, a limit misspelt": (
        lambda: CONFIG(budget={"minuts": 3}),
        "Config: budget.minuts: unknown key; did you mean 'minutes'?",
    ),
    "config, no budget": (CONFIG, "Config: budget is missing"),
    "config, a budget without limits": (lambda: CONFIG(budget=fe.Budget()), "Config: budget: give at least one limit"),
    "config, a budget that is a number": (
        lambda: CONFIG(budget=10),
        "Config: budget is 10, but has to be a table of settings",
    ),
    "config, no mode": (
        lambda: CONFIG(budget=MINUTE, algorithm={"mode": "fast"}),
        "Config: algorithm.mode is 'fast', but has to be 'stream' or 'sync'",
    ),
    "config, a key of an API": (
        lambda: CONFIG(budget=MINUTE, llm={"api_key": "sk-1"}),
        "Config: llm.api_key: keys don't belong in a configuration",
    ),
    "config, the virtual clock with a real server": (
        lambda: CONFIG(budget=MINUTE, clock="virtual", llm=fe.LLM("m", base_url="http://localhost:1/v1")),
        "Config: clock 'virtual' needs llm.backend 'sim'",
    ),
    "model, a setting misspelt": (lambda: LLM("m", bse_url="x"), "LLM: bse_url: unknown key; did you mean 'base_url'?"),
    "model, a server with OpenAI's API": (
        lambda: LLM("m", backend="ollama"),
        "LLM: backend: a server of 'ollama' has OpenAI's API; set backend to 'openai', and base_url to the server's address",
    ),
    "stages, one misspelt": (
        lambda: ran(CONFIG(budget=MINUTE, clock="virtual", stages={"evalute": {"workers": 2}})),
        "stages.evalute: there is no such stage that can be given workers; did you mean 'evaluate'?",
    ),
    "model, no text": (lambda: LLM(7), "LLM: model is 7, but has to be a text"),
    "artifact, a text": (
        lambda: ARTIFACT("text"),
        'an artifact is made of texts by name, not of a str: Artifact({"prompt": "…"})',
    ),
    "artifact, nothing": (lambda: ARTIFACT({}), "an artifact needs at least one component"),
    "artifact, no text": (
        lambda: ARTIFACT({"prompt": 7}),
        "artifact component 'prompt': names and texts must be strings, but the name is a str and the text a int",
    ),
    "artifact, a data frame": (lambda: ARTIFACT(Frame()), "an artifact is made of texts by name, not of a Frame"),
    "artifact, another component": (
        lambda: ARTIFACT({"prompt": "x"}).replace(promt="y"),
        "this artifact has no components ['promt']; it has ['prompt']",
    ),
    "example, a whole number for an id": (
        lambda: EXAMPLE(3, {}),
        "an example's id is 3 (int); ids are texts, such as '3'",
    ),
    "example, a text for data": (lambda: EXAMPLE("3", "text"), "example '3': its data is a str; give a mapping"),
    "dataset, dicts": (lambda: DATASET([{"q": "?"}], [ROW]), "Dataset: train[0] is a dict; give a list of Example("),
    "dataset, tuples": (
        lambda: DATASET([ROW], [ROW, ("q", "a")]),
        "Dataset: val[1] is a tuple; give a list of Example(",
    ),
    "dataset, a data frame": (lambda: DATASET(Frame(), [ROW]), "Dataset: train is a Frame; give a list of Example("),
    "dataset, a path": (lambda: DATASET("rows.jsonl", [ROW]), "Dataset: train is a str; give a list of Example("),
    "dataset, a generator": (lambda: DATASET([ROW], iter([ROW])), "Dataset: val is a list_iterator; give a list"),
    "task, a class": (lambda: optimized(Steady), "optimize: task is the class Steady; give an instance: Steady()"),
    "task, rows": (lambda: optimized([{"q": "?"}]), "optimize: task is a list and has no 'name'"),
    "task, a sync rollout": (
        lambda: optimized(wrong(rollout=sync_rollout)),
        "task 'steady': rollout() is not async; write it as: async def rollout(self, artifact, example, llm)",
    ),
    "task, an async seed": (
        lambda: optimized(wrong(seed=async_seed)),
        "task 'steady': seed() is async; write it as: def seed(self)",
    ),
    "task, a text for a seed": (
        lambda: optimized(wrong(seed=lambda: "x")),
        "task 'steady': seed() returned a str, but has to return an Artifact; write it as: return Artifact(",
    ),
    "task, no dataset": (
        lambda: optimized(wrong(data=[ROW])),
        "task 'steady': its data is a list; give a Dataset(train=…, val=…)",
    ),
    "task, nothing to validate on": (
        lambda: optimized(wrong(data=fe.Dataset([ROW], []))),
        "task 'steady' has no val examples; give at least one",
    ),
    "task, ids twice": (
        lambda: optimized(wrong(data=fe.Dataset([ROW, ROW], [ROW]))),
        "task 'steady': two train examples have the id 'a'; give each its own",
    ),
    "task, no name": (lambda: optimized(wrong(name=7)), "task 7: its name is of type int; names are texts"),
    "staleness misspelt": (
        lambda: optimized(Steady(), staleness="reflektive"),
        "staleness: unknown staleness policy 'reflektive'; did you mean 'reflective'?",
    ),
    "staleness, a number": (lambda: optimized(Steady(), staleness=3), "optimize: staleness is 3; give the name of a"),
    "settings, a list": (lambda: optimized(Steady(), settings=[1]), "optimize: settings is [1]; give the algorithm's"),
    "resume without a directory": (
        lambda: optimized(Steady(), resume=True),
        "optimize: resume goes on with the run in",
    ),
    "out, nothing": (lambda: optimized(Steady(), out=""), "optimize: out is ''; give the path of a directory"),
    "model, the class": (
        lambda: optimized(Steady(), llm=fe.LLM),
        "optimize: llm is <class 'flowevolve.runner.arguments",
    ),
    "plan, a path": (lambda: fe.plan("run.toml"), "plan: config is 'run.toml'; give a flowevolve.Config, or"),  # type: ignore[arg-type]
    "run, a path": (lambda: ran("run.toml"), "run: config is 'run.toml'; give a flowevolve.Config, or"),
    "run, a dict": (lambda: ran({"budget": {}}), "run: config is {'budget': {}}; give a flowevolve.Config, or"),
    "flows, none": (lambda: optimized(Steady(), max_in_flight=0), "optimize: algorithm.max_in_flight"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_misuse_is_told_in_a_line(misuse: str) -> None:
    call, problem = MISUSES[misuse]
    with pytest.raises(fe.InputError) as raised:
        call()
    assert str(raised.value).startswith(problem)
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    "asked", ["hello", [{"role": "user", "content": "hello"}], None], ids=["text", "dicts", "none"]
)
def test_a_call_of_a_model_without_messages_is_the_tasks_own_mistake(asked: Any) -> None:
    async def rollout(artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        await llm(asked)
        raise AssertionError

    said = r"the last failure: TypeError: a call takes messages, .* and not .* \(.*test_misuse\.py:\d+\)$"
    examples = [Example(str(n), {}) for n in range(12)]
    with pytest.raises(fe.TaskFailedError, match=said):
        optimized(wrong(rollout=rollout, data=fe.Dataset(examples, examples)))


def test_a_seed_that_fails_is_told_in_a_line_with_its_place() -> None:
    def seed() -> fe.Artifact:
        raise LookupError("no such prompt")

    said = r"^task 'steady': seed\(\) failed: LookupError: no such prompt \(test_misuse\.py, line \d+\)$"
    with pytest.raises(fe.InputError, match=said) as raised:
        optimized(wrong(seed=seed))
    assert isinstance(raised.value.__cause__, LookupError)


@pytest.mark.parametrize("score", [50, -1, 1.01])
def test_a_score_out_of_range_ends_the_run_at_the_first_answer(score: float) -> None:
    task = wrong(score=score)
    problem = rf"task 'steady': example '\d' has the score {score:g}, but scores have to be from 0 to 1; divide it"
    with pytest.raises(fe.InputError, match=problem):
        optimized(task)
    assert task.rollouts <= len(task.data.val)


def test_a_score_may_be_a_sum_of_fractions() -> None:
    assert optimized(wrong(score=1 + 1e-9)).best is not None


class Measured(Steady):
    """A task with a scale of its own."""

    measured = True
    worst = -100.0
    score = 50


def test_a_task_that_names_its_worst_score_has_a_scale_of_its_own() -> None:
    assert optimized(Measured()).seed_score == 50


def test_an_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[budget]\nminuts = 3\n")
    with pytest.raises(fe.InputError, match=re.escape(f"{file}: budget.minuts: unknown key; did you mean 'minutes'?")):
        fe.load_config(file)
    file.write_text("[budget]\n")
    with pytest.raises(fe.InputError, match=re.escape(f"{file}: budget: give at least one limit")):
        fe.load_config(file)


def test_paths_may_be_texts(tmp_path: Path) -> None:
    config = fe.Config.model_validate({"budget": {"proposals": 2}, "clock": "virtual"})
    out = str(tmp_path / "run")

    async def go() -> fe.Result:
        return await fe.run(config, task=Steady(), out=out)

    async def again() -> fe.Result:
        return await fe.resume(out, changes=["budget.proposals=3"], task=Steady())

    assert fe.clock.run(go, clock="virtual").proposals == 2
    assert fe.clock.run(again, clock="virtual").proposals == 3
    assert optimized(Steady(), out=str(tmp_path / "other")).directory == tmp_path / "other"
    assert fe.Result.load(out).proposals == 3
