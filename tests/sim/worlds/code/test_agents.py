"""The world `code` answers agents: in their forms, by what can be counted in the programs that they show."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.artifact import Artifact
from flowevolve.core.model import ChatRequest, Message
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.programs.parts import REST, parts_of, unchanged
from flowevolve.prompts.abstracts import (
    ABSTRACT,
    Summary,
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
    DirectionOutcome,
    Insight,
    Lesson,
    Step,
    compress_prompt,
    distill_prompt,
    queries_prompt,
    read_advice,
    read_digest,
    read_insight,
    read_queries,
    reflect_prompt,
    shown_board,
    shown_memory,
)
from flowevolve.prompts.plans import implement_prompt, plan_prompt, read_plans
from flowevolve.prompts.programs import ShownProgram, program_prompt, read_program
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.prompts.slots import crossover_prompt, diagnose_prompt, mutation_prompt, read_slots
from flowevolve.sim.worlds.code.coder import CODERS
from flowevolve.sim.worlds.code.prompt import KINDS, hinted, read_prompt
from flowevolve.sim.worlds.code.replies import garbled
from flowevolve.sim.worlds.code.world import CodeWorld
from flowevolve.sim.worlds.rules.params import PRESETS

SOURCE = """\
import math

SIZE = 4
POWER = 2.0


def values(n):
    found = []
    for k in range(n):
        for j in range(SIZE):
            found.append(weight(k) * j)
    return found


def weight(k):
    return 0.5 * k**POWER + 1.5 if k > 2 else math.sqrt(k)


def solve(n):
    return sum(values(n)) / (n + 1)
