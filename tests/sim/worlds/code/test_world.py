"""The world `code`: its replies have the form that was asked for, change real programs, and now and then are broken."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.artifact import Artifact
from flowevolve.core.model import ChatRequest, Message
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.problems.catalog import PROBLEMS
from flowevolve.programs.blocks import outside_unchanged
from flowevolve.programs.features import syntax_error
from flowevolve.programs.problem import Problem
from flowevolve.prompts.programs import (
    ADVICE_TITLE,
    META_TITLE,
    ShownProgram,
    program_prompt,
    read_program,
    seed_prompt,
)
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.code.names import unbound
from flowevolve.sim.worlds.code.prompt import KINDS, hinted, read_prompt
from flowevolve.sim.worlds.code.world import CodeWorld
from flowevolve.sim.worlds.rules.params import PRESETS
from tests.support.depth import LONG

SOURCE = '''\
import math

# EVOLVE-BLOCK-START
WEIGHTS = [0.5, 1.5, -2.0, 3.0]
ROUNDS = 3


def value(x, y):
    """Not 1 of these 2 numbers is to change: they are words."""
    total = max(0.0, x) - 1.5 * y
    for i in range(ROUNDS):
        if total > 10 and x < y:
            total -= math.sin(total) * WEIGHTS[i]
        total = total / 2 + f(x)
    return total


def f(x: int) -> float:
    return sorted([x, 2 * x])[0] + len(f"{x:.3f}")
# EVOLVE-BLOCK-END

assert value(1, 2) < 1e9
'''
OTHER = SOURCE.replace("x < y", "x < y and x > 0").replace("[0.5, 1.5", "[7.5, 8.5")
ONE = Artifact({"program.py": SOURCE}, kind="program")
EASY = CodeWorld(PRESETS["easy"])  # nothing broken


def ask(prompt: str, seed: int = 0, model: str = "sim", world: CodeWorld = EASY) -> str:
    return world.reply(ChatRequest(model, (Message("user", prompt),)), random.Random(seed))


def prompt(form: Form = "edits", others: Sequence[str] = (), advice: str = "", instructions: str = "") -> str:
    shown = [ShownProgram({"program.py": text}, 1.0) for text in others]
    return program_prompt(
        SHIPPED,
        "Do it.",
        ShownProgram(ONE, 0.5, "so so"),
        form=form,
        others=shown,
        advice=advice,
        instructions=instructions,
    )


@given(st.integers(0, 10**6), st.sampled_from(["edits", "whole"]), st.sampled_from(["tiny-small", "sim", "one-large"]))
def test_replies_can_be_read_and_make_another_program_that_compiles(seed: int, form: Form, model: str) -> None:
    text = read_program(ask(prompt(form, [OTHER]), seed, model), ONE, form)["program.py"]
    assert text != SOURCE
    assert outside_unchanged(SOURCE, text)
    assert syntax_error(text) is None


def test_equal_requests_get_equal_replies() -> None:
    assert ask(prompt(), 5) == ask(prompt(), 5)
    assert len({ask(prompt(), seed) for seed in range(20)}) > 10


def test_all_kinds_of_changes_are_made() -> None:
    said = Counter(
        kind
        for seed in range(300)
        for kind in ask(prompt(others=[OTHER]), seed).split("\n")[0].removeprefix("Changed: ").strip(".").split(", ")
    )
    assert set(said) == set(KINDS)


@pytest.mark.parametrize("place", ["advice", "instructions"])
def test_what_is_preferred_is_done_more_often(place: str) -> None:
    def share(hint: str) -> float:
        asked = prompt(**{place: hint})  # type: ignore[arg-type]
        return sum("operators" in ask(asked, seed).split("\n")[0] for seed in range(200)) / 200

    usual = share("As you like.")
    assert usual < 0.25
    assert share("Think.\n- prefer: operators, calls") > 1.5 * usual
    assert share("avoid: operators") < 0.7 * usual


def test_parts_of_other_programs_are_taken_over_with_what_they_need() -> None:
    other = SOURCE.replace("return sorted([x, 2 * x])[0]", "return helped(x)").replace(
        "def f(x", "def helped(x):\n    return abs(x)\n\n\ndef f(x"
    )
    replies = [
        read_program(ask(prompt("whole", [other], "prefer: crossover"), seed), ONE, "whole")["program.py"]
        for seed in range(60)
    ]
    taken = [text for text in replies if "return helped(x)" in text]
    assert taken
    assert all("def helped" in text for text in taken)


def test_a_different_program_is_changed_in_many_places_and_one_that_works_is_begun_with() -> None:
    shown = [ShownProgram({"program.py": "broken("}, None, "SyntaxError"), ShownProgram(ONE, 0.5)]
    before = set(SOURCE.split("\n"))
    replies = [ask(seed_prompt(SHIPPED, "Do it.", shown), seed) for seed in range(20)]
    after = [set(read_program(reply, ONE, "whole")["program.py"].split("\n")) for reply in replies]
    assert all(lines != before for lines in after)
    assert sum(len(lines - before) for lines in after) > 3 * len(after)


def test_other_languages_have_their_numbers_changed() -> None:
    script = Artifact(
        {"program.c": "// EVOLVE-BLOCK-START\nint a = 12;\n// EVOLVE-BLOCK-END\nint b = 3;\n"}, kind="program"
    )
    asked = program_prompt(SHIPPED, "Do it.", ShownProgram(script, 0.5), form="edits")
    text = read_program(ask(asked, 1), script, "edits")["program.c"]
    assert text != script["program.c"]
    assert text.endswith("int b = 3;\n")


@pytest.mark.parametrize("form", ["edits", "whole"])
def test_of_several_files_any_may_be_changed(form: Form) -> None:
    two = Artifact({"program.py": "import helper\nx = 1\n", "helper.py": "y = 2\n"}, kind="program")
    asked = program_prompt(SHIPPED, "Do it.", ShownProgram(two, 0.5), form=form)
    changed = [read_program(ask(asked, seed, "sim-small"), two, form) for seed in range(20)]
    for name in two:
        assert any(each[name] != two[name] for each in changed)


@pytest.mark.parametrize("form", ["edits", "whole"])
def test_some_replies_are_broken_most_those_of_small_models(form: Form) -> None:
    asked = 300 if LONG else 100

    def broken(model: str, preset: str) -> int:
        count = 0
        for seed in range(asked):
            try:
                read_program(ask(prompt(form), seed, model, CodeWorld(PRESETS[preset])), ONE, form)
            except UnparsableReplyError:
                count += 1
        return count

    assert broken("small", "easy") == 0
    assert 0 < broken("large", "normal") < broken("small", "normal") < asked / 5 < broken("small", "misjudged")


def test_advice_names_what_sets_the_better_programs_apart() -> None:
    better = SOURCE.replace("1.5 * y", "2.5 * y")
    shown = "\n\n".join(
        f"### Program {number}\nScore: {score}\n{fence(text, 'program.py')}"
        for number, (text, score) in enumerate([(SOURCE, 0.1), (better, 0.4), (OTHER, "none, it failed")])
    )
    advice = ask(f"{ADVICE_TITLE}\n\n## Other programs\n{shown}\n\n## What to write\nBe short.")
    assert hinted(advice, "prefer") == {"constants"}
    assert "other constants" in advice
    assert read_prompt(prompt(advice=advice)).leanings == {"constants": 1.0}


def test_instructions_are_kept_with_another_preference() -> None:
    now = fence("Be bold.\n- prefer: loops")
    asked = f"{META_TITLE}\n\n## The instructions\n{now}\n\n## What to write\nInstructions."
    replies = {read_instruction(ask(asked, seed)) for seed in range(40)}
    assert all(text.startswith("Be bold.\nprefer: ") for text in replies)
    assert len(replies) > 3


def test_a_request_without_a_program_gets_an_answer() -> None:
    assert ask("Hello?") == "There is no program to work on."


def build(source: str) -> Counter[str]:
    """How often each type of node occurs, apart from signs."""
    nodes = ast.walk(ast.parse(source))
    return Counter(type(node).__name__ for node in nodes if not isinstance(node, ast.UnaryOp | ast.USub))


def test_changes_of_numbers_are_changes_of_numbers_only() -> None:
    tree = ast.dump(ast.parse(SOURCE))
    for seed in range(40):
        reply = ask(prompt("whole", advice="prefer: constants"), seed)
        if reply.startswith("Changed: constants.\n"):
            text = read_program(reply, ONE, "whole")["program.py"]
            assert build(text) == build(SOURCE)
            assert ast.dump(ast.parse(text)) != tree


TRIED = [
    PROBLEMS.make(name, {}, "task")
    for name in (
        "circle_packing_32",
        "hexagon_packing_11",
        "flow_shop",
        "tsp_construction",
        "model_placement",
        "cloudcast",
    )
]


@given(st.integers(0, 10**6), st.sampled_from(TRIED), st.booleans())
def test_no_change_takes_a_name_its_value(seed: int, problem: Problem, different: bool) -> None:
    program = problem.seed()
    shown = ShownProgram(program, 1.0)
    asked = (
        seed_prompt(SHIPPED, problem.statement, [shown])
        if different
        else program_prompt(SHIPPED, problem.statement, shown, form="whole", others=[shown])
    )
    for name, text in read_program(ask(asked, seed), program, "whole").items():
        assert unbound(ast.parse(text)) <= unbound(ast.parse(program[name]))


LISTS = """\
COUNT = 5
SHAPE = (3, 2)


