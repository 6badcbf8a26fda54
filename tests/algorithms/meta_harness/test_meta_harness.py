"""Meta-Harness: harnesses that behave and harnesses that don't, what proposers see, interruption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.meta_harness import MetaHarness, MetaHarnessConfig
from flowevolve.algorithms.meta_harness.evaluator import Ran, SandboxEvaluator, check
from flowevolve.algorithms.meta_harness.frontier import frontier
from flowevolve.algorithms.meta_harness.proposer import Proposer
from flowevolve.algorithms.meta_harness.view import View, files
from flowevolve.config.run import Config, parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord
from flowevolve.core.context import StageContext
from flowevolve.core.model import ChatRequest
from flowevolve.core.pool import Add, Candidate, Pool
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.prompts.reading.json_replies import tool_calls
from flowevolve.prompts.reading.programs import python_programs
from flowevolve.runner.assemble import make_tuning
from flowevolve.runner.plan import Plan, ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.tasks.labelling import BASELINES, harness
from tests.support.interruption import Fact, Memory, as_kept, events_of
from tests.support.whole_runs import evolve

ROWS = [("itchy red skin", "rash"), ("skin rash spreads", "rash"), ("cough and cold", "flu"), ("fever, cough", "flu")]
SETTINGS = SandboxSettings(preload=())


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = [f'"{text}",{label}' for text, label in ROWS * 4]
    path.write_text("\n".join(["question,answer", *lines]), encoding="utf-8")
    return path


def config(rows: Path, **sections: object) -> Config:
    sizes = {"train": 8, "val": 4, "test": 4}
    settings: dict[str, object] = {
        "clock": "virtual",
        "algorithm": {"name": "meta_harness", "run_seconds": 2, "max_in_flight": 2},
        "sandbox": {"preload": []},
        "task": {"name": "harness", "sets": {"symptoms": {"path": str(rows), "sizes": sizes}}},
        "sim": {"world": "harness"},
        "budget": {"proposals": 6},
    }
    return parse_config(settings | sections, "test")


def candidate(name: str, accuracy: float, chars: float, source: str = "") -> Candidate:
    attributes: dict[str, JSON] = {"accuracy": {"one": accuracy}, "context_chars": chars, "mistakes": []}
    return Candidate(name, Artifact({"harness": source or name}, kind="harness"), attributes=attributes)


def test_it_neither_speculates_nor_races_and_says_so(rows: Path) -> None:
    with pytest.raises(InputError, match=r"racing\.policy: algorithm meta_harness"):
        evolve(config(rows, racing={"policy": "bound"}))


def test_a_run_scores_the_baselines_and_what_the_coder_writes(rows: Path) -> None:
    result, events = evolve(config(rows, budget={"proposals": 9}))
    assert result.report.error is None
    assert result.report.spent.proposals >= 6
    added = [event for event in events if event.kind == "pool.commit"]
    assert len(added) >= len(BASELINES) + 4


def test_the_test_split_is_scored_at_the_end_alone(rows: Path) -> None:
    _, events = evolve(config(rows))
    kinds = [event for event in events if event.kind == "pool.commit"]
    tested = [place for place, event in enumerate(kinds) if "'test'" in str(event.data["changes"])]
    assert tested
    assert tested == list(range(tested[0], len(kinds)))


@pytest.mark.parametrize("budget", [{"evaluations": 10}, {"rollouts": 40}])
def test_room_is_kept_for_the_test_split(rows: Path, budget: Mapping[str, int]) -> None:
    result, events = evolve(config(rows, budget=budget))
    assert not result.report.overshoot
    assert any("'test'" in str(event.data["changes"]) for event in events if event.kind == "pool.commit")


def test_the_same_seed_gives_the_same_events(rows: Path) -> None:
    assert evolve(config(rows))[1] == evolve(config(rows))[1]


def test_another_algorithm_can_not_evolve_harnesses(rows: Path) -> None:
    with pytest.raises(InputError, match="evolves harnesses"):
        evolve(config(rows, task={"name": "house_style"}))


@pytest.mark.anyio
@pytest.mark.parametrize("name", BASELINES)
async def test_baselines_pass_the_check(name: str) -> None:
    assert await check(SandboxEvaluator(SETTINGS), BASELINES[name], ["a"], 10) is None


HOSTILE = {
    "endless": ("while True: pass", "timeout"),
    "forks": ("import os\nwhile True: os.fork()", "killed|timeout|denied|rror"),
    "leaves": ("import os\nos._exit(0)", "error"),
    "syntax": ("class Memory", "SyntaxError"),
    "nothing": ("", "the file has no 'Memory'"),
    "methods": ("class Memory:\n    def __init__(self, llm, labels): pass", "no method predict"),
    "network": ("import socket\nsocket.create_connection(('127.0.0.1', 9))", "denied|Error"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", HOSTILE)
async def test_what_can_not_be_run_is_reported(name: str) -> None:
    source, words = HOSTILE[name]
    found = await check(SandboxEvaluator(SETTINGS), source, ["a"], 2)
    assert found is not None
    assert any(word in found for word in words.split("|"))


def test_a_forged_report_is_data_that_is_checked() -> None:
    ran = TypeAdapter(Ran).validate_python({"predictions": [{"answer": "flu"}], "scores": {"symptoms/1": 1.0}})
    assert not hasattr(ran, "scores")


def test_the_frontier_has_the_best_of_each_set_and_no_beaten_ones() -> None:
    short, long, beaten = candidate("1", 0.5, 10), candidate("2", 0.9, 50), candidate("3", 0.4, 20)
    assert frontier([short, long, beaten]) == [short, long]


def test_proposers_see_invalid_harnesses_but_no_test_scores() -> None:
    pool = Pool()
    good = candidate("1", 0.5, 10)
    bad = Candidate("2", harness("bad"), attributes={"report": "SyntaxError: no"})
    tested = Candidate("3", good.artifact, attributes={**good.attributes, "test": {"accuracy": {"one": 0.123}}})
    for each in (good, bad, tested):
        pool.register(each)
    pool.commit([Add(good), Add(bad, "rejected"), Add(tested)], cause="0", time=0.0)
    texts = files(pool.snapshot())
    assert "2: invalid: SyntaxError: no" in texts["summary.txt"]
    assert texts["harnesses/2.py"] == "bad"
    assert not any("0.123" in text for text in texts.values())


def test_a_view_ends_at_its_budget() -> None:
    view = View({"a.txt": "x" * 30}, 20)
    assert view.read("a.txt").startswith("x" * 20 + "\n(cut")
    assert "x" not in view.read("a.txt")


@pytest.mark.parametrize(
    ("reply", "tools"),
    [
        ('{"tool": "list", "path": ""}', ["list"]),
        ('I look.\n```json\n{"tool": "read", "path": "a"}\n```\n{"tool": "search", "text": "{"}', ["read", "search"]),
        ("{not json} {", []),
        ('{"path": "a"} [1]', []),
        ("", []),
        ('<think>{"tool": "list", "path": ""}</think>', []),
    ],
)
def test_tools_are_found_whatever_stands_around_them(reply: str, tools: list[str]) -> None:
    assert [call["tool"] for call in tool_calls(reply)] == tools


def test_python_blocks_are_found_even_where_the_last_is_cut() -> None:
    assert python_programs("a\n```python\nx = 1\n```\nb\n```py\ny = 2") == ["x = 1\n", "y = 2\n"]


def test_a_run_that_has_ended_goes_on(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first, _ = evolve(config(rows), out)

    async def go() -> Result:
        return await fe.resume(out, changes=["budget.proposals=12"])

    assert clock.run(go, clock="virtual").report.spent.proposals > first.report.spent.proposals


def interrupted(settings: Config, before: Sequence[Fact] = ()) -> tuple[Result, list[Fact]]:
    facts = list(before)
    return gone_on(make_plan(settings, ProvidedObjects()), facts), facts


def gone_on(plan: Plan, facts: list[Fact]) -> Result:
    """A run from where these facts end; what happens is added to them."""

    async def go() -> Result:
        watchers = Watchers(events=(lambda event: facts.append(as_kept(event)),), calls=(facts.append,))
        history = Memory(tuple(facts)) if facts else None
        return await run_plan(plan, None, watchers, None, history)

    return clock.run(go, clock="virtual")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_after_an_interruption_no_program_that_had_ended_runs_again(rows: Path, share: float) -> None:
    _, facts = interrupted(config(rows))
    result, combined = interrupted(config(rows), facts[: int(share * len(facts))])
    assert result.report.error is None
    ran = [(event.data["item"], event.data["key"]) for event in events_of(combined, "harness.ran")]
    checked = [event.data["item"] for event in events_of(combined, "harness.checked")]
    assert len(ran) == len(set(ran))
    assert len(checked) == len(set(checked))


ENDLESS = """
class Memory:
    def __init__(self, llm, labels): pass
    def predict(self, text): return "flu"
    def learn_from_batch(self, batch):
        while True: pass
    def get_state(self): return None
    def set_state(self, state): pass
