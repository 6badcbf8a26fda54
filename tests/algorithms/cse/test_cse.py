"""CSE: plans, operators and their order, frozen parts, rewards, ablations, and what does not suit it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any, cast

import anyio
import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util.errors import InputError
from flowevolve.algorithms.cse import CSE, CSEConfig
from flowevolve.algorithms.cse.select import Reward, sample
from flowevolve.algorithms.cse.write import crossing, mutation
from flowevolve.core.algorithm import Tuning, WorkersWanted
from flowevolve.core.artifact import Artifact
from flowevolve.core.policies import Speculation
from flowevolve.core.pool import Candidate
from flowevolve.programs.parts import REST, Slot, unchanged
from flowevolve.prompts.memory import BOARD_HEADING, COMPRESS_TITLE, REFLECT_TITLE
from flowevolve.prompts.plans import IMPLEMENT_TITLE, PLAN_TITLE
from flowevolve.prompts.programs import CHANGE_TITLES, FAILED_HEADING, Change
from flowevolve.prompts.slots import DIAGNOSE_TITLE, IMPROVE_HEADING, KEEP_HEADING, TAKE_HEADING
from flowevolve.sim.worlds.code.prompt import read_prompt
from flowevolve.tasks.house_style import house_style_task
from tests.support.cse_running import Ran, algorithm, asked, evaluated, ran, selected, titles
from tests.support.interruption import events_of, evolve
from tests.support.part_programs import SEED, Agents, Parts, PartsTask, numbers, roles


@pytest.fixture(scope="module")
def run() -> Ran:
    return ran()


def test_it_improves_on_the_seed(run: Ran) -> None:
    evolved, report, _ = run
    best = evolved.best()
    assert report.error is None
    assert best is not None
    assert best.mean_score > 2.5
    assert report.spent.evaluations >= 31


def test_a_run_begins_with_the_seed_and_programs_to_plans(run: Ran) -> None:
    _, report, facts = run
    first = evaluated(report.pool)[:6]
    assert Counter(each.operator for each in first) == {"seed": 1, "implement": 5}
    assert all(each.parents == () for each in first)
    assert {each.attributes["plan"] for each in first if each.operator == "implement"} == {
        f"plan number {number}" for number in range(1, 6)
    }
    init = [prompt.partition("\n")[0] for prompt in asked(facts)[:6]]
    assert init == [PLAN_TITLE, *[IMPLEMENT_TITLE] * 5]


def test_odd_steps_mutate_and_even_ones_cross_two_parents(run: Ran) -> None:
    _, report, facts = run
    for data in selected(facts):
        assert data["operator"] == ("crossover" if cast(int, data["step"]) % 2 == 0 else "mutate")
    for each in evaluated(report.pool)[6:]:
        assert len(set(each.parents)) == len(each.parents) == (2 if each.operator == "crossover" else 1)


def test_what_a_diagnosis_keeps_is_put_back(run: Ran) -> None:
    """The coder changes every number, and the diagnosis keeps ``parse``."""
    _, report, facts = run
    children = evaluated(report.pool)[6:]
    assert len(children) >= 25
    for each in children:
        parent = report.pool[each.parents[0]].artifact
        assert unchanged(parent, each.artifact, ["parse", REST])
        assert not unchanged(parent, each.artifact, ["solve"])
    restored = events_of(facts, "slots.restored")
    assert len(restored) >= len(children) - 1  # a number may change by less than the digits that are written
    assert all(event.data["parts"] == ["parse"] for event in restored)
    mutations = [prompt for prompt in asked(facts, "write") if KEEP_HEADING in prompt]
    assert mutations
    assert all(f"{KEEP_HEADING}\n- parse\n- {REST}" in each for each in mutations)
    assert all(f"{IMPROVE_HEADING}\n- solve" in each for each in mutations)
    assert any("the number is small" in each for each in mutations)
    crossed = [prompt for prompt in asked(facts, "write") if TAKE_HEADING in prompt]
    assert crossed
    assert all("- parse: from the program" in each for each in crossed)


class Rebinder(Agents):
    """A coder who binds a function's name to something else."""

    def program(self, prompt: str, random: Random) -> str:
        text = super().program(prompt, random)
        return text if prompt.startswith(IMPLEMENT_TITLE) else f"{text}\nparse = solve\n"


