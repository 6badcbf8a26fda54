"""Plans: what is asked for, and what is read of a reply."""

from __future__ import annotations

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.plans import IMPLEMENT_TITLE, PLAN_TITLE, implement_prompt, plan_prompt, read_plans
from flowevolve.prompts.programs import ADVICE_HEADING, HOW_HEADING, TASK_HEADING
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.code.prompt import read_prompt, sections

SEED = {"program.py": "def solve():\n    return 1\n"}


def test_a_prompt_for_plans_has_the_task_the_form_and_the_count() -> None:
    prompt = plan_prompt(SHIPPED, "Be quick.", SEED, 4)
    assert prompt.startswith(f"{PLAN_TITLE}\n")
    assert "Be quick." in sections(prompt)[TASK_HEADING]
    assert SEED["program.py"] in prompt
    assert "exactly 4 plans" in prompt


@pytest.mark.parametrize(
    ("reply", "plans"),
    [
        ('["sort first", "count"]', ("sort first", "count")),
        ('So:\n```json\n[" sort first ", "", "count", "count"]\n```\nGood luck.', ("sort first", "count")),
        ('{"plans": ["one", "two", "three", "four"]}', ("one", "two", "three")),
    ],
)
def test_replies_with_plans_are_read(reply: str, plans: tuple[str, ...]) -> None:
    assert read_plans(reply, 3) == plans


@pytest.mark.parametrize("reply", ["Sort first.", "[]", '[""]', '{"one": 1}', "[1, 2]"])
def test_replies_without_plans_are_refused(reply: str) -> None:
    with pytest.raises(UnparsableReplyError):
        read_plans(reply, 3)


def test_a_program_to_a_plan_is_asked_for_whole() -> None:
    prompt = implement_prompt(SHIPPED, "Be quick.", SEED, "sort first", advice="no loops")
    assert prompt.startswith(f"{IMPLEMENT_TITLE}\n")
    parts = sections(prompt)
    assert "sort first" in parts[HOW_HEADING]
    assert "no loops" in parts[ADVICE_HEADING]
    asked = read_prompt(prompt)
    assert asked.form == "whole"
    assert asked.parent is not None
    assert asked.parent.program == {"program.py": SEED["program.py"].rstrip("\n")}
    assert asked.parent.score is None
    assert ADVICE_HEADING not in sections(implement_prompt(SHIPPED, "Be quick.", SEED, ""))