"""
LARGE = """
block = bytearray(300_000_000)


class Memory:
    def __init__(self, llm, labels): pass
    def predict(self, text): return "flu"
    def learn_from_batch(self, batch): pass
    def get_state(self): return None
    def set_state(self, state): pass
"""
FORGED = """
import json, os


class Memory:
    def __init__(self, llm, labels):
        self.labels = labels

    def predict(self, text):
        os.write(3, json.dumps({"predictions": [{"answer": "flu", "score": 1.0}] * 4, "scores": [1.0] * 4}).encode())
        os._exit(0)

    def learn_from_batch(self, batch): pass
    def get_state(self): return None
    def set_state(self, state): pass
"""

FORGED_PROMPTS = """
import json, os


class Memory:
    def __init__(self, llm, labels): pass

    def learn_from_batch(self, batch):
        os.write(3, json.dumps(REPORT).encode())
        os._exit(0)

    def predict(self, text): return "flu"
    def get_state(self): return None
    def set_state(self, state): pass
"""


SOMETIMES = """
class Odd:
    def __str__(self): raise ValueError


class Memory:
    def __init__(self, llm, labels): self.llm = llm
    def predict(self, text):
        if "skin" in text:
            {}
        return "flu"
    def learn_from_batch(self, batch): pass
    def get_state(self): return None
    def set_state(self, state): pass
