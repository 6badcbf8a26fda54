"""Every template, as it is filled, and what the readers and the simulated worlds rest on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

from flowevolve.prompts import abstracts, instructions, memory, novelty, plans, programs, slots
from flowevolve.prompts.reading.descriptions import Description, read_description, read_printed
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.code.world import KNOWN_TITLES
from tests.prompts.samples import SAMPLES
from tests.prompts.snapshots import FOLDER, path_of

MOST_WORDS = 600
"""Of a prompt's own words, apart from what it shows."""
TITLES = {
    **{f"program_{change}": title for change, title in programs.CHANGE_TITLES.items()},
    **{f"instruction_{rewriting}": title for rewriting, title in instructions.REWRITING_TITLES.items()},
    "program_seed": programs.SEED_TITLE,
    "program_shift": programs.SHIFT_TITLE,
    "advice": programs.ADVICE_TITLE,
    "novelty": novelty.NOVELTY_TITLE,
    "meta": programs.META_TITLE,
    "plan": plans.PLAN_TITLE,
    "implement": plans.IMPLEMENT_TITLE,
    "diagnose": slots.DIAGNOSE_TITLE,
    "learn_from_change": memory.REFLECT_TITLE,
    "compress_memory": memory.COMPRESS_TITLE,
    "search_memory": memory.QUERIES_TITLE,
    "distill": memory.DISTILL_TITLE,
    "summarize": abstracts.SUMMARIZE_TITLE,
    "navigate": abstracts.NAVIGATE_TITLE,
    "exemplars": abstracts.EXEMPLARS_TITLE,
}
ABOUT_PROGRAMS = sorted(name for name in TITLES if not name.startswith("instruction_"))


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_written_from_a_template_is_its_snapshot(name: str) -> None:
    assert f"{SAMPLES[name]()}\n" == path_of(name).read_text(encoding="utf-8"), (
        "the prompt has changed; if that is meant, run python -m tests.prompts.snapshots"
    )


def test_every_template_has_a_sample_and_every_snapshot_a_template() -> None:
    assert set(SHIPPED.names()) == SAMPLES.keys()
    assert {path.stem for path in FOLDER.glob("*.txt")} == SAMPLES.keys()


@pytest.mark.parametrize("name", sorted(TITLES))
def test_a_prompt_begins_with_its_title_says_what_is_data_and_ends_with_what_to_write(name: str) -> None:
    prompt = SAMPLES[name]()
    assert prompt.startswith(f"{TITLES[name]}\n")
    assert SHIPPED.text("data") in prompt
    assert re.findall("^## .*$", SHIPPED[name].text, re.MULTILINE)[-1] == programs.REPLY_HEADING
    assert "\n\n\n" not in prompt.partition(programs.REPLY_HEADING)[0]


def test_every_title_is_another_and_the_world_knows_it() -> None:
    assert len(set(TITLES.values())) == len(TITLES)
    assert {TITLES[name] for name in ABOUT_PROGRAMS} == KNOWN_TITLES


def test_every_heading_stands_in_a_template() -> None:
    lines = {line for name in SHIPPED.names() for line in SHIPPED[name].text.splitlines()}
    for module in (abstracts, instructions, memory, plans, programs, slots):
        headings = [value for name, value in vars(module).items() if name.endswith("_HEADING")]
        assert set(headings) <= lines
    assert set(abstracts.KIND_HEADINGS.values()) <= lines


def test_the_examples_of_json_in_prompts_can_be_read() -> None:
    read: Mapping[str, Callable[[str], object]] = {
        "plan": lambda reply: plans.read_plans(reply, 2),
        "diagnose": lambda reply: slots.read_slots(reply, ["read_rows", "closest", "<rest>"]),
        "learn_from_change": memory.read_insight,
        "compress_memory": memory.read_digest,
        "search_memory": lambda reply: memory.read_queries(reply, 2),
        "distill": memory.read_advice,
        "summarize": abstracts.read_summary,
        "navigate": abstracts.read_guidance,
        "exemplars": lambda reply: abstracts.read_examples(reply, ["c17"], 1),
    }
    for name, reader in read.items():
        assert reader(SHIPPED[name].text.rpartition("\n\n")[2])


def test_the_examples_of_words_in_prompts_can_be_read() -> None:
    assert novelty.read_novelty(SHIPPED["novelty"].text.rpartition("\n\n")[2]) == novelty.NEW


@pytest.mark.parametrize("form", ["edits", "whole", "whole_files"])
def test_the_example_of_a_program_has_a_name_and_an_idea(form: str) -> None:
    said, _ = read_description(SHIPPED.text(f"form_{form}", named=SHIPPED.text("form_named")))
    assert said.name in ("area as a product", "exact sum")
    assert said.idea.endswith(".")


def test_a_command_that_repeats_its_prompt_has_named_nothing() -> None:
    assert read_printed(SHIPPED.text("form_command", folder="program")) == Description()


@pytest.mark.parametrize("name", sorted(TITLES))
def test_a_prompt_is_short_enough_for_a_small_model(name: str) -> None:
    fields = SHIPPED[name].fields & {"data", "rules", "form"}
    filled = {"rules": "program_rules", "form": "form_edits", "data": "data"}
    words = sum(len(SHIPPED[part].text.split()) for part in [name, *(filled[field] for field in fields)])
    assert words <= MOST_WORDS
