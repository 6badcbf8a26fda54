import random
from dataclasses import replace

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reflection import (
    ReflectionExample,
    RepairVerdict,
    judge_prompt,
    parse_verdict,
    reflection_prompt,
)
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.rules.editor import judge, reflect, topic_of
from flowevolve.sim.worlds.rules.params import RulesParams
from flowevolve.sim.worlds.rules.text import Statement, read_statement
from flowevolve.tasks.house_style import HOUSE_STYLE, SEED_PROMPT
from flowevolve.tasks.verifiers import Constraint

FAULTLESS = RulesParams(
    insight=1, conflict=0, mend=1, noise=0, duplicate=0, forget=0, judge_error=0, unparsable=0, max_edits=2
)
COMMA, TITLE, POSTSCRIPT, ENDING, PLACEHOLDERS, BULLETS, *_ = HOUSE_STYLE
NOISE = "- For the request about the book club mention the exact date."


def instruction(*rules: Constraint | str) -> str:
    return "\n".join((SEED_PROMPT, *(rule if isinstance(rule, str) else f"- {rule.describe()}" for rule in rules)))


def reflected(text: str, unmet: list[Constraint], params: RulesParams, seed: int = 0) -> list[str]:
    feedback = "\n".join((f"Met: {HOUSE_STYLE[-1].describe()}", *(f"Not met: {rule.describe()}" for rule in unmet)))
    example = ReflectionExample({"request": "Write a memo about the book club."}, "```\nHello\n```", feedback)
    prompt = reflection_prompt(SHIPPED, "system_prompt", text, [example])
    return read_instruction(reflect(prompt, params, random.Random(seed))).splitlines()


def judged(parent: str, stale: str, head: str, params: RulesParams = FAULTLESS, seed: int = 0) -> RepairVerdict:
    names = ("system_prompt",)
    texts = [{"system_prompt": text} for text in (parent, stale, head)]
    prompt = judge_prompt(SHIPPED, texts[0], texts[1], [texts[2]], texts[2])
    return parse_verdict(judge(prompt, params, random.Random(seed)), names)


def test_topic_is_found_in_a_request_and_kept_plain() -> None:
    assert topic_of("Draft a note about the *book* club.") == "the"
    assert topic_of("Draft a note about our stand at the trade fair. Be brief.") == "our stand at the trade fair"
    assert topic_of("Hello!") == "this matter"


def test_reflection_adds_unmet_rules_and_keeps_the_rest() -> None:
    lines = reflected(instruction(COMMA), [TITLE, ENDING], FAULTLESS)
    assert lines[:2] == instruction(COMMA).splitlines()
    assert sorted(lines[2:]) == sorted([f"- {TITLE.describe()}", f"- {ENDING.describe()}"])


def test_reflection_may_word_a_rule_otherwise_than_the_feedback_does() -> None:
    quoted = reflected(SEED_PROMPT, [TITLE], FAULTLESS)[-1]
    worded = reflected(SEED_PROMPT, [TITLE], replace(FAULTLESS, paraphrase=1))[-1]
    assert worded != quoted
    assert read_statement(worded) == read_statement(quoted)


def test_reflection_may_reword_the_whole_instruction() -> None:
    before = instruction(*HOUSE_STYLE[:8], NOISE)
    after = reflected(before, [], replace(FAULTLESS, rewrite=1))
    assert after != before.splitlines()
    assert [after[0], after[-1]] == [SEED_PROMPT, NOISE]
    assert [read_statement(line) for line in after] == [read_statement(line) for line in before.splitlines()]


def test_reflection_takes_up_no_more_than_it_may() -> None:
    lines = reflected(SEED_PROMPT, [COMMA, TITLE, ENDING, BULLETS], FAULTLESS)
    assert len(lines) == 1 + FAULTLESS.max_edits


def test_reflection_does_not_add_what_is_stated_and_was_only_disobeyed() -> None:
    assert reflected(instruction(COMMA), [COMMA], FAULTLESS) == instruction(COMMA).splitlines()


