from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, strategies as st

from flowevolve.page.blame.origins import Origin, Origins, Part, Step
from tests.support.depth import LONG
from tests.support.planted import Planted, plant_programs, plant_prompts, plant_rewrites

ENOUGH = 0.95

Plant = Callable[[Random, int], Planted]


def origins(lineage: Origins, candidate: str) -> list[str]:
    return [sentence.origin for sentence in lineage.of(candidate, "prompt")]


def prompt(candidate: str, text: str, *sources: str, parts: tuple[Part, ...] = ()) -> Step:
    return Step(candidate, {"prompt": text}, sources, parts)


def only(sentences: tuple[Origin, ...]) -> Origin:
    (sentence,) = sentences
    return sentence


@pytest.mark.parametrize(
    ("plant", "lineages", "candidates"), [(plant_prompts, 8, 60), (plant_programs, 8, 60), (plant_rewrites, 3, 30)]
)
def test_at_least_95_percent_of_the_sentences_of_planted_lineages_are_followed_to_their_origin(
    plant: Plant, lineages: int, candidates: int
) -> None:
    right = sentences = calls_right = calls = 0
    for seed in range(5 * lineages if LONG else lineages):
        planted = plant(Random(seed), candidates)
        lineage = Origins(planted.steps)
        for name, truth in planted.truth.items():
            found = lineage.of(name, "prompt")
            assert len(found) == len(truth)
            for got, said in zip(found, truth, strict=True):
                sentences += 1
                right += got.origin == said.origin
                if said.call is not None and got.origin == said.origin:
                    calls += 1
                    calls_right += got.calls == (said.call,) and got.examples == (f"example-{said.call}",)
    assert right / sentences >= ENOUGH
    assert calls_right / calls >= ENOUGH


TEXTS = st.lists(
    st.sampled_from(["One thing. Another thing.", "- a b c", "x = 1", "\n", "Do it!", "1. Go", "日本。語"]), max_size=6
)
HISTORIES = st.lists(st.tuples(TEXTS, st.lists(st.integers(0, 20), max_size=4)), min_size=1, max_size=12)


@given(HISTORIES, st.booleans())
def test_every_sentence_has_one_origin_that_is_the_candidate_or_an_ancestor(
    history: list[tuple[list[str], list[int]]], by_line: bool
) -> None:
    steps, ancestors = list[Step](), dict[str, set[str]]()
    for number, (lines, sources) in enumerate(history):
        names = tuple(f"c{source % number}" for source in sources) if number else ()
        steps.append(Step(f"c{number}", {"prompt": "\n".join(lines)}, names, by_line=by_line))
        ancestors[f"c{number}"] = {f"c{number}"}.union(*(ancestors[name] for name in names))
    lineage = Origins(steps)
    for step in steps:
        text, end = step.texts["prompt"], 0
        for sentence in lineage.of(step.candidate, "prompt"):
            assert sentence.origin in ancestors[step.candidate]
            assert sentence.path[0] == sentence.origin
            assert sentence.path[-1] == step.candidate
            assert text[end : sentence.start].strip() == ""
            assert text[sentence.start : sentence.end].strip() != ""
            end = sentence.end
        assert text[end:].strip() == ""


def test_a_sentence_of_a_group_comes_from_the_edit_that_brought_it() -> None:
    lineage = Origins(
        [
            prompt("c0", "Answer in German."),
            prompt("c1", "Answer in German.\nQuote the invoice.", "c0"),
            prompt("c2", "Answer in German.\nNever apologise.", "c0"),
            prompt("c3", "Answer in German.\nName the deadline.", "c0"),
            prompt(
                "c4", "Answer in German.\nName the deadline.\nQuote the invoice.\nNever apologise.", "c3", "c1", "c2"
            ),
        ]
    )
    assert origins(lineage, "c4") == ["c0", "c3", "c1", "c2"]


