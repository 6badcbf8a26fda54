"""gepa's own prompt, from the installed package."""

from __future__ import annotations

import sys

import pytest
from gepa.strategies.instruction_proposal import InstructionProposalSignature

from flowevolve._util.errors import InputError
from flowevolve.algorithms.gepa import GEPA, GEPAConfig
from flowevolve.core.artifact import Artifact
from flowevolve.prompts.gepas import gepas_reflection
from flowevolve.prompts.reflection import ReflectionExample
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.tasks.house_style import house_style_task

ARTIFACT = Artifact({"tone": "be kind", "other": "be brief"})
EXAMPLES = [ReflectionExample({"request": "hi", "context": "a mail"}, "hello", "too short", 0.5, "hello!")]


def test_it_is_what_gepa_sends() -> None:
    prompt = gepas_reflection()(SHIPPED, "tone", ARTIFACT, EXAMPLES)
    record = {
        "Inputs": {"request": "hi", "context": "a mail"},
        "Generated Outputs": "hello",
        "Feedback": "too short",
    }
    assert prompt == InstructionProposalSignature.prompt_renderer(
        {"current_instruction_doc": "be kind", "dataset_with_feedback": [record]}
    )
    assert "# Example 1\n## Inputs\n### request\nhi\n\n### context\na mail" in prompt
    assert prompt.template.startswith("gepa@")


def test_it_is_shortened_where_it_would_be_too_long() -> None:
    long = [ReflectionExample({"request": "x" * 50_000}, "hello", "too short")]
    prompt = gepas_reflection()(SHIPPED.replaced({}, "", 1_000, 100), "tone", ARTIFACT, long)
    assert len(prompt) <= 4_000
    assert "characters left out" in prompt


def test_without_gepa_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gepa.strategies.instruction_proposal", None)
    with pytest.raises(InputError, match=r"algorithm\.reflection_prompt: .*pip install 'flowevolve\[gepa\]'"):
        GEPA(house_style_task(), GEPAConfig(reflection_prompt="gepa"))
