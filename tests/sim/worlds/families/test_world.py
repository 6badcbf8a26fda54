"""The world `families`: what keeps a program's family, what can leave it, and that (1+λ) is stuck in it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import ChatRequest, Message
from flowevolve.programs.problem import PROGRAM
from flowevolve.prompts.plans import implement_prompt
from flowevolve.prompts.programs import ShownProgram, program_prompt, read_program, seed_prompt
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.prompts.slots import crossover_prompt, mutation_prompt
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from flowevolve.sim.worlds.families.chances import Chances
from flowevolve.sim.worlds.families.coder import reachable
from flowevolve.sim.worlds.families.hints import hint, read_hints
from flowevolve.sim.worlds.families.seeing import directions
from flowevolve.sim.worlds.families.world import FamiliesWorld
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.tasks.families.catalog import CEILINGS, SEED, WAYS, Member, middle, read_member

EASY = PRESETS["easy"]  # nothing broken
ALWAYS = FamiliesWorld(EASY, Chances(differs=1, carries=1, usual=1, follows=1, combines=1, overlooks=0))
NEVER = FamiliesWorld(EASY, Chances(differs=0, carries=0, usual=1, follows=0, combines=0, overlooks=1))
families = st.sampled_from(sorted(CEILINGS))
seeds = st.integers(0, 10**6)


def of(family: tuple[str, str]) -> Member:
    return Member(*(middle(WAYS[name]) for name in family))


def shown(member: Member, score: float | None = 1.0) -> ShownProgram:
    return ShownProgram({PROGRAM: str(member)}, score)


def ask(world: FamiliesWorld, prompt: str, seed: int, parent: Member, form: Form = "whole") -> Member:
    """The program that the world makes of the parent."""
    reply = world.reply(ChatRequest("sim", (Message("user", prompt),)), random.Random(seed))
    made = read_member(read_program(reply, Artifact({PROGRAM: str(parent)}, kind="program"), form)[PROGRAM])
    assert made is not None
    return made


def changed(
    world: FamiliesWorld, seed: int, parent: Member, others: Sequence[Member] = (), advice: str = "", how: str = ""
) -> Member:
    prompt = program_prompt(
        SHIPPED, "Do it.", shown(parent), form="whole", others=[*map(shown, others)], advice=advice, instructions=how
    )
    return ask(world, prompt, seed, parent)


@given(families, seeds, st.sampled_from(["edits", "whole"]))
def test_a_change_to_one_program_keeps_its_family(family: tuple[str, str], seed: int, form: Form) -> None:
    parent = of(family)
    prompt = program_prompt(SHIPPED, "Do it.", shown(parent), form=form)
    made = ask(ALWAYS, prompt, seed, parent, form)
    assert made.family == family
    assert made != parent


@given(families, families, seeds)
def test_earlier_versions_are_not_gone_back_to(family: tuple[str, str], earlier: tuple[str, str], seed: int) -> None:
    parent = of(family)
    prompt = program_prompt(SHIPPED, "Do it.", shown(parent), form="whole", ancestors=[shown(of(earlier))])
    assert ask(ALWAYS, prompt, seed, parent).family == family


@given(families, families, seeds)
def test_without_a_chance_nothing_but_a_plan_leaves_the_family(
    family: tuple[str, str], other: tuple[str, str], seed: int
) -> None:
    advice = hint("try", other)
    assert changed(NEVER, seed, of(family), [of(other)], advice, advice).family == family


def test_a_part_is_taken_over_from_another_program() -> None:
    parent, other = of(("rounds", "snake")), of(("shares", "greedy"))
    made = {changed(ALWAYS, seed, parent, [other]).family for seed in range(20)}
    assert made == {("shares", "snake"), ("rounds", "greedy")}


@pytest.mark.parametrize("where", ["advice", "instructions"])
def test_a_way_that_hints_name_is_taken(where: str) -> None:
    text = f"Do better.\n{hint('try', ['snake'])}"
    advice, how = (text, "") if where == "advice" else ("", text)
    made = changed(ALWAYS, 1, SEED, advice=advice, how=how)
    assert made.family == ("rounds", "snake")


def test_a_direction_that_hints_name_is_taken() -> None:
    up = "\n".join(hint("raise", [name]) for name in ("trust", "spare", "pull", "crowd"))
    for seed in range(20):
        made = changed(ALWAYS, seed, SEED, advice=up)
        assert set(directions(SEED, made).values()) <= {1}


def test_hints_that_contradict_each_other_say_nothing() -> None:
    text = "\n".join(
        ["try: snake, blocks", "- shun: snake", "  raise: turn", "lower: turn", "lower: damp", "try: else"]
    )
    found = read_hints(text)
    assert found.ways == ["blocks"]
    assert found.directions == {"damp": -1}


@given(st.sets(families, min_size=1, max_size=4), seeds)
def test_a_program_unlike_others_is_of_a_family_one_step_away(known: set[tuple[str, str]], seed: int) -> None:
    programs = [*map(of, sorted(known))]
    made = ask(ALWAYS, seed_prompt(SHIPPED, "Do it.", [*map(shown, programs)]), seed, programs[0])
    assert made.family not in known
    assert made.family in reachable(known)


def test_a_family_of_two_new_ways_is_out_of_reach_of_the_plain_one() -> None:
    assert ("shares", "snake") not in reachable([SEED.family])
    assert ("shares", "snake") in reachable([("rounds", "snake")])
    assert set(reachable(())) == set(reachable([SEED.family]))


def test_a_failed_program_is_among_those_to_be_unlike() -> None:
    prompt = seed_prompt(SHIPPED, "Do it.", [shown(SEED), shown(of(("rounds", "snake")), None)])
    assert ("rounds", "snake") not in {ask(ALWAYS, prompt, seed, SEED).family for seed in range(30)}


def test_a_plan_is_carried_out_and_without_one_the_usual_is_written() -> None:
    plan = f"Go to and fro.\n{hint('try', ['snake'])}"
    files = {PROGRAM: str(SEED)}
    assert ask(ALWAYS, implement_prompt(SHIPPED, "Do it.", files, plan), 1, SEED).family == ("rounds", "snake")
    assert ask(ALWAYS, implement_prompt(SHIPPED, "Do it.", files, ""), 1, SEED).family == SEED.family
    assert ask(NEVER, implement_prompt(SHIPPED, "Do it.", files, plan), 1, SEED).family == SEED.family


def test_parts_to_keep_are_kept_and_parts_to_take_are_taken() -> None:
    parent, other = of(("rounds", "snake")), of(("shares", "blocks"))
    kept, taken = Counter[bool](), Counter[bool]()
    for seed in range(40):
        prompt = mutation_prompt(SHIPPED, "Do it.", shown(parent), ["place"], ["copies"], [], form="whole")
        kept[ask(ALWAYS, prompt, seed, parent).place == parent.place] += 1
        prompt = crossover_prompt(
            SHIPPED, "Do it.", shown(parent), shown(other), ["place"], ["copies"], [], form="whole"
        )
        taken[ask(ALWAYS, prompt, seed, parent).family == ("shares", "snake")] += 1
    assert kept[True] >= 34
    assert taken[True] >= 34


def test_a_prompt_without_a_program_of_a_family_gets_no_program() -> None:
    other = ShownProgram({PROGRAM: "x = 1\n"}, 1.0)
    for prompt in (program_prompt(SHIPPED, "Do it.", other, form="whole"), seed_prompt(SHIPPED, "Do it.", [other])):
        assert "```" not in ALWAYS.reply(ChatRequest("sim", (Message("user", prompt),)), random.Random(0))


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_a_chance_is_from_0_to_1(value: float) -> None:
    with pytest.raises(InputError, match="world families: follows is"):
        Chances(follows=value)


def test_worlds_with_other_chances_have_other_names() -> None:
    assert repr(FamiliesWorld()) != repr(FamiliesWorld(chances=Chances(follows=0.5)))


def search(name: str, evaluations: int) -> Result:
    config = parse_config(
        {
            "clock": "virtual",
            "algorithm": {"name": name},
            "task": {"name": "program", "problem": "families"},
            "llm": {"backend": "sim"},
            "sim": {"profile": "instant", "world": "families"},
            "budget": {"evaluations": evaluations},
        },
        "test",
    )
    return clock.run(lambda: run(config), clock="virtual")


@pytest.mark.parametrize("name", ["one_plus_lambda", "best_of_n"])
def test_what_only_changes_one_program_never_passes_the_ceiling_of_the_seeds_family(name: str) -> None:
    result = search(name, 400)
    assert result.best is not None
    assert result.seed_score is not None
    assert result.seed_score < result.best.score <= CEILINGS[SEED.family]
    member = read_member(result.best.artifact[PROGRAM])
    assert member is not None
    assert member.family == SEED.family


def test_what_asks_for_other_programs_passes_it() -> None:
    result = search("levi", 80)
    assert result.best is not None
    assert result.best.score > CEILINGS[SEED.family]
