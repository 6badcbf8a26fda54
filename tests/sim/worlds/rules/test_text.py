import random

import pytest

from bench._lib.house_style import shipped_rows
from flowevolve.sim.worlds.rules.text import Statement, misstate, read_instruction, read_statement, reword
from flowevolve.tasks.house_style import HOUSE_STYLE
from flowevolve.tasks.verifiers import Constraint

every_rule = pytest.mark.parametrize("rule", HOUSE_STYLE, ids=lambda rule: rule.describe())


@every_rule
def test_a_rule_is_read_from_its_verifiers_sentence_and_from_other_words(rule: Constraint) -> None:
    for line in (rule.describe(), f"- {rule.describe()}", f"3. Always: {rule.describe()}", reword(rule)):
        assert read_statement(line) == Statement(rule)


@every_rule
def test_a_misstated_rule_says_something_else(rule: Constraint) -> None:
    for seed in range(10):
        read = read_statement(misstate(rule, random.Random(seed)))
        assert read is not None
        assert read != Statement(rule)
        assert read.rule.id == rule.id


def test_other_verifiable_parameters_are_read() -> None:
    line = Constraint("length_constraints:number_words", {"num_words": 77, "relation": "at least"}).describe()
    read = read_statement(line)
    assert read is not None
    assert read.rule.kwargs["num_words"] == 77


@pytest.mark.parametrize(
    ("line", "rule_id", "denied"),
    [
        ("Use commas freely.", "punctuation:no_comma", True),
        ("Don't use commas.", "punctuation:no_comma", False),
        ("No title, please.", "detectable_format:title", True),
        ("Do not put quotation marks around it.", "startend:quotation", True),
    ],
)
def test_denials_are_told_from_statements(line: str, rule_id: str, denied: bool) -> None:
    assert read_statement(line) == Statement(Constraint(rule_id), denied)


def test_idle_talk_and_upper_bounds_state_no_rule() -> None:
    assert read_statement("You are a helpful assistant that writes for our company.") is None
    assert read_statement("For the request about the fire drill mention the exact date.") is None
    assert read_statement("Answer in fewer than 40 words.") is None
    assert read_statement("Write at least 1000000 words.") is None
    assert not any(read_statement(str(row["prompt"])) for row in shipped_rows())


def test_contradictions_share_a_slot_and_repetitions_count_once() -> None:
    bullets = [Constraint("detectable_format:number_bullet_lists", {"num_bullets": count}) for count in (3, 5)]
    lines = [
        bullets[0].describe(),
        HOUSE_STYLE[0].describe(),
        bullets[1].describe(),
        reword(bullets[0]),
        "",
        "Be kind.",
    ]
    reading = read_instruction("\n".join(lines))
    assert reading.by_subject == ((Statement(bullets[1]), Statement(bullets[0])), (Statement(HOUSE_STYLE[0]),))
    assert reading.lines == 5


def test_wanting_and_banning_a_word_contradict_each_other() -> None:
    wanted = Constraint("keywords:existence", {"keywords": ["safety"]})
    banned = Constraint("keywords:forbidden_words", {"forbidden_words": ["safety"]})
    assert len(read_instruction(f"{wanted.describe()}\n{banned.describe()}").by_subject) == 1
