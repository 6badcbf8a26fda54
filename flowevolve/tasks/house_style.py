"""A small instruction-following data set with a hidden house style.

Each row is an ordinary writing request whose answer is checked against a few rules of one house style, which the
request never states. One answer can meet all rules, so a system prompt that states them all is right for every row:
evolution has to find out the style. The rules are IFEval constraints (arXiv 2311.07911), and rows have IFEval's fields
plus ``split``.

``python -m bench._lib.house_style`` writes the shipped file anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.task import Dataset, Example
from flowevolve.tasks.instructions import InstructionFollowing
from flowevolve.tasks.verifiers import Constraint

DATA_FILE = Path(__file__).parent / "data" / "house_style.jsonl"
SEED_PROMPT = "You are a helpful assistant that writes for our company."

HOUSE_STYLE: tuple[Constraint, ...] = (
    Constraint("punctuation:no_comma"),
    Constraint("detectable_format:title"),
    Constraint("detectable_content:postscript", {"postscript_marker": "P.S."}),
    Constraint("startend:end_checker", {"end_phrase": "Thank you for your time."}),
    Constraint("detectable_content:number_placeholders", {"num_placeholders": 2}),
    Constraint("detectable_format:number_bullet_lists", {"num_bullets": 3}),
    Constraint("detectable_format:number_highlighted_sections", {"num_highlights": 2}),
    Constraint("keywords:existence", {"keywords": ["customer"]}),
    Constraint("keywords:forbidden_words", {"forbidden_words": ["very", "really"]}),
    Constraint("keywords:frequency", {"keyword": "team", "frequency": 3, "relation": "at least"}),
    Constraint("length_constraints:number_words", {"num_words": 110, "relation": "at least"}),
    Constraint("startend:quotation"),
    Constraint("detectable_format:multiple_sections", {"section_spliter": "SECTION", "num_sections": 2}),
    Constraint("keywords:existence", {"keywords": ["deadline", "budget"]}),
    Constraint("keywords:forbidden_words", {"forbidden_words": ["please", "kindly"]}),
    Constraint("change_case:capital_word_frequency", {"capital_frequency": 4, "capital_relation": "at least"}),
    Constraint("length_constraints:number_paragraphs", {"num_paragraphs": 3}),
    Constraint("keywords:existence", {"keywords": ["safety"]}),
)
"""All rules of the style. One answer can meet them all, and the simulated world `rules` knows how to write it."""


def house_style_task(rows: Sequence[Mapping[str, JSON]] | None = None) -> InstructionFollowing:
    """The task over these rows, by default those of the shipped file.

    Raises:
        InputError: if a row does not have the form of the shipped ones.
    """
    given = rows if rows is not None else [json.loads(line) for line in DATA_FILE.read_text("utf-8").splitlines()]
    parts: dict[str, list[Example]] = {"train": [], "val": [], "test": []}
    for row in given:
        split = row.get("split")
        if split not in parts:
            raise InputError(f"row {row.get('key')}: 'split' is {split!r}, but has to be one of {', '.join(parts)}")
        parts[str(split)].append(Example(str(row["key"]), row))
    return InstructionFollowing(Dataset(**parts), name="house_style", seed_prompt=SEED_PROMPT)