def numbers(n: int) -> list[float]:
    found = []
    unread = []
    for k in range(n):
        unread.append(k)
        found.append(values(k)[0] + k / n)
    k = 0
    while k < n:
        k += 1
    return sorted(found)[:n] + [0.0] * n


def values(k: int) -> list[float]:
    table = [0.5, 1.5, 2.5]
    return [table[k % 3], table[(k + 1) % 3]]
"""


@pytest.mark.parametrize("different", [False, True])
def test_what_is_changed_still_runs_and_gives_as_much(different: bool) -> None:
    """Counts, indices and what ends a loop are left alone."""
    program = Artifact({"program.py": LISTS}, kind="program")
    shown = ShownProgram(program, 1.0)
    mutated = program_prompt(SHIPPED, "Do it.", shown, form="whole", advice="prefer: statements, loops")
    asked = seed_prompt(SHIPPED, "Do it.", [shown]) if different else mutated
    texts = [read_program(ask(asked, seed), program, "whole")["program.py"] for seed in range(150)]
    for text in texts:
        space: dict[str, Callable[[int], list[float]]] = {}
        exec(text, space)
        with suppress(ArithmeticError):  # other numbers may overflow or divide by 0
            assert len(space["numbers"](4)) == 8, text
    assert any("unread.append(k)" not in text for text in texts)