def test_reflection_replaces_a_contradicting_line() -> None:
    wrong = Constraint(BULLETS.id, {"num_bullets": 5})
    assert reflected(instruction(wrong, COMMA), [BULLETS], FAULTLESS) == instruction(COMMA, BULLETS).splitlines()
    both = reflected(instruction(wrong, COMMA), [BULLETS], replace(FAULTLESS, mend=0))
    assert both == instruction(wrong, COMMA, BULLETS).splitlines()


def test_insight_decides_how_much_is_noticed() -> None:
    assert reflected(SEED_PROMPT, [COMMA, TITLE], replace(FAULTLESS, insight=0)) == [SEED_PROMPT]


def test_faults_show_when_asked_for() -> None:
    (_, wrong) = reflected(SEED_PROMPT, [BULLETS], replace(FAULTLESS, conflict=1))
    assert read_statement(wrong) != Statement(BULLETS)
    (*_, noise) = reflected(SEED_PROMPT, [], replace(FAULTLESS, noise=1))
    assert noise.startswith("- For the request about the book club ")
    (*_, again) = reflected(instruction(COMMA), [], replace(FAULTLESS, duplicate=1))
    assert again != f"- {COMMA.describe()}"
    assert read_statement(again) == Statement(COMMA)


def test_forgetting_spares_short_instructions_and_the_first_line() -> None:
    params = replace(FAULTLESS, forget=1, memory=3)
    assert len(reflected(instruction(COMMA, TITLE), [], params)) == 3
    assert reflected(instruction(COMMA, TITLE, ENDING), [], params) == [SEED_PROMPT]


def test_replies_without_form_are_not_parsable() -> None:
    with pytest.raises(UnparsableReplyError):
        reflected(SEED_PROMPT, [COMMA], replace(FAULTLESS, unparsable=1))
    with pytest.raises(UnparsableReplyError):
        judged(SEED_PROMPT, instruction(COMMA), SEED_PROMPT, replace(FAULTLESS, unparsable=1))


def test_new_rule_is_orthogonal_and_merged_without_noise() -> None:
    found = judged(instruction(COMMA), instruction(COMMA, NOISE, TITLE), instruction(COMMA, ENDING))
    assert found.verdict == "orthogonal"
    assert found.patch == {"system_prompt": instruction(COMMA, ENDING, TITLE)}
    assert found.reason


@pytest.mark.parametrize("stale", [instruction(NOISE), instruction(COMMA), SEED_PROMPT])
def test_edit_without_anything_new_is_subsumed(stale: str) -> None:
    assert judged(SEED_PROMPT, stale, instruction(COMMA)).verdict == "subsumed"


def test_edit_against_an_accepted_rule_is_conflicting() -> None:
    wrong = Constraint(BULLETS.id, {"num_bullets": 5})
    assert judged(SEED_PROMPT, instruction(wrong), instruction(BULLETS)).verdict == "conflicting"


def test_correction_of_a_line_nobody_else_touched_replaces_it() -> None:
    wrong = Constraint(BULLETS.id, {"num_bullets": 5})
    found = judged(instruction(wrong), instruction(BULLETS), instruction(wrong, COMMA))
    assert found.patch == {"system_prompt": instruction(COMMA, BULLETS)}


def test_judge_errs_as_often_as_its_parameter_says() -> None:
    params = replace(FAULTLESS, judge_error=0.3)
    verdicts = [judged(SEED_PROMPT, instruction(COMMA), SEED_PROMPT, params, seed).verdict for seed in range(400)]
    assert 0.2 < sum(verdict != "orthogonal" for verdict in verdicts) / 400 < 0.4


def test_erring_judge_lets_noise_through() -> None:
    params = replace(FAULTLESS, judge_error=1)
    found = [judged(SEED_PROMPT, instruction(NOISE), instruction(COMMA), params, seed) for seed in range(20)]
    patches = [verdict.patch for verdict in found if verdict.verdict == "orthogonal"]
    assert patches
    assert all(patch == {"system_prompt": instruction(COMMA, NOISE)} for patch in patches)