def test_a_child_that_can_not_be_mended_ends_and_is_counted() -> None:
    def slots(prompt: str) -> list[dict[str, object]]:
        return [
            {"slot": "misc", "parts": ["parse"], "status": "keep"},
            {"slot": "core_logic", "parts": ["solve"], "status": "improve"},
        ]

    agents = Rebinder()
    agents.slots = slots  # type: ignore[method-assign]
    _, report, _ = ran(agents=agents, budget=fe.Budget(proposals=20))
    reasons = report.stages["write"].counts.reasons
    assert reasons["frozen part changed"] >= 10
    assert len(evaluated(report.pool)) == 6


def test_a_program_of_one_part_is_not_taken_apart_and_nothing_of_it_is_frozen() -> None:
    _, report, facts = ran(algorithm(Parts(seed="def solve():\n    return 1.0\n")))
    assert DIAGNOSE_TITLE not in titles(facts)
    assert not events_of(facts, "slots.restored")
    assert len(evaluated(report.pool)) > 25


def test_without_a_readable_diagnosis_a_step_goes_on_with_nothing_frozen() -> None:
    _, report, facts = ran(agents=Agents(silent=[DIAGNOSE_TITLE]))
    assert {event.data["agent"] for event in events_of(facts, "reply.unparsable")} == {"diagnose"}
    assert not events_of(facts, "slots.restored")
    assert len(evaluated(report.pool)) > 25


def test_without_readable_plans_programs_are_written_all_the_same() -> None:
    _, report, facts = ran(agents=Agents(silent=[PLAN_TITLE]))
    assert {event.data["agent"] for event in events_of(facts, "reply.unparsable")} == {"plan"}
    assert [each.operator for each in evaluated(report.pool)[:6]].count("implement") == 5


def test_failures_enter_as_rejected_teach_and_are_no_parents() -> None:
    evolved, report, facts = ran(algorithm(Parts(limit=1.6)))
    failed = [each for each in evaluated(report.pool) if report.pool.status(each.id) == "rejected"]
    assert failed
    parents = {name for each in evaluated(report.pool) for name in each.parents}
    assert not parents & {each.id for each in failed}
    learnt = {
        note["candidate"]: note
        for update in events_of(facts, "pool.commit")
        for change in cast("list[dict[str, Any]]", update.data["changes"])
        if (note := change.get("data", {})) and change["note"] == "memory.learned"
    }
    for each in failed:
        if each.parents:
            assert learnt[each.id]["change"] < 0
            assert learnt[each.id]["outcome"] == "failed"
    assert evolved.memory.degrading
    later = [prompt for prompt in asked(facts, "write") if FAILED_HEADING in prompt]
    assert later
    assert all("It failed." in prompt.partition(FAILED_HEADING)[2] for prompt in later)


def test_a_program_and_what_it_taught_enter_in_one_commit(run: Ran) -> None:
    _, report, _ = run
    for update in report.pool.updates_between(0):
        added = [change.candidate for change in update.changes if isinstance(change, fe.Add)]
        notes = [change.data.get("candidate") for change in update.changes if isinstance(change, fe.Note)]
        if added and added[0].parents:
            assert notes == [added[0].id]


# Whom children are made of


def candidate(name: str, score: float, **attributes: Any) -> Candidate:
    return Candidate(name, Artifact({"program.py": name}, "program"), attributes=attributes).scored({"one": score})


def test_the_reward_goes_by_the_integral_where_there_is_one() -> None:
    reward = Reward(worst=-2.0, epsilon=0.001)
    assert reward.of(candidate("a", 1.0, metrics={"integral": 0.499})) == pytest.approx(2.0)
    assert reward.of(candidate("b", 1.0, metrics={"seconds": 1.0})) == 3.0
    assert reward.of(candidate("c", -2.0)) == 0.0
    assert reward.of(candidate("d", 1.0, failure="timeout", metrics={"integral": 0.1})) == 0.0
    assert reward.of(candidate("e", -3.0)) == 0.0


