"""Mistakes inside a configuration: each gets one helpful line and its exit code, and leaves no run behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import flowevolve

ROWS = '{"key": 1, "prompt": "p", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}\n'


INSTRUCTIONS = ("task.name=instructions", "task.data.path=rows.jsonl")


OPENAI = ("clock=real", "llm.backend=openai")


MISTAKES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "unknown section": (("budjet.minutes=1",), 2, "did you mean 'budget'"),
    "unknown key": (("budget.minuts=1",), 2, "did you mean 'minutes'"),
    "unknown llm key": (("llm.modle=x",), 2, "did you mean 'model'"),
    "unknown key of a section that may be left out": (("start.rnu=x",), 2, "did you mean 'run'"),
    "wrong type": (("seed=abc",), 2, "seed"),
    "negative seed": (("seed=-1",), 2, "seed"),
    "zero budget": (("budget.minutes=0",), 2, "budget.minutes"),
    "negative tokens": (("budget.tokens=-5",), 2, "budget.tokens"),
    "target that is no number": (("budget.target_score=nan",), 2, "budget.target_score"),
    "bad clock": (("clock=wall",), 2, "clock"),
    "bad mode": (("algorithm.mode=async",), 2, "algorithm.mode"),
    "zero in flight": (("algorithm.max_in_flight=0",), 2, "max_in_flight"),
    "unknown algorithm": (("algorithm.name=gepaa",), 2, "did you mean 'gepa'"),
    "unknown algorithm setting": (("algorithm.minibach=3",), 2, "did you mean 'minibatch'"),
    "bad algorithm setting": (("algorithm.minibatch=0",), 2, "algorithm.minibatch"),
    "bad selection": (("algorithm.candidate_selection=best",), 2, "candidate_selection"),
    "unknown task": (("task.name=housestyle",), 2, "did you mean 'house_style'"),
    "unknown task setting": (("task.data=1",), 2, "task.data"),
    "task not importable": (("task.name=no_such_module:Task",), 2, "no_such_module"),
    "missing task data": (("task.name=math",), 2, "task.data is missing"),
    "missing data file": (("task.name=math", "task.data.path=nowhere.jsonl"), 2, "nowhere.jsonl: no such data file"),
    "unknown data format": (("task.name=math", "task.data.path=run.toml"), 2, "unknown kind of file"),
    "empty data": (("task.name=math", "task.data.path=empty.jsonl"), 2, "holds no rows"),
    "bad json line": (("task.name=math", "task.data.path=broken.jsonl"), 2, "broken.jsonl: line 2"),
    "row without a field": (
        ("task.name=math", "task.data.path=rows.jsonl"),
        2,
        "'problem' is missing; its columns are key",
    ),
    "unknown constraint": (("task.name=instructions", "task.data.path=unknown.jsonl"), 2, "made:up"),
    "too few rows": ((*INSTRUCTIONS, "task.data.sizes={train=50,val=50}"), 2, "add up to 100 rows, but the data has 5"),
    "empty split": ((*INSTRUCTIONS, "task.data.sizes={train=2}"), 2, "'val' would be empty"),
    "duplicate ids": ((*INSTRUCTIONS, "task.data.id_field=key"), 2, "have the same 'key'"),
    "missing id field": ((*INSTRUCTIONS, "task.data.id_field=nr"), 2, "no field 'nr'"),
    "unknown policy": (("staleness.policy=guard",), 2, "did you mean 'guarded'"),
    "unknown policy setting": (("staleness.policy=guarded", "staleness.max_gaps=3"), 2, "did you mean 'max_gap'"),
    "unknown ordering": (("scheduler.order.policy=later",), 2, "did you mean 'later_first'"),
    "unfair ordering": (("scheduler.order.fair_every=0",), 2, "scheduler.order.fair_every"),
    "unknown admission": (("scheduler.admission.policy=latncy",), 2, "did you mean 'latency'"),
    "unknown admission setting": (("scheduler.admission.target=1",), 2, "has no such setting"),
    "bad admission setting": (
        ("scheduler.admission.policy=server_queue", "scheduler.admission.least=20"),
        2,
        "scheduler.admission.least is 20, but has to be at most start, which is 16",
    ),
    "bad look": (("scheduler.admission.interval_seconds=0",), 2, "scheduler.admission.interval_seconds"),
    "unknown stage": (("stages.evaluat.workers=3",), 2, "evaluat"),
    "zero workers": (("stages.evaluate.workers=0",), 2, "stages.evaluate.workers"),
    "unknown profile": (("sim.profile=h100",), 2, "unknown profile"),
    "unknown world": (("sim.world=rule",), 2, "unknown world"),
    "unknown preset": (("sim.preset=hard",), 2, "unknown preset"),
    "virtual clock on a real server": (("llm.backend=openai", "llm.model=m"), 2, "virtual"),
    "no model": (OPENAI, 2, "llm.model"),
    "dollars without a price": ((*OPENAI, "llm.model=m", "budget.dollars=1"), 2, "price of 'm'"),
    "dollars without a price, simulated": (("budget.dollars=1", "llm.roles.judge.model=j"), 2, "of 'simulated', 'j'"),
    "missing prices": (("llm.prices_file=none.toml",), 2, "none.toml: the prices can't be read"),
    "key in the config": (("llm.api_key=sk-1",), 2, "llm.api_key: keys don't belong in a configuration"),
    "key for a variable's name": (("llm.roles.task.api_key_env=sk-1",), 2, "keys don't belong in a configuration"),
    "missing key file": (
        (*OPENAI, "llm.model=m", "llm.api_key_file=none"),
        2,
        "llm.api_key_file: there is no such file",
    ),
    "model without a backend": (("llm.model=m",), 2, "backend is missing, though model is given; set it to 'openai'"),
    "address without a backend": (("llm.roles.task.base_url=http://h/v1",), 2, "though roles.task.base_url is given"),
    "variable of a key that is not set": (
        (*OPENAI, "llm.model=m", "llm.base_url=http://127.0.0.1:9/v1", "llm.api_key_env=NOT_SET_ANYWHERE"),
        2,
        "the environment variable NOT_SET_ANYWHERE, which is to hold the key for http://127.0.0.1:9/v1, is not set",
    ),
    "address is that of one function": (
        (*OPENAI, "llm.model=m", "llm.base_url=http://h/v1/chat/completions"),
        2,
        "llm.base_url: the address is that of one function of the API; leave out /chat/completions at its end",
    ),
    "bandit without models": (("llm.roles.task.bandit=ucb",), 2, "at least two models"),
    "unreachable server": ((*OPENAI, "llm.model=m", "llm.base_url=http://127.0.0.1:9/v1"), 3, "127.0.0.1:9"),
    "override without a value": (("seed",), 2, "such as --set budget.minutes=10"),
    "override inside a value": (("seed.x=1", "clock.y.z=2"), 2, "clock"),
    "held out without a test split": (
        ("held_out=true", *INSTRUCTIONS, "task.data.sizes={train=2,val=2}"),
        2,
        "no test examples",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_helpful_line(mistake: str, config: Path) -> None:
    overrides, code, says = MISTAKES[mistake]
    folder = config.parent
    (folder / "rows.jsonl").write_text(ROWS * 5)
    (folder / "empty.jsonl").write_text("")
    (folder / "broken.jsonl").write_text(ROWS + "{\n")
    (folder / "unknown.jsonl").write_text(ROWS.replace("punctuation:no_comma", "made:up") * 5)
    settings = [part for override in overrides for part in ("--set", override)]
    done = flowevolve("run", str(config), *settings, "--out", "out", cwd=folder)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [("[budget\n", "not valid TOML"), ("", "budget is missing"), ("[budget]\n", "at least one limit")],
)
def test_bad_files_are_named(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(content)
    done = flowevolve("check", "bad.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "bad.toml" in done.stderr
    missing = flowevolve("check", "none.toml", cwd=tmp_path)
    assert missing.returncode == 2
    assert "none.toml: no such config file" in missing.stderr


def test_a_run_that_is_refused_leaves_no_directory(config: Path) -> None:
    assert flowevolve("run", "run.toml", "--set", "task.name=nothing", cwd=config.parent).returncode == 2
    assert not list(config.parent.glob("runs/*"))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("held_out=true", *INSTRUCTIONS, "task.data.sizes={train=2,val=2}"), "no test examples"),
        (("algorithm.name=combee", "algorithm.fan_in=10", "algorithm.max_in_flight=2"), "gathers 10 items at a time"),
        (("start.run=nowhere",), "nowhere"),
    ],
)
def test_check_refuses_what_a_run_would(settings: tuple[str, ...], says: str, config: Path) -> None:
    (config.parent / "rows.jsonl").write_text(ROWS * 4)
    arguments = [word for setting in settings for word in ("--set", setting)]
    for command in ("check", "run"):
        done = flowevolve(command, "run.toml", *arguments, cwd=config.parent)
        assert done.returncode == 2, done.stdout
        assert says in done.stderr