"""


class Writes:
    """A proposer that always writes the same."""

    def __init__(self, *sources: str) -> None:
        self.sources = sources

    async def write(self, view: View, context: StageContext) -> Sequence[str]:
        return self.sources


def with_proposer(settings: Config, proposer: Proposer) -> Result:
    return gone_on(proposed_by(proposer, settings), [])


def proposed_by(proposer: Proposer, settings: Config) -> Plan:
    plan = make_plan(settings, ProvidedObjects())
    own = MetaHarnessConfig.model_validate(settings.algorithm.settings)
    return replace(plan, algorithm=MetaHarness(plan.task, own, make_tuning(settings), proposer=proposer))


def test_an_endless_harness_ends_as_invalid_with_its_report(rows: Path) -> None:
    result = with_proposer(config(rows, budget={"proposals": 3}), Writes(ENDLESS))
    (found, *_) = result.report.pool.snapshot().candidates("rejected")
    assert "timeout" in str(found.attributes["report"])


def test_a_forged_report_earns_what_its_answers_are_worth(rows: Path) -> None:
    result = with_proposer(config(rows, budget={"proposals": 3}), Writes(FORGED))
    (found, *_) = [each for each in result.report.pool.snapshot().candidates() if each.operator == "write"]
    wrong = found.attributes["mistakes"]
    assert isinstance(wrong, list)
    assert all(isinstance(each, dict) and each["label"] == "rash" for each in wrong)
    assert sum(found.scores.values()) == len(found.scores) - len(wrong) < len(found.scores)


@pytest.mark.parametrize(
    "report",
    [
        {"learning": [f"forged {number}" for number in range(500)], "predictions": []},
        {"learning": ["forged"], "predictions": [{"asked": [f"forged {number}"]} for number in range(4)]},
    ],
    ids=["many at once while it learns", "predicting while it learns"],
)
def test_a_forged_report_has_nothing_asked(rows: Path, report: JSON) -> None:
    source = FORGED_PROMPTS.replace("REPORT", repr(report))
    facts: list[Fact] = []
    result = gone_on(proposed_by(Writes(source), config(rows, budget={"proposals": 3})), facts)
    asked = [fact.request for fact in facts if isinstance(fact, CallRecord) and isinstance(fact.request, ChatRequest)]
    assert [each for each in asked if each.messages[-1].content.startswith("forged")] == []
    (found, *_) = result.report.pool.snapshot().candidates("rejected")
    assert "a harness must not write it" in str(found.attributes["report"])


@pytest.mark.parametrize(
    "done",
    [
        "raise ValueError",
        r"raise ValueError('\ud800')",
        r"return '\ud800'",
        r"return self.llm('\ud800' + text)",
        "return Odd()",
    ],
)
def test_a_prediction_that_goes_wrong_is_a_wrong_answer_and_no_more(rows: Path, done: str) -> None:
    result = with_proposer(config(rows, budget={"proposals": 3}), Writes(SOMETIMES.format(done)))
    (found, *_) = [each for each in result.report.pool.snapshot().candidates() if each.operator == "write"]
    wrong = found.attributes["mistakes"]
    assert isinstance(wrong, list)
    assert {str(each["text"]) for each in wrong if isinstance(each, dict)} <= {"itchy red skin", "skin rash spreads"}
    assert 0 < len(wrong) == len(found.scores) - sum(found.scores.values()) < len(found.scores)


def test_proposers_that_write_nothing_end_the_run_though_they_cost_neither_time_nor_proposals(rows: Path) -> None:
    with pytest.raises(InputError, match="20 proposers in a row wrote no harness"):
        with_proposer(config(rows, budget={"proposals": 3, "minutes": 60}), Writes())


def test_those_that_wrote_nothing_before_an_interruption_count(rows: Path) -> None:
    plan, facts = proposed_by(Writes(), config(rows)), list[Fact]()
    with pytest.raises(InputError, match="in a row"):
        gone_on(plan, facts)
    wrote = [place for place, fact in enumerate(facts) if isinstance(fact, fe.Event) and fact.kind == "harness.wrote"]
    facts = facts[: wrote[11] + 1]
    with pytest.raises(InputError, match="in a row"):
        gone_on(proposed_by(Writes(), config(rows)), facts)
    assert [event.data["in_vain"] for event in events_of(facts, "harness.wrote")] == list(range(1, 21))


def test_a_proposer_that_writes_now_and_then_goes_on(rows: Path) -> None:
    class Seldom:
        asked = 0

        async def write(self, view: View, context: StageContext) -> Sequence[str]:
            self.asked += 1
            return () if self.asked % 3 else (BASELINES["few_shot"] + f"# {self.asked}\n",)

    algorithm = {"name": "meta_harness", "run_seconds": 2, "max_in_flight": 1, "candidates": 1, "in_vain": 3}
    settings = config(rows, algorithm=algorithm, budget={"proposals": 3})
    assert with_proposer(settings, Seldom()).report.spent.proposals == 3


def test_harnesses_run_in_the_sandbox_of_the_run(rows: Path) -> None:
    result = with_proposer(
        config(rows, sandbox={"preload": [], "memory_mb": 8}, budget={"proposals": 3}), Writes(LARGE)
    )
    (found, *_) = result.report.pool.snapshot().candidates("rejected")
    assert "memory" in str(found.attributes["report"]).lower()


def test_a_sandbox_of_the_algorithm_is_refused(rows: Path) -> None:
    with pytest.raises(InputError, match=r"write what is in \[algorithm\.sandbox\] under \[sandbox\]"):
        evolve(config(rows, algorithm={"name": "meta_harness", "sandbox": {"preload": []}}))