@pytest.mark.parametrize("integral", [-0.001, -2.0])
def test_a_metric_of_that_name_that_can_be_no_area_is_none(integral: float) -> None:
    """Evaluators of users may call anything ``integral``."""
    reward = Reward(worst=-2.0, epsilon=0.001)
    known = [candidate(name, 1.0, metrics={"integral": integral}) for name in "ab"]
    assert [reward.of(each) for each in known] == [3.0, 3.0]
    assert len(sample(known, reward, 2, Random(1))) == 2


def test_parents_are_sampled_in_proportion_to_rewards() -> None:
    reward = Reward(worst=0.0, epsilon=0.001)
    known = [candidate("a", 1.0), candidate("b", 3.0), candidate("c", 0.0)]
    random = Random(1)
    drawn = Counter(sample(known, reward, 1, random)[0].id for _ in range(4000))
    assert drawn["b"] / 4000 == pytest.approx(0.75, abs=0.03)
    assert drawn["c"] == 0
    pairs = [tuple(sorted(each.id for each in sample(known, reward, 2, random))) for _ in range(50)]
    assert set(pairs) == {("a", "b")}
    assert len(sample(known, reward, 5, random)) == 3
    worthless = [candidate("a", 0.0), candidate("b", 0.0)]
    assert {sample(worthless, reward, 1, random)[0].id for _ in range(50)} == {"a", "b"}


def test_a_program_that_was_written_twice_is_one_parent() -> None:
    reward = Reward(worst=0.0, epsilon=0.001)
    first = candidate("a", 1.0)
    known = [first, *(replace(first, id=f"twin-{number}") for number in range(8)), candidate("z", 1.0)]
    random = Random(1)
    drawn = Counter(sample(known, reward, 1, random)[0].id for _ in range(2000))
    assert set(drawn) == {"a", "z"}
    assert drawn["z"] / 2000 == pytest.approx(0.5, abs=0.05)
    assert {tuple(sorted(each.id for each in sample(known, reward, 3, random))) for _ in range(20)} == {("a", "z")}


class Copyist(Agents):
    """A coder who answers a crossover with the second parent as it is."""

    def program(self, prompt: str, random: Random) -> str:
        others = read_prompt(prompt).others
        return next(iter(others[0].program.values())) if others else super().program(prompt, random)


def test_a_child_that_is_its_second_parent_is_not_evaluated() -> None:
    _, report, facts = ran(agents=Copyist(silent=[DIAGNOSE_TITLE]), budget=fe.Budget(proposals=40))
    assert report.stages["write"].counts.reasons["unchanged"] >= 10
    assert "crossover" in {data["operator"] for data in selected(facts)}
    assert "crossover" not in {each.operator for each in evaluated(report.pool)}


# Slots


def slot(name: str, parts: str, keep: bool) -> Slot:
    return Slot(cast(Any, name), tuple(parts.split()), keep, "so")


TWO = {"program.py": "def parse():\n    return 1\n\n\ndef solve():\n    return 2\n"}


def test_a_mutation_keeps_what_is_good_and_everything_may_change_where_nothing_is_weak() -> None:
    found = mutation(TWO, [slot("io_parsing", "parse", True), slot("core_logic", "solve", False)])
    assert (found.keep, found.improve) == (("parse",), ("solve",))
    assert found.why == ("core_logic (solve), weak: so",)
    assert mutation(TWO, [slot("misc", "parse solve", True)]).keep == ()
    assert mutation(TWO, ()).improve == ("parse", "solve")


def test_a_crossover_takes_from_the_other_what_is_weak_in_the_first() -> None:
    one = [slot("io_parsing", "parse", True), slot("core_logic", "solve", False)]
    other = [slot("io_parsing", "read", True), slot("core_logic", "solve helper", True), slot("misc", "x", False)]
    found = crossing(TWO, one, other)
    assert (found.first, found.second) == (("parse",), ("solve", "helper"))
    assert found.why[-1] == "the other, core_logic (solve, helper), good: so"
    both = [slot("core_logic", "solve helper", True), slot("misc", "helper", False)]
    assert crossing(TWO, one, both).second == ("solve",)
    same = crossing(TWO, [slot("misc", "parse solve", True)], other)
    assert (same.first, same.second) == ((), ())


