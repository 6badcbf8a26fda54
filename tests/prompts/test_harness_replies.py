"""The harnesses in replies that may have several: all that are meant, and no drafts or quotations."""

from __future__ import annotations

import pytest

from flowevolve.prompts.reading.programs import python_programs

FIRST, SECOND = "class Memory:\n    shots = 1\n", "class Memory:\n    shots = 2\n"


@pytest.mark.parametrize(
    "above",
    [
        "",
        "**Harness 1: nearest examples**",
        "### Few-shot examples",
        "Harness 1 (the previous best was 3; this one keeps rare labels):",
        "It shows more examples than before. The output is checked:",
        "A harness like the current best, without its sample:",
        "The old one forgot rare labels. This one keeps them:",
        "**Naive Bayes picks the labels:**",
    ],
)
def test_words_about_examples_or_earlier_harnesses_drop_no_harness(above: str) -> None:
    reply = f"{above}\n```python\n{FIRST}```\n\n{above}\n```python\n{SECOND}```"
    assert python_programs(reply) == [FIRST, SECOND]


@pytest.mark.parametrize(
    "above",
    [
        "### Draft",
        "My first attempt:",
        "The old one was:",
        "Here is the current best harness:",
        "Original:",
        "This was rejected:",
        "Example usage:",
        "My first draft. It does not work yet:",
        "A rejected attempt; too slow:",
        "Draft (do not use). It is too slow.",
        "The baseline:",
        "Initial version:",
        "### Baseline for comparison",
        "Usage example:",
        "Pseudo-code:",
        "Parent program:",
        "Wrong:",
    ],
)
def test_what_is_called_a_draft_or_an_old_one_is_none_of_them(above: str) -> None:
    assert python_programs(f"{above}\n```python\n{FIRST}```\n\nMine:\n```python\n{SECOND}```") == [SECOND]
