import random
from statistics import fmean

import pytest
from hypothesis import given, strategies as st

from flowevolve.sim.worlds.rules.text import Statement
from flowevolve.sim.worlds.rules.writer import write_answer
from flowevolve.tasks.house_style import HOUSE_STYLE
from flowevolve.tasks.verifiers import Constraint

TOPIC = "the fire drill on Thursday"

subsets = st.sets(st.sampled_from(range(len(HOUSE_STYLE)))).map(lambda chosen: [HOUSE_STYLE[i] for i in sorted(chosen)])
seeds = st.integers(0, 2**32)


def written(rules: list[Constraint], seed: int) -> str:
    return write_answer(TOPIC, [Statement(rule) for rule in rules], random.Random(seed))


@pytest.mark.parametrize("rule", HOUSE_STYLE, ids=lambda rule: rule.describe())
def test_each_rule_is_kept_when_it_is_the_only_one(rule: Constraint) -> None:
    assert all(rule.met_by(written([rule], seed)) for seed in range(60))


@given(seeds)
def test_all_rules_are_kept_at_once(seed: int) -> None:
    text = written(list(HOUSE_STYLE), seed)
    assert [rule for rule in HOUSE_STYLE if not rule.met_by(text)] == []


@given(subsets, seeds)
def test_any_subset_is_kept_in_any_order(rules: list[Constraint], seed: int) -> None:
    text = written(random.Random(seed).sample(rules, len(rules)), seed)
    assert [rule for rule in rules if not rule.met_by(text)] == []


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.integers(60, 180), seeds)
def test_other_parameters_are_kept_too(bullets: int, paragraphs: int, placeholders: int, words: int, seed: int) -> None:
    rules = [
        Constraint("detectable_format:number_bullet_lists", {"num_bullets": bullets}),
        Constraint("length_constraints:number_paragraphs", {"num_paragraphs": paragraphs}),
        Constraint("detectable_content:number_placeholders", {"num_placeholders": placeholders}),
        Constraint("length_constraints:number_words", {"num_words": words, "relation": "at least"}),
        Constraint("keywords:forbidden_words", {"forbidden_words": ["plan", "the"]}),
    ]
    text = written(rules, seed)
    assert [rule for rule in rules if not rule.met_by(text)] == []


def test_unstated_rules_are_met_by_luck_only() -> None:
    luck = [fmean(rule.met_by(written([], seed)) for seed in range(200)) for rule in HOUSE_STYLE]
    assert max(luck) < 0.6
    assert 0.1 < fmean(luck) < 0.3


def test_denied_rules_are_broken_even_where_habit_would_keep_them() -> None:
    denied = Statement(Constraint("punctuation:no_comma"), denied=True)
    assert all("," in write_answer(TOPIC, [denied], random.Random(seed)) for seed in range(60))


def test_answers_are_on_the_topic_and_of_ordinary_length() -> None:
    for rules in ([], list(HOUSE_STYLE)):
        texts = [written(rules, seed) for seed in range(100)]
        assert all(TOPIC in text for text in texts)
        assert all(50 <= len(text.split()) <= 190 for text in texts)