def test_a_reworded_sentence_keeps_its_origin_and_says_so() -> None:
    lineage = Origins(
        [
            prompt("c0", "Be brief.\nQuote the number of the invoice in the first line."),
            prompt("c1", "Be brief.\nAlways quote the number of the invoice in the very first line.", "c0"),
            prompt("c2", "be brief!\n1. Always quote the number of the invoice in the very first line.", "c1"),
        ]
    )
    same, reworded = lineage.of("c2", "prompt")
    assert (same.origin, same.how, same.similarity) == ("c0", "seed", 1.0)
    assert (reworded.origin, reworded.how, reworded.path) == ("c0", "reworded", ("c0", "c1", "c2"))
    assert 0.5 < reworded.similarity < 1


def test_sentences_of_one_form_are_different_ones() -> None:
    lineage = Origins(
        [
            prompt("c0", "Use the word invoice.\nUse the word budget.\nUse the word team.\nUse the word customer."),
            prompt(
                "c1", "Use the word invoice.\nUse the word refund.\nUse the word team.\nUse the word customer.", "c0"
            ),
        ]
    )
    assert origins(lineage, "c1") == ["c0", "c1", "c0", "c0"]


def test_a_sentence_that_is_as_similar_to_one_as_to_another_is_new() -> None:
    before = "Check the date of the invoice twice.\nCheck the total of the letter twice."
    lineage = Origins([prompt("c0", before), prompt("c1", "Check the date of the letter twice.", "c0")])
    assert origins(lineage, "c1") == ["c1"]


def test_a_sentence_that_was_taken_out_and_written_again_comes_from_where_it_was_written_again() -> None:
    text = "Answer in German.\nNever apologise."
    lineage = Origins([prompt("c0", text), prompt("c1", "Answer in German.", "c0"), prompt("c2", text, "c1")])
    assert origins(lineage, "c2") == ["c0", "c2"]


def test_of_several_calls_of_a_step_the_one_that_wrote_a_sentence_is_named() -> None:
    parts = (
        Part((7,), "Never apologise.", ("a", "b")),
        Part((9,), "Quote the invoice.", ("c",)),
        Part((11,), "Never apologise.\nQuote the invoice."),
    )
    lineage = Origins([prompt("c0", "Hello."), prompt("c1", "Quote the invoice.\nNever apologise.", "c0", parts=parts)])
    assert [(each.calls, each.examples) for each in lineage.of("c1", "prompt")] == [((9,), ("c",)), ((7,), ("a", "b"))]


def test_a_changed_line_of_a_program_is_a_new_one_and_one_that_was_only_indented_is_not() -> None:
    before = "x = 1\ny = 2\n"
    after = "if True:\n    x = 1\n    y = 3\n"
    lineage = Origins(
        [Step("c0", {"prompt": before}, by_line=True), Step("c1", {"prompt": after}, ("c0",), by_line=True)]
    )
    assert origins(lineage, "c1") == ["c1", "c0", "c1"]


def test_components_are_followed_apart_and_one_that_no_source_has_is_new() -> None:
    lineage = Origins([Step("c0", {"a": "Same text."}), Step("c1", {"a": "Same text.", "b": "Same text."}, ("c0",))])
    assert only(lineage.of("c1", "a")).origin == "c0"
    assert only(lineage.of("c1", "b")).origin == "c1"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("A sentence that goes\non here. And ends.", ["A sentence that goes\non here.", "And ends."]),
        (
            "# Rules\n1. Do this, e.g. that.\n2. Stop.\n\n- (Or not.)",
            ["# Rules", "1. Do this, e.g. that.", "2. Stop.", "- (Or not.)"],
        ),
        ("She said “no.” Then 3.5 of them left.", ["She said “no.”", "Then 3.5 of them left."]),
        ("これは一。これは二。", ["これは一。", "これは二。"]),
        ("***\n\n", ["***"]),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    found = Origins([prompt("c0", text)]).of("c0", "prompt")
    assert [text[sentence.start : sentence.end] for sentence in found] == sentences


def test_a_source_has_to_come_before() -> None:
    with pytest.raises(ValueError, match="'c1': comes twice, or before its sources \\['c2'\\]"):
        Origins([prompt("c0", "a"), prompt("c1", "b", "c2")])
