"""Slots: what a diagnosis is asked, what is read of it, and the requests that are made by it."""

from __future__ import annotations

import json

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.programs.parts import REST, SLOTS, Slot
from flowevolve.prompts.programs import ADVICE_HEADING, CHANGE_TITLES, OTHERS_HEADING, ShownProgram
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.prompts.slots import (
    DIAGNOSE_TITLE,
    IMPROVE_HEADING,
    KEEP_HEADING,
    PARTS_HEADING,
    TAKE_HEADING,
    crossover_prompt,
    diagnose_prompt,
    mutation_prompt,
    read_slots,
)
from flowevolve.sim.worlds.code.prompt import read_prompt, sections

PROGRAM = ShownProgram(
    {"program.py": "import math\ndef parse():\n    return 1\ndef solve():\n    return 2\n"}, 0.5, "slow"
)
OTHER = ShownProgram({"program.py": "def solve():\n    return 3\n"}, 0.9)
PARTS = ("parse", "solve", REST)


def reply(*slots: object) -> str:
    return f"I see.\n```json\n{json.dumps({'slots': slots})}\n```"


def test_a_diagnosis_is_asked_with_parts_outcome_and_the_best_program() -> None:
    prompt = diagnose_prompt(SHIPPED, "Be quick.", PROGRAM, PARTS, OTHER)
    assert prompt.startswith(f"{DIAGNOSE_TITLE}\n")
    parts = sections(prompt)
    assert parts[PARTS_HEADING].strip().split("\n") == ["- parse", "- solve", f"- {REST}"]
    assert "Score: 0.9" in parts[OTHERS_HEADING]
    assert all(name in prompt for name in SLOTS)
    assert "slow" in prompt
    assert OTHERS_HEADING not in sections(diagnose_prompt(SHIPPED, "Be quick.", PROGRAM, PARTS))


def test_slots_are_read() -> None:
    found = read_slots(
        reply(
            {"slot": "io_parsing", "parts": ["parse", REST], "status": "keep", "why": " one pass "},
            {"slot": "Core_Logic", "parts": ["solve", "gone"], "status": "IMPROVE"},
            {"slot": "misc", "parts": [], "status": "keep"},
        ),
        PARTS,
    )
    assert found == (Slot("io_parsing", ("parse", REST), True, "one pass"), Slot("core_logic", ("solve",), False))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("It is fine.", "no JSON"),
        ("[]", "an object was asked for"),
        ('{"slots": "none"}', "'slots'"),
        (reply({"slot": "main", "parts": ["solve"], "status": "keep"}), "'slot' is 'main'"),
        (reply({"slot": "misc", "parts": ["solve"], "status": "so so"}), "'status' is 'so_so'"),
        (reply({"slot": "misc", "parts": ["gone"], "status": "keep"}), "its parts are parse, solve"),
    ],
)
def test_diagnoses_that_can_not_be_read_are_refused(text: str, says: str) -> None:
    with pytest.raises(UnparsableReplyError, match=says):
        read_slots(text, PARTS)


def test_a_mutation_names_what_to_keep_and_what_to_improve() -> None:
    prompt = mutation_prompt(
        SHIPPED, "T", PROGRAM, ["parse"], ["solve"], ["core_logic: a loop"], form="edits", advice="sort"
    )
    parts = sections(prompt)
    assert prompt.startswith(f"{CHANGE_TITLES['parts_mutation']}\n")
    assert parts[KEEP_HEADING].startswith("- parse\n\n")
    assert parts[IMPROVE_HEADING].startswith("- solve\n")
    assert "core_logic: a loop" in parts[IMPROVE_HEADING]
    assert "sort" in parts[ADVICE_HEADING]
    assert read_prompt(prompt).form == "edits"
    bare = sections(mutation_prompt(SHIPPED, "T", PROGRAM, [], PARTS, [], form="whole"))
    assert KEEP_HEADING not in bare
    assert bare[IMPROVE_HEADING].strip().split("\n")[-1] == f"- {REST}"


def test_a_crossover_says_what_to_take_from_which() -> None:
    prompt = crossover_prompt(SHIPPED, "T", PROGRAM, OTHER, ["parse"], ["solve"], [], form="whole")
    asked = read_prompt(prompt)
    assert [each.program["program.py"] for each in asked.others] == [OTHER.program["program.py"].rstrip("\n")]
    lines = sections(prompt)[TAKE_HEADING].split("\n")
    assert lines[:2] == ["- parse: from the program", "- solve: from the other"]
    assert TAKE_HEADING not in sections(crossover_prompt(SHIPPED, "T", PROGRAM, OTHER, [], [], [], form="whole"))