"""
PROGRAM: Mapping[str, str] = {"program.py": SOURCE}
OTHER = {"program.py": SOURCE.replace("0.5 * k", "0.75 * k").replace("sum(values(n))", "max(values(n))")}
PARTS = ("values", "weight", "solve", REST)
EASY = CodeWorld(PRESETS["easy"])  # nothing broken
TASK = "Write solve(n)."

Changed = Mapping[str, str]
LOOPED = {
    "program.py": SOURCE.replace(
        "    return sum(values(n))", "    for _ in range(2):\n        pass\n    return sum(values(n))"
    )
}
GROWN = {"program.py": SOURCE.replace("(n + 1)", "(n + 1 + 0.1 * n)")}
RAISED = {"program.py": SOURCE.replace("1.5 if", "1.75 if")}
LESSONS = (
    Lesson("success", "Other constants helped.\nprefer: constants"),
    Lesson("failed", "Loops harmed.\navoid: loops"),
    Lesson("success", "Other constants helped once more.\nprefer: constants"),
)
TRIED = ((Direction("other constants", "success"), 2), (Direction("loops that run otherwise", "failed"), 1))


def step(change: float, kind: str) -> Step:
    outcome: DirectionOutcome = "success" if change > 0 else "failed"
    hint = f"{'prefer' if change > 0 else 'avoid'}: {kind}"
    return Step(change, Insight(Direction("some change", outcome), f"It was so.\n{hint}"))


STEPS = [step(0.5, "constants"), step(0.25, "constants"), step(0.1, "growth")]
HARM = [step(-0.5, "loops"), step(-0.1, "growth")]
SAID = Summary(abstract="It works.", new=("constants: `weight`: so and so",))
SHOWN = {
    "c1": ShownProgram({ABSTRACT: str(SAID)}, 0.5),
    "c2": ShownProgram({ABSTRACT: "Another way.\nNew: loops: `values`: 3 loops"}, 0.75),
    "c3": ShownProgram({ABSTRACT: "A third.\nNew: growth: `solve`: more"}, None, "ValueError: no"),
}
PATHS = [Trajectory("improvement", ("c1", "c2"), (0.25,)), Trajectory("decline", ("c2", "c3"), (None,))]

Ask = tuple[str, Callable[[str], object]]
PROMPTS: Mapping[str, Ask] = {
    "plan": (plan_prompt(SHIPPED, TASK, PROGRAM, 5), lambda reply: read_plans(reply, 5)),
    "diagnose": (
        diagnose_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), PARTS),
        lambda reply: read_slots(reply, PARTS),
    ),
    "reflect": (
        reflect_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), ShownProgram(OTHER, 0.75), 0.25),
        read_insight,
    ),
    "reflect on a failure": (
        reflect_prompt(
            SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), ShownProgram(GROWN, None, 'Traceback\nKeyError: {"a": []}'), -0.5
        ),
        read_insight,
    ),
    "reflect with a board": (
        reflect_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), ShownProgram(OTHER, 0.75), 0.25, shown_board(TRIED)),
        read_insight,
    ),
    "compress": (compress_prompt(SHIPPED, Digest(TRIED, LESSONS), 300), read_digest),
    "queries": (
        queries_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), shown_memory(TRIED, LESSONS), 3),
        lambda reply: read_queries(reply, 3),
    ),
    "queries for a plan": (
        queries_prompt(SHIPPED, TASK, ShownProgram({"plan": "Search by halves.\nprefer: loops"}, None), "", 3),
        lambda reply: read_queries(reply, 3),
    ),
    "distill": (distill_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), STEPS, HARM), read_advice),
    "summarize a seed": (summarize_prompt(SHIPPED, PROGRAM), read_summary),
    "summarize": (summarize_prompt(SHIPPED, OTHER, str(SAID)), read_summary),
    "navigate": (navigate_prompt(SHIPPED, TASK, SHOWN, PATHS), read_guidance),
    "exemplars": (
        exemplars_prompt(SHIPPED, TASK, SHOWN["c1"], SHOWN, 2, "prefer: loops"),
        lambda reply: read_examples(reply, SHOWN, 2),
    ),
}


def ask(prompt: str, seed: int = 0, model: str = "sim", world: CodeWorld = EASY) -> str:
    return world.reply(ChatRequest(model, (Message("user", prompt),)), random.Random(seed))


@given(st.sampled_from(sorted(PROMPTS)), st.integers(0, 10**6))
def test_every_answer_can_be_read_and_is_the_same_again(name: str, seed: int) -> None:
    prompt, read = PROMPTS[name]
    assert read(ask(prompt, seed))
    assert ask(prompt, seed) == ask(prompt, seed)


def test_as_many_answers_can_not_be_read_as_programs() -> None:
    def unreadable(model: str, preset: str, seeds: int) -> float:
        count = 0
        for prompt, read in PROMPTS.values():
            for seed in range(seeds):
                try:
                    read(ask(prompt, seed, model, CodeWorld(PRESETS[preset])))
                except UnparsableReplyError:
                    count += 1
        return count / seeds / len(PROMPTS)

    small = unreadable("small", "normal", 60)
    assert 0.5 < small / CODERS["small"].broken < 1.5
    assert unreadable("large", "normal", 60) < small < unreadable("small", "misjudged", 20)


@pytest.mark.parametrize("name", sorted(PROMPTS))
def test_an_answer_that_is_garbled_is_never_read(name: str) -> None:
    prompt, read = PROMPTS[name]
    for seed in range(30):
        with pytest.raises(UnparsableReplyError):
            read(garbled(ask(prompt, seed), random.Random(seed)))


@pytest.mark.parametrize(
    "prompt",
    [
        diagnose_prompt(SHIPPED, TASK, ShownProgram({}, None), []),
        reflect_prompt(SHIPPED, TASK, ShownProgram({}, None), ShownProgram({}, None), 0.0),
        compress_prompt(SHIPPED, Digest((), ()), 100),
        summarize_prompt(SHIPPED, {}),
        navigate_prompt(SHIPPED, TASK, {}, []),
        exemplars_prompt(SHIPPED, TASK, ShownProgram({}, None), {}, 3),
        plan_prompt(SHIPPED, TASK, {}, 3),
        queries_prompt(SHIPPED, TASK, ShownProgram({}, None), "", 3),
        distill_prompt(SHIPPED, TASK, ShownProgram({}, None), [], []),
    ],
)
@pytest.mark.parametrize("preset", ["easy", "adversarial"])
def test_nothing_to_speak_of_gets_an_answer_too(prompt: str, preset: str) -> None:
    assert all(ask(prompt, seed, world=CodeWorld(PRESETS[preset])) for seed in range(40))


def test_programs_that_do_not_parse_or_are_not_python_are_answered_for() -> None:
    for program in ({"program.py": "def f(:"}, {"program.c": "int a = 3;"}):
        shown = ShownProgram(program, 0.5)
        assert read_plans(ask(plan_prompt(SHIPPED, TASK, program, 2)), 2)
        assert read_slots(ask(diagnose_prompt(SHIPPED, TASK, shown, parts_of(program))), parts_of(program))
        assert read_insight(ask(reflect_prompt(SHIPPED, TASK, shown, shown, 0.0))).direction.outcome == "neutral"
        assert read_summary(ask(summarize_prompt(SHIPPED, program))).abstract
        assert read_queries(ask(queries_prompt(SHIPPED, TASK, shown, "", 2)), 2)


def test_plans_differ_and_a_program_written_to_one_heeds_it() -> None:
    plans = read_plans(ask(plan_prompt(SHIPPED, TASK, PROGRAM, 5)), 5)
    assert len({hinted(plan, "prefer") for plan in plans}) == 5
    asked = implement_prompt(SHIPPED, TASK, PROGRAM, "Go.\nprefer: constants")
    replies = [ask(asked, seed) for seed in range(60)]
    kinds = [
        kind for reply in replies for kind in reply.split("\n")[0].removeprefix("Changed: ").strip(".").split(", ")
    ]
    assert kinds.count("constants") > 0.25 * len(kinds)
    assert len(kinds) > 3 * len(replies)


def test_the_part_with_most_loops_is_to_be_improved_and_those_in_which_a_better_program_differs() -> None:
    seen = dict.fromkeys(PARTS, 0)
    for seed in range(60):
        asked = diagnose_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), PARTS, ShownProgram(OTHER, 0.75))
        slots = read_slots(ask(asked, seed), PARTS)
        assert sorted(part for slot in slots for part in slot.parts) == sorted(PARTS)
        for part in (part for slot in slots if not slot.keep for part in slot.parts):
            seen[part] += 1
    assert seen["values"] == seen["weight"] == seen["solve"] == 60
    assert 0 < seen[REST] < 40


@pytest.mark.parametrize(
    ("child", "kind"), [(RAISED, "constants"), (LOOPED, "loops"), (GROWN, "growth"), (OTHER, "calls")]
)
def test_reflection_tells_the_kind_of_change_and_what_came_of_it(child: Changed, kind: str) -> None:
    better = read_insight(
        ask(reflect_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), ShownProgram(child, 0.75), 0.25))
    )
    worse = read_insight(
        ask(reflect_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), ShownProgram(child, 0.25), -0.25))
    )
    broken = read_insight(
        ask(
            reflect_prompt(
                SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), ShownProgram(child, None, "Oh\nKeyError: 3"), -0.5
            )
        )
    )
    same = read_insight(ask(reflect_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), ShownProgram(child, 0.5), 0.0)))
    assert [each.direction.outcome for each in (better, worse, broken, same)] == [
        "success",
        "failed",
        "failed",
        "neutral",
    ]
    assert kind in hinted(better.lesson, "prefer")
    assert kind in hinted(worse.lesson, "avoid") & hinted(broken.lesson, "avoid")
    assert not hinted(same.lesson, "prefer") | hinted(same.lesson, "avoid")
    assert "KeyError: 3" in broken.lesson


def test_a_reflection_counts_what_was_changed_whatever_was_tried_before() -> None:
    parent, child = ShownProgram(PROGRAM, 0.5), ShownProgram(OTHER, 0.75)
    board = shown_board([(Direction("## The program", "failed"), 2), *TRIED])
    assert ask(reflect_prompt(SHIPPED, TASK, parent, child, 0.25, board)) == ask(
        reflect_prompt(SHIPPED, TASK, parent, child, 0.25)
    )


def test_what_is_alike_in_a_memory_becomes_one() -> None:
    tried = (*TRIED, (Direction("other constants and other operators", "success"), 3))
    digest = read_digest(ask(compress_prompt(SHIPPED, Digest(tried, LESSONS), 300)))
    assert digest.directions == ((Direction("other constants", "success"), 5), TRIED[1])
    assert digest.lessons == (LESSONS[2], LESSONS[1])


def test_experience_is_what_several_steps_have_in_common() -> None:
    advice = read_advice(ask(distill_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), STEPS, HARM)))
    assert [(sorted(hinted(each.text, "prefer")), sorted(hinted(each.text, "avoid"))) for each in advice] == [
        (["constants"], []),
        ([], ["loops"]),
    ]  # growth helped as often as it harmed


def test_a_summary_of_a_summary_tells_what_was_kept_and_what_is_new() -> None:
    seed = read_summary(ask(summarize_prompt(SHIPPED, PROGRAM)))
    child = read_summary(ask(summarize_prompt(SHIPPED, GROWN, str(seed))))
    assert {trait.split("`")[1] for trait in child.inherited} == {"values", "weight", "<settings>"}
    assert [trait.split(":")[0] for trait in child.new] == ["growth"]
    again = read_summary(ask(summarize_prompt(SHIPPED, GROWN, str(child))))
    assert not again.new


def test_guidance_goes_by_what_came_of_the_steps() -> None:
    told = read_guidance(ask(navigate_prompt(SHIPPED, TASK, SHOWN, PATHS)))
    assert hinted(told, "prefer") == {"loops"}
    assert hinted(told, "avoid") == {"growth"}
    raw = {"c1": ShownProgram(PROGRAM, 0.5), "c2": ShownProgram(RAISED, 0.75), "c3": ShownProgram(GROWN, None)}
    told = read_guidance(ask(navigate_prompt(SHIPPED, TASK, raw, PATHS)))
    assert hinted(told, "prefer") == {"constants"}
    assert (
        read_prompt(program_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), form="whole", advice=told)).leanings[
            "constants"
        ]
        == 1
    )


def test_examples_are_the_best_the_most_unlike_and_now_and_then_a_failed_one() -> None:
    shown = {**SHOWN, "c4": ShownProgram({ABSTRACT: "Quite other words in here, and many of them."}, 0.25)}
    chosen = [
        [
            each.program
            for each in read_examples(ask(exemplars_prompt(SHIPPED, TASK, SHOWN["c1"], shown, 3), seed), shown, 3)
        ]
        for seed in range(60)
    ]
    assert all(names[:2] == ["c2", "c4"] for names in chosen)
    assert 5 < sum("c3" in names for names in chosen) < 30


@pytest.mark.parametrize("form", ["edits", "whole"])
def test_parts_to_keep_mostly_stay_as_they_are(form: Form) -> None:
    program = Artifact(PROGRAM, kind="program")

    def kept(model: str, keep: Sequence[str]) -> float:
        improve = [part for part in PARTS if part not in keep]
        asked = mutation_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), keep, improve, [], form=form)
        made = [read_program(ask(asked, seed, model), program, form) for seed in range(40)]
        return sum(unchanged(program, each, keep) for each in made) / len(made)

    for keep in (["weight", REST], ["values", "weight", "solve"]):
        assert 0.7 < kept("small", keep) < 1
        assert kept("large", keep) > 0.9


def test_parts_are_taken_from_the_program_that_has_the_better_ones() -> None:
    program, other = Artifact(PROGRAM, kind="program"), Artifact(OTHER, kind="program")
    asked = crossover_prompt(
        SHIPPED,
        TASK,
        ShownProgram(PROGRAM, 0.5),
        ShownProgram(OTHER, 0.75),
        ["values", "solve"],
        ["weight"],
        [],
        form="whole",
    )
    made = [read_program(ask(asked, seed, "large"), program, "whole") for seed in range(100)]
    both = [unchanged(program, each, ["values", "solve"]) and unchanged(other, each, ["weight"]) for each in made]
    assert sum(both) > 90


def test_of_several_files_parts_are_kept_by_their_files_names() -> None:
    two = Artifact(
        {"program.py": SOURCE, "helper.py": "SIZE = 3\n\n\ndef weight(k):\n    return k + 1\n"}, kind="program"
    )
    keep = [part for part in parts_of(two) if part != "helper.py:weight"]
    asked = mutation_prompt(SHIPPED, TASK, ShownProgram(two, 0.5), keep, ["helper.py:weight"], [], form="whole")
    made = [read_program(ask(asked, seed, "large"), two, "whole") for seed in range(40)]
    assert sum(unchanged(two, each, keep) for each in made) > 35
    assert any(each["helper.py"] != two["helper.py"] for each in made)


def test_the_more_lessons_say_so_the_more_it_is_heeded() -> None:
    def leanings(*lines: str) -> Mapping[str, float]:
        return read_prompt(
            program_prompt(SHIPPED, TASK, ShownProgram(PROGRAM, 0.5), form="whole", advice="\n".join(lines))
        ).leanings

    assert leanings("prefer: loops, growth") == {"loops": 1, "growth": 1}
    assert leanings("- avoid: loops") == {"loops": -1}
    assert leanings("prefer: loops", "  prefer: loops", "avoid: growth") == {"loops": 1, "growth": -0.5}
    assert leanings("prefer: loops", "avoid: loops") == {}
    assert leanings("prefer: nonsense") == {}
    assert set(leanings(f"prefer: {', '.join(KINDS)}")) == set(KINDS)
