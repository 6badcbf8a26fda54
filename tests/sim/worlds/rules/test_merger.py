"""How the world `rules` merges versions of an instruction."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reflection import merge_edits_prompt, merge_prompt
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.rules.merger import merge, merge_edits
from flowevolve.sim.worlds.rules.params import RulesParams
from flowevolve.sim.worlds.rules.text import read_statement
from flowevolve.tasks.house_style import HOUSE_STYLE

CAREFUL = RulesParams(unparsable=0.0)
RULES = [f"- {rule.describe()}" for rule in HOUSE_STYLE]
ORIGIN = "\n".join(("You write notes.", RULES[0]))


def merged(versions: list[str], params: RulesParams = CAREFUL, origin: str = ORIGIN) -> list[str]:
    return read_instruction(merge(merge_prompt(SHIPPED, "system", origin, versions), params, Random(0))).splitlines()


def test_what_any_version_added_is_kept_and_stated_once() -> None:
    versions = ["\n".join((ORIGIN, *each)) for each in ([RULES[1]], [RULES[2], RULES[1]], [RULES[3]])]
    lines = merged(versions)
    assert lines[:2] == ORIGIN.splitlines()
    assert sorted(lines[2:]) == sorted(RULES[1:4])


def test_what_fits_one_example_is_left_out_and_a_line_lost_once_stays() -> None:
    assert merged([ORIGIN, ORIGIN + "\n- For the request about lamps thank the people.", "You write notes."]) == (
        ORIGIN.splitlines()
    )


def test_a_rule_that_a_version_replaced_gives_way() -> None:
    origin = "You write notes.\n- Write at least 50 words."
    better = "You write notes.\n- Write at least 200 words."
    assert merged([origin, origin, better], origin=origin) == better.splitlines()


def test_of_too_many_versions_some_additions_are_overlooked() -> None:
    versions = ["\n".join((ORIGIN, rule)) for rule in RULES[1:] * 3]
    few, many = merged(versions[:8]), merged(versions)
    assert len(few) == 10
    assert len(many) < 2 + len(RULES[1:])


def test_a_reply_may_come_without_its_form() -> None:
    with pytest.raises(UnparsableReplyError):
        merged([ORIGIN, ORIGIN], replace(CAREFUL, unparsable=1.0))


NOISE = "- For the request about lamps thank the people."


def worked_in(head: str, edits: list[tuple[str, str]], params: RulesParams = CAREFUL) -> list[str]:
    return read_instruction(
        merge_edits(merge_edits_prompt(SHIPPED, "system", head, edits), params, Random(0))
    ).splitlines()


def test_edits_are_worked_into_a_head_that_they_were_not_made_from() -> None:
    head = "\n".join((ORIGIN, RULES[1]))
    lines = worked_in(head, [(ORIGIN, f"{ORIGIN}\n{RULES[2]}"), (ORIGIN, f"{ORIGIN}\n{RULES[1]}\n{RULES[3]}")])
    assert lines == [*head.splitlines(), RULES[2], RULES[3]]


def test_what_an_edit_replaced_is_replaced_in_the_head() -> None:
    old, new = "- Write at least 50 words.", "- Write at least 200 words."
    head = "\n".join((ORIGIN, old, RULES[1]))
    assert worked_in(head, [(f"{ORIGIN}\n{old}", f"{ORIGIN}\n{new}")]) == [*ORIGIN.splitlines(), RULES[1], new]


def test_a_lossy_merge_overlooks_some_additions() -> None:
    versions = ["\n".join((ORIGIN, rule)) for rule in RULES[1:9]]
    assert len(merged(versions)) == 10
    assert 2 < len(merged(versions, replace(CAREFUL, merge_loss=0.5))) < 10
    assert merged(versions, replace(CAREFUL, merge_loss=1.0)) == ORIGIN.splitlines()


def test_a_merge_that_garbles_states_rules_wrongly_and_keeps_their_subjects() -> None:
    right, wrong = RULES[2], merged([ORIGIN, "\n".join((ORIGIN, RULES[2]))], replace(CAREFUL, merge_garble=1.0))[-1]
    assert wrong != right
    stated, meant = read_statement(wrong), read_statement(right)
    assert stated is not None
    assert meant is not None
    assert stated.subject == meant.subject


def test_a_merge_may_keep_what_fits_one_example() -> None:
    versions = [ORIGIN, ORIGIN, "\n".join((ORIGIN, NOISE))]
    assert NOISE not in merged(versions)
    assert merged(versions, replace(CAREFUL, merge_noise=1.0)) == [*ORIGIN.splitlines(), NOISE]
