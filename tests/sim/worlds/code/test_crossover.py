"""How the coder of the world `code` uses other programs: it takes their parts, and moves numbers as scores suggest."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.artifact import Artifact
from flowevolve.core.model import ChatRequest, Message
from flowevolve.prompts.programs import ShownProgram, program_prompt, read_program
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.code.world import CodeWorld
from flowevolve.sim.worlds.rules.params import PRESETS

EASY = CodeWorld(PRESETS["easy"])  # nothing broken


def program(size: float, shift: float = 0.5, rounds: int = 3, body: str = "SIZE * x") -> str:
    return (
        f"SIZE = {size}\nPAIRS = [(1.0, {shift}), (2.0, -1.0)]\nROUNDS = {rounds}\n\n\n"
        f"def value(x):\n    return {body} * PAIRS[0][1] * ROUNDS\n"
    )


def crossed(
    parent: ShownProgram, others: Sequence[ShownProgram] = (), ancestors: Sequence[ShownProgram] = (), seeds: int = 60
) -> list[dict[str, object]]:
    """The values of the names in programs after one crossover, and under ``value`` the text of the function."""
    found: list[dict[str, object]] = []
    seed = Artifact(dict(parent.program), kind="program")
    asked = program_prompt(
        SHIPPED, "Do it.", parent, form="whole", others=others, ancestors=ancestors, advice="prefer: crossover"
    )
    for number in range(seeds):
        reply = EASY.reply(ChatRequest("sim-small", (Message("user", asked),)), random.Random(number))
        if reply.startswith("Changed: crossover.\n"):
            found.append(read(read_program(reply, seed, "whole")["program.py"]))
    assert found
    return found


def read(text: str) -> dict[str, object]:
    body = ast.parse(text).body
    names = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return names | {"value": ast.unparse(body[-1])}


def shown(text: str, score: float | None) -> ShownProgram:
    return ShownProgram({"program.py": text}, score)


@pytest.mark.parametrize(
    ("scores", "low", "high"),
    [((0.5, 0.7), 1.5, 3.0), ((0.7, 0.5), 0.0, 1.5), ((0.5, None), 1.0, 2.0), ((0.5, 0.5), 1.0, 2.0)],
)
def test_numbers_go_to_the_side_of_the_better_program(
    scores: tuple[float, float | None], low: float, high: float
) -> None:
    ours, theirs = scores
    sizes = [each["SIZE"] for each in crossed(shown(program(1.0), ours), [shown(program(2.0), theirs)])]
    assert all(isinstance(size, float) and low <= size <= high for size in sizes)
    assert len(set(sizes)) > 3


def test_one_name_or_all_that_differ_move_along_the_same_line() -> None:
    parent, other = shown(program(1.0), 0.5), shown(program(2.0, shift=-0.5, rounds=13), 0.7)
    found = crossed(parent, [other], seeds=200)
    both = [each for each in found if each["SIZE"] != 1.0 and each["ROUNDS"] != 3]
    assert both
    assert any(each["SIZE"] != 1.0 and each["ROUNDS"] == 3 for each in found)
    for each in both:
        share = each["SIZE"] - 1.0  # type: ignore[operator]
        assert each["PAIRS"] == [(1.0, pytest.approx(0.5 - share)), (2.0, -1.0)]
        assert each["ROUNDS"] == round(3 + 10 * share)


@given(st.integers(1, 9), st.integers(1, 9))
def test_what_says_how_many_stays_above_0(ours: int, theirs: int) -> None:
    if ours != theirs:
        parent, other = shown(program(1.0, rounds=ours), 0.7), shown(program(2.0, rounds=theirs), 0.5)
        for each in crossed(parent, [other], seeds=20):
            assert isinstance(each["ROUNDS"], int)
            assert each["ROUNDS"] >= 1


def test_functions_are_taken_from_others_and_not_from_the_versions_before() -> None:
    parent, other = shown(program(1.0), 0.5), shown(program(2.0, body="x / SIZE"), 0.7)
    assert any("x / SIZE" in str(each["value"]) for each in crossed(parent, [other]))
    after = crossed(parent, ancestors=[other])
    assert not any("x / SIZE" in str(each["value"]) for each in after)
    assert all(each["SIZE"] != 1.0 for each in after)
