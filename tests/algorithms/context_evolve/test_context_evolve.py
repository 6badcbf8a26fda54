"""ContextEvolve: what each agent sees and what becomes of its words, failures, switches, and what does not suit it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import cast

import anyio
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util.errors import InputError
from flowevolve.algorithms.context_evolve import ContextEvolve
from flowevolve.algorithms.context_evolve.stages import UNDESCRIBED
from flowevolve.core.algorithm import Tuning, WorkersWanted
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.policies import Speculation
from flowevolve.engine.report import RunReport
from flowevolve.programs.problem import Verdict
from flowevolve.prompts.abstracts import EXEMPLARS_TITLE, NAVIGATE_TITLE, SUMMARIZE_TITLE
from flowevolve.prompts.programs import ADVICE_HEADING, CODE_TITLE, FAILED_HEADING, OTHERS_HEADING
from flowevolve.stages.asking import tokens_by_agent
from flowevolve.tasks.house_style import house_style_task
from tests.support.context_evolving import Agents, algorithm, asked, programs, ran, said
from tests.support.interruption import Fact
from tests.support.number_programs import Numbers, NumberTask

Run = tuple[ContextEvolve, RunReport, list[Fact]]


@pytest.fixture(scope="module")
def run() -> Run:
    return ran()


def test_it_improves_on_the_seed(run: Run) -> None:
    evolved, report, _ = run
    best = evolved.best()
    assert best is not None
    assert best.mean_score > 1.5
    assert report.spent.evaluations >= 60


def test_every_program_enters_with_its_abstract(run: Run) -> None:
    _, report, facts = run
    for commit in said(facts, "pool.commit"):
        for change in cast("list[dict[str, dict[str, object]]]", commit["changes"]):
            assert change["attributes"]["abstract"]
    for each in programs(report.pool):
        number = each.artifact["program.py"].removeprefix("value = ")
        assert each.attributes["abstract"] == f"It is about {number}."
        assert each.attributes["new"] == [f"the number {number}"]


def test_the_summarizer_is_shown_the_parents_abstract_with_its_traits(run: Run) -> None:
    first, *others = asked(run[2], SUMMARIZE_TITLE)
    assert "It is about" not in first
    assert all(re.search(r"It is about [\d.-]+\.\nInherited: one number\nNew: the number [\d.-]+\n", p) for p in others)


def test_the_navigator_is_shown_abstracts_and_no_code(run: Run) -> None:
    prompts = asked(run[2], NAVIGATE_TITLE)
    assert prompts
    for prompt in prompts:
        assert "value =" not in prompt
        lines = re.findall(r"^- (c\S+) -> .*$", prompt, re.MULTILINE)
        assert 1 <= len(lines) <= 6
        shown = set(re.findall(r"^### Program (\S+)$", prompt, re.MULTILINE))
        assert shown == set(re.findall(r"\bc\d+(?:-\d+)?\b", "\n".join(re.findall(r"^- c.*$", prompt, re.MULTILINE))))


def test_the_generator_is_shown_guidance_and_the_code_of_the_examples(run: Run) -> None:
    _, report, facts = run
    later = [prompt for prompt in asked(facts, CODE_TITLE) if ADVICE_HEADING in prompt]
    assert any("Heed" in prompt for prompt in later)
    made = [each for each in programs(report.pool) if each.operator == "generate"]
    assert {len(cast("list[str]", each.attributes["examples"])) for each in made[20:]} == {2}
    for prompt in later:
        for number, name in re.findall(r"^Program (\d): as (\S+) is near$", prompt, re.MULTILINE):
            code = report.pool[name].artifact["program.py"]
            section = prompt.partition(OTHERS_HEADING)[2].partition(f"### Program {number}\n")[2]
            assert section.partition("### ")[0].count(code)


def test_tokens_are_counted_by_agent(run: Run) -> None:
    _, report, facts = run
    used = tokens_by_agent(fact for fact in facts if isinstance(fact, Event))
    stages = {"summarizer": "summarize", "navigator": "navigate", "sampler": "sample"}
    for agent, stage in stages.items():
        assert used[agent].total_tokens == report.stages[stage].counts.tokens > 0
    calls = [fact for fact in facts if isinstance(fact, CallRecord)]
    assert sum(stage.counts.tokens for stage in report.stages.values()) == 55 * sum(
        c.role == "agent" for c in calls
    ) + (110 * sum(c.role == "code" for c in calls))


def test_failures_stay_as_examples_with_their_abstracts_and_are_no_parents() -> None:
    _, report, facts = ran(algorithm(Numbers(limit=1.4)))
    failed = {each.id for each in programs(report.pool, "rejected")}
    assert failed
    assert all(report.pool[name].attributes["abstract"] for name in failed)
    shown = {name for data in said(facts, "context_evolve.sampled") for name in cast("list[str]", data["programs"])}
    assert shown & failed
    parents = {str(data["parent"]) for data in said(facts, "context_evolve.selected")}
    assert not parents & failed
    assert any("Score: none, it failed" in prompt for prompt in asked(facts, CODE_TITLE))
    assert any("(failed)" in prompt for prompt in asked(facts, NAVIGATE_TITLE))
    assert any("no number below the limit" in prompt for prompt in asked(facts, NAVIGATE_TITLE))
    later = [prompt for prompt in asked(facts, CODE_TITLE) if FAILED_HEADING in prompt]
    assert later
    assert all("It failed." in prompt.partition(FAILED_HEADING)[2] for prompt in later)


def test_failures_may_be_parents_if_that_is_wanted() -> None:
    _, report, facts = ran(algorithm(Numbers(limit=1.2), failed_parents=True), budget=fe.Budget(evaluations=150))
    failed = {each.id for each in programs(report.pool, "rejected")}
    assert failed & {str(data["parent"]) for data in said(facts, "context_evolve.selected")}


class Endless(Numbers):
    """Whose score knows no bounds."""

    def verdict(self, source: str) -> Verdict:
        verdict = super().verdict(source)
        return replace(verdict, value=float("inf")) if verdict.value > 1.2 else verdict


def test_a_score_that_is_no_number_is_a_failure() -> None:
    evolved, report, _ = ran(algorithm(Endless()))
    best = evolved.best()
    assert best is not None
    assert best.mean_score <= 1.2
    failed = programs(report.pool, "rejected")
    assert any(str(each.attributes["failure"]).startswith("its score is inf") for each in failed)


# Replies that can't be read, calls that fail


def test_where_agents_say_nothing_that_can_be_read_the_search_goes_on() -> None:
    evolved, report, facts = ran(agents=Agents(unreadable=1.0))
    best = evolved.best()
    assert best is not None
    assert best.mean_score > 1.3
    undescribed = said(facts, "candidate.undescribed")
    assert len(undescribed) == len(programs(report.pool))
    assert all(UNDESCRIBED in str(each.attributes["abstract"]) for each in programs(report.pool))
    assert max(len(str(each.attributes["abstract"])) for each in programs(report.pool)) < 200
    assert "Heed" not in "".join(asked(facts, CODE_TITLE))
    unparsable = Counter(str(data.get("agent")) for data in said(facts, "reply.unparsable"))
    assert {"summarizer", "navigator", "sampler"} <= set(unparsable)
    for data in said(facts, "context_evolve.sampled")[30:]:
        assert len(cast("list[str]", data["programs"])) == 3


def test_a_program_whose_description_fails_for_good_is_not_lost() -> None:
    _, report, facts = ran(agents=Agents(refused=0.4))
    stages = report.stages
    assert stages["summarize"].counts.discarded == 0
    assert said(facts, "candidate.undescribed")
    assert stages["navigate"].counts.discarded + stages["sample"].counts.discarded > 0
    assert len(programs(report.pool)) >= 55


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 1000),
    in_flight=st.integers(1, 24),
    unreadable=st.sampled_from([0.0, 0.3]),
    refused=st.sampled_from([0.0, 0.2]),
    seconds=st.sampled_from([0.5, 40.0]),
    age=st.sampled_from([None, 0, 5]),
)
def test_none_is_ever_selected_without_an_abstract(
    seed: int, in_flight: int, unreadable: float, refused: float, seconds: float, age: int | None
) -> None:
    """Parents, examples and what navigators see were all committed, with an abstract, before."""
    _, report, facts = ran(
        algorithm(Numbers(limit=2.0), guidance_age=age),
        agents=Agents(unreadable, refused, seconds),
        max_in_flight=in_flight,
        seed=seed,
        budget=fe.Budget(evaluations=40),
    )
    assert report.error is None
    known: set[str] = set()
    for fact in facts:
        if not isinstance(fact, Event):
            continue
        if fact.kind == "pool.commit":
            for change in cast("list[dict[str, object]]", fact.data["changes"]):
                assert cast("dict[str, object]", change["attributes"])["abstract"]
                known.add(str(change["add"]))
        elif fact.kind == "context_evolve.selected":
            assert fact.data["parent"] in known
        elif fact.kind == "context_evolve.offered":
            assert set(cast("list[str]", fact.data["programs"])) <= known
        elif fact.kind == "context_evolve.navigated":
            for each in cast("list[dict[str, list[str]]]", fact.data.get("trajectories", [])):
                assert set(each["programs"]) <= known


# Switches


def test_without_the_summarizer_the_others_are_shown_code() -> None:
    evolved, report, facts = ran(algorithm(summarizer=False))
    assert not asked(facts, SUMMARIZE_TITLE)
    assert "summarize" not in report.stages
    assert all("value = " in prompt for title in (NAVIGATE_TITLE, EXEMPLARS_TITLE) for prompt in asked(facts, title))
    best = evolved.best()
    assert best is not None
    assert "abstract" not in best.attributes


def test_without_the_navigator_there_is_no_guidance() -> None:
    _, report, facts = ran(algorithm(navigator=False))
    assert not asked(facts, NAVIGATE_TITLE)
    assert "navigate" not in report.stages
    assert all("Heed" not in prompt for prompt in asked(facts, CODE_TITLE))
    assert asked(facts, EXEMPLARS_TITLE)


def test_without_the_sampler_the_best_are_the_examples() -> None:
    _, report, facts = ran(algorithm(sampler=False))
    assert not asked(facts, EXEMPLARS_TITLE)
    made = [each for each in programs(report.pool) if each.operator == "generate"][20:]
    for each in made:
        examples = [report.pool[name] for name in cast("list[str]", each.attributes["examples"])]
        scores = [example.mean_score for example in examples]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)


def test_with_raw_history_programs_are_shown_as_they_are_and_nobody_else_is_asked() -> None:
    evolved, _, facts = ran(algorithm(raw_history=6))
    calls = [fact for fact in facts if isinstance(fact, CallRecord)]
    assert {call.role for call in calls} == {"code"}
    prompts = asked(facts, CODE_TITLE)
    assert prompts[-1].count("### Program") == 6
    best = evolved.best()
    assert best is not None
    assert best.mean_score > 1.3


# From outside, and what does not suit it


def test_a_candidate_from_outside_is_described_like_any_other() -> None:
    async def give(engine: fe.Engine) -> None:
        await anyio.sleep(30)
        await engine.inject(fe.Artifact({"program.py": "value = 2.9"}, "program"))
        with pytest.raises(InputError, match="has components"):
            await engine.inject(fe.Artifact({"other.py": ""}, "program"))

    evolved, report, _ = ran(beside=give)
    (given_one,) = [each for each in programs(report.pool) if each.artifact["program.py"] == "value = 2.9"]
    assert given_one.attributes["abstract"] == "It is about 2.9."
    best = evolved.best()
    assert best is not None
    assert best.mean_score >= 2.9


def test_a_seed_that_does_not_work_is_said() -> None:
    _, report, _ = ran(algorithm(Numbers(seed="value = none")), agents=Agents(unreadable=1.0))
    assert isinstance(report.error, InputError)
    assert "the seed fails: error: no number below the limit" in str(report.error)
    assert "\n" not in str(report.error)


def test_tasks_and_tuning_that_do_not_suit_it_are_refused() -> None:
    rows = house_style_task(make_rows(rules=4, per_example=2, overlap=0.3, rows=20, seed=1))
    with pytest.raises(InputError, match="evolves programs"):
        ContextEvolve(rows)
    with pytest.raises(InputError, match=r"speculation\.alpha"):
        ContextEvolve(NumberTask(), None, Tuning(speculation=Speculation(alpha={"evaluate": 0.5})))
    with pytest.raises(InputError, match="can be given workers"):
        ContextEvolve(NumberTask(), None, Tuning(workers={"propose": WorkersWanted(3)}))


def test_trajectories_need_a_weight() -> None:
    with pytest.raises(ValueError, match="mixed and decline are all 0"):
        algorithm(trajectories={"improvement": 0, "mixed": 0, "decline": 0})