class Split(Agents):
    """Diagnoses find the number of each function good where it is above 1."""

    def slots(self, prompt: str) -> list[dict[str, object]]:
        parse, solve = numbers(prompt.partition("## Its parts")[0])[:2]
        return [
            {"slot": "io_parsing", "parts": ["parse"], "status": "keep" if parse > 1 else "improve"},
            {"slot": "core_logic", "parts": ["solve"], "status": "keep" if solve > 1 else "improve"},
        ]


def test_a_child_of_two_has_what_it_was_to_take_from_each() -> None:
    _, report, _ = ran(agents=Split(), budget=fe.Budget(evaluations=60))
    taken: Counter[str] = Counter()
    for each in evaluated(report.pool):
        for parent, parts in cast("dict[str, list[str]]", each.attributes.get("frozen", {})).items():
            assert unchanged(report.pool[parent].artifact, each.artifact, parts)
            taken["first" if parent == each.parents[0] else "second"] += len(parts)
    assert taken["first"] > 3
    assert taken["second"] > 0


# Ablations


@pytest.mark.parametrize("planning", [True, False])
@pytest.mark.parametrize("evolution", [True, False])
@pytest.mark.parametrize("local_memory", [True, False])
def test_what_is_switched_off_is_not_there(planning: bool, evolution: bool, local_memory: bool) -> None:
    evolved, report, facts = ran(algorithm(planning=planning, evolution=evolution, local_memory=local_memory))
    assert report.error is None
    found = titles(facts)
    assert (PLAN_TITLE in found) is planning
    assert (DIAGNOSE_TITLE in found) is evolution
    assert (REFLECT_TITLE in found) is local_memory
    changes: list[Change] = ["parts_mutation", "parts_crossover"] if evolution else ["improve"]
    assert {IMPLEMENT_TITLE, *(CHANGE_TITLES[each] for each in changes)} <= found
    operators = Counter(each.operator for each in evaluated(report.pool))
    assert operators["implement"] == 5
    assert set(operators) == {"seed", "implement", *(("mutate", "crossover") if evolution else ("refine",))}
    assert any("## Advice" in prompt for prompt in asked(facts, "write")) is local_memory
    assert any(BOARD_HEADING in prompt for prompt in asked(facts, "reflect")) is local_memory
    assert bool(evolved.memory.entries) is local_memory


def test_a_memory_that_gets_too_long_is_made_shorter() -> None:
    evolved, report, facts = ran(algorithm(compress_tokens=150), budget=fe.Budget(evaluations=60))
    assert COMPRESS_TITLE in titles(facts)
    assert report.error is None
    assert evolved.memory.tokens < 600
    assert any("in short" in prompt for prompt in asked(facts, "write"))


# From outside, and what does not suit it


def test_a_program_from_outside_is_evaluated_and_others_are_refused() -> None:
    async def give(engine: fe.Engine) -> None:
        await anyio.sleep(30)
        await engine.inject(Artifact({"program.py": SEED.replace("1.0", "2.9")}, "program"))
        with pytest.raises(InputError, match="has components"):
            await engine.inject(Artifact({"other.py": ""}, "program"))

    evolved = algorithm()
    evolve(evolved, roles=roles, beside=give, budget=fe.Budget(evaluations=40), max_in_flight=4)
    best = evolved.best()
    assert best is not None
    assert best.mean_score >= 5.8


def test_where_nothing_works_it_is_said() -> None:
    _, report, _ = ran(algorithm(Parts(limit=0.1)))
    assert isinstance(report.error, InputError)
    assert "neither the seed nor a program written to a plan works; the last failed: error: a number above" in str(
        report.error
    )


def test_tasks_and_tuning_that_do_not_suit_it_are_refused() -> None:
    rows = house_style_task(make_rows(rules=4, per_example=2, overlap=0.3, rows=20, seed=1))
    with pytest.raises(InputError, match="evolves programs"):
        CSE(rows)
    with pytest.raises(InputError, match=r"speculation\.alpha"):
        CSE(PartsTask(), CSEConfig(), Tuning(speculation=Speculation(alpha={"evaluate": 0.5})))
    with pytest.raises(InputError, match="can be given workers"):
        CSE(PartsTask(), CSEConfig(), Tuning(workers={"propose": WorkersWanted(3)}))
