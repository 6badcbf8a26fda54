"""The agents of the world `families`: what they say can be read by the algorithms, and names what the prompt shows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from flowevolve.algorithms.levi.write import advice_prompt
from flowevolve.core.model import ChatRequest, Message
from flowevolve.programs.parts import parts_of
from flowevolve.programs.problem import PROGRAM
from flowevolve.prompts.abstracts import (
    ABSTRACT,
    Trajectory,
    exemplars_prompt,
    navigate_prompt,
    read_examples,
    read_guidance,
    read_summary,
    summarize_prompt,
)
from flowevolve.prompts.memory import (
    Digest,
    Direction,
    Lesson,
    compress_prompt,
    read_digest,
    read_insight,
    reflect_prompt,
)
from flowevolve.prompts.plans import plan_prompt, read_plans
from flowevolve.prompts.programs import META_TITLE, PROGRAM_HEADING, ShownProgram, shown_files
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.prompts.slots import diagnose_prompt, read_slots
from flowevolve.sim.worlds.families.chances import Chances
from flowevolve.sim.worlds.families.hints import read_hints
from flowevolve.sim.worlds.families.seeing import from_words, in_words
from flowevolve.sim.worlds.families.world import FamiliesWorld
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.tasks.families.catalog import SEED, WAYS, Member, Piece, middle

SEES = FamiliesWorld(PRESETS["easy"], Chances(overlooks=0))
BLIND = FamiliesWorld(PRESETS["easy"], Chances(overlooks=1))
SNAKE = Member(SEED.copies, middle(WAYS["snake"]))
RAISED = SEED.with_piece(Piece(WAYS["rounds"], (0.7, 0.5)))


def ask(prompt: str, world: FamiliesWorld = SEES, seed: int = 0) -> str:
    return world.reply(ChatRequest("sim", (Message("user", prompt),)), random.Random(seed))


def code(member: Member, score: float | None = 1.0, feedback: str = "") -> ShownProgram:
    return ShownProgram({PROGRAM: str(member)}, score, feedback)


def words(member: Member, score: float | None = 1.0) -> ShownProgram:
    return ShownProgram(
        {ABSTRACT: read_summary(ask(summarize_prompt(SHIPPED, {PROGRAM: str(member)}))).abstract}, score
    )


def test_plans_name_different_ways_the_new_ones_first() -> None:
    plans = read_plans(ask(plan_prompt(SHIPPED, "Do it.", {PROGRAM: str(SEED)}, 5)), 5)
    named = [read_hints(plan).ways[0] for plan in plans]
    assert len(set(named)) == 5
    assert set(named[:4]) == set(WAYS) - set(SEED.family)


def test_advice_names_the_ways_of_the_best_program_and_one_that_nobody_goes() -> None:
    prompt = advice_prompt(SHIPPED, "Do it.", [code(SNAKE, 2.0), code(SEED, 1.0)], [])
    ways = read_hints(ask(prompt)).ways
    assert ways[:2] == ["rounds", "snake"]
    assert ways[2] in {"shares", "blocks", "interleaved"}
    assert read_hints(ask(prompt, BLIND)).ways == []


def test_instructions_name_one_way_that_the_program_does_not_go() -> None:
    before = f"- Be quick.\ntry: {SEED.family[0]}"
    prompt = "\n\n".join(
        [META_TITLE, f"## The instructions\n{fence(before)}", f"{PROGRAM_HEADING}\n{shown_files(code(SEED).program)}"]
    )
    for seed in range(10):
        text = read_instruction(ask(prompt, seed=seed))
        assert text.startswith("- Be quick.\n")
        (way,) = read_hints(text).ways
        assert way not in SEED.family


@pytest.mark.parametrize(("copies", "place", "weak"), [(9.0, 1.0, "copies"), (1.0, 9.0, "place")])
def test_the_part_that_costs_more_is_to_be_improved(copies: float, place: float, weak: str) -> None:
    feedback = f"Points lost: the numbers in `copies` cost {copies:.3f}; the numbers in `place` cost {place:.3f}."
    shown = code(SEED, 1.0, feedback)
    parts = parts_of(shown.program)
    slots = read_slots(ask(diagnose_prompt(SHIPPED, "Do it.", shown, parts)), parts)
    assert [part for slot in slots if not slot.keep for part in slot.parts] == [weak]
    assert sorted(part for slot in slots for part in slot.parts) == sorted(parts)
    guesses = {ask(diagnose_prompt(SHIPPED, "Do it.", shown, parts), BLIND, seed) for seed in range(10)}
    assert len(guesses) == 2


def test_the_part_in_which_a_better_program_goes_another_way_is_to_be_improved() -> None:
    feedback = "Points lost: the numbers in `copies` cost 9.000; the numbers in `place` cost 1.000."
    shown = code(SEED, 1.0, feedback)
    parts = parts_of(shown.program)
    slots = read_slots(ask(diagnose_prompt(SHIPPED, "Do it.", shown, parts, code(SNAKE, 2.0))), parts)
    assert {part for slot in slots if not slot.keep for part in slot.parts} == {"copies", "place"}


@pytest.mark.parametrize(
    ("child", "score", "outcome", "lines"),
    [
        (SNAKE, 2.0, "success", ["try: snake"]),
        (SNAKE, 0.5, "failed", ["shun: snake"]),
        (RAISED, 2.0, "success", ["raise: trust"]),
        (RAISED, 0.5, "failed", ["lower: trust"]),
        (RAISED, 1.0, "neutral", []),
        (SEED, 2.0, "neutral", []),
    ],
)
def test_a_reflection_says_what_to_do_again_or_to_leave(
    child: Member, score: float, outcome: str, lines: Sequence[str]
) -> None:
    prompt = reflect_prompt(SHIPPED, "Do it.", code(SEED), code(child, score), score - 1.0)
    insight = read_insight(ask(prompt))
    assert insight.direction.outcome == outcome
    assert insight.lesson.split("\n")[1:] == lines
    assert read_insight(ask(prompt, BLIND)).direction.outcome == "neutral"


def test_a_shorter_memory_counts_directions_and_keeps_the_latest_lessons() -> None:
    lessons = [Lesson("success", f"lesson {number}") for number in range(12)]
    notes = Digest(((Direction("snake", "success"), 2),), (*lessons, lessons[0]))
    kept = read_digest(ask(compress_prompt(SHIPPED, notes, 100)))
    assert kept.directions == notes.directions
    assert [lesson.text for lesson in kept.lessons] == [*(f"lesson {number}" for number in range(5, 12)), "lesson 0"]


def test_a_summary_says_all_there_is_to_a_program() -> None:
    before = f"{in_words(SEED.copies)}; {in_words(SEED.place)}"
    summary = read_summary(ask(summarize_prompt(SHIPPED, {PROGRAM: str(SNAKE)}, before)))
    assert from_words(summary.abstract) == SNAKE
    assert summary.inherited == (in_words(SEED.copies),)
    assert summary.new == (in_words(SNAKE.place),)
    assert from_words(read_summary(ask(summarize_prompt(SHIPPED, {PROGRAM: "x = 1"}))).abstract) is None


def test_guidance_follows_gains_in_words_and_overlooks_code() -> None:
    trajectories = [Trajectory("improvement", ("1", "2"), (1.0,)), Trajectory("decline", ("1", "3"), (-0.5,))]
    members = {"1": (SEED, 1.0), "2": (SNAKE, 2.0), "3": (RAISED, 0.5)}
    told = {name: words(*each) for name, each in members.items()}
    guidance = read_hints(read_guidance(ask(navigate_prompt(SHIPPED, "Do it.", told, trajectories), BLIND)))
    assert guidance.ways[0] == "snake"
    assert guidance.ways[1] in {"shares", "blocks", "interleaved"}
    assert guidance.directions == {"trust": -1}
    raw = {name: code(*each) for name, each in members.items()}
    blind = read_hints(read_guidance(ask(navigate_prompt(SHIPPED, "Do it.", raw, trajectories), BLIND)))
    assert blind.directions == {}


def test_examples_are_the_best_and_the_one_most_unlike() -> None:
    programs = {"2": words(RAISED, 3.0), "3": words(SNAKE, 1.0)}
    chosen = read_examples(ask(exemplars_prompt(SHIPPED, "Do it.", words(SEED), programs, 3)), programs, 3)
    assert [each.program for each in chosen] == ["2", "3"]
