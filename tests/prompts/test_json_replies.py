"""JSON in replies: found in fences and in prose, and refused with what is missing."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.json_replies import objects, read_array, read_json, read_object, text_of, texts, word_of

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
OUTER = st.dictionaries(st.text(), PLAIN, min_size=1) | st.lists(PLAIN, min_size=1)
PROSE = st.text(st.characters(exclude_characters="[]{}`", exclude_categories=["Cs"]))


@given(OUTER, PROSE, PROSE)
def test_it_is_found_bare_with_prose_around_it(value: object, before: str, after: str) -> None:
    assert read_json(f"{before}{json.dumps(value)}{after}") == value


@given(OUTER, PROSE, PROSE, st.sampled_from(["", "json", "JSON"]))
def test_it_is_found_in_a_fence(value: object, before: str, after: str, label: str) -> None:
    assert read_json(f"{before}\n{fence(json.dumps(value, indent=2), label)}\n{after}") == value


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UnparsableReplyError):
        assert isinstance(read_json(text), dict | list)


def test_the_last_fence_that_holds_it_counts_whatever_else_has_brackets() -> None:
    first, last, code = fence('{"a": 1}', "json"), fence('{"a": 2}', "json"), fence("x = [1]", "python")
    assert read_json(f"See [1] and [2, 3].\n{first}\nBetter:\n{last}\nIt does {code}") == {"a": 2}


def test_in_prose_the_longest_counts() -> None:
    assert read_json('As in [1], I say {"a": [1, 2]} and not {}.') == {"a": [1, 2]}


def test_line_breaks_inside_of_strings_are_tolerated() -> None:
    assert read_json('{"lesson": "do this\nprefer: loops"}') == {"lesson": "do this\nprefer: loops"}


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00", "\ud83d"], ids=["first", "second", "unescaped"])
def test_half_of_a_surrogate_pair_is_replaced_as_no_prompt_could_hold_it(half: str) -> None:
    reply = f'{{"a{half}": ["so {half}", {{"b": "{half}, 1"}}, 1], "whole": "\\ud83d\\ude00"}}'
    expected = {"a\ufffd": ["so \ufffd", {"b": "\ufffd, 1"}, 1], "whole": "\U0001f600"}
    assert read_json(reply) == expected
    assert read_json(fence(reply, "json")) == expected


@given(st.recursive(st.text(st.characters()), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_what_is_read_can_be_written_as_utf_8(value: object) -> None:
    assert json.dumps(read_json(json.dumps([value])), ensure_ascii=False).encode()


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_refused_at_once_and_not_a_crash(opening: str) -> None:
    with pytest.raises(UnparsableReplyError):
        read_json(opening * 100_000)
    assert read_json('Here: {"a": 1}. ' + opening * 100_000) == {"a": 1}


@pytest.mark.parametrize(
    ("reply", "says"), [("[1]", "an object was asked for"), ("{}", "an array was asked for"), ('{"a": 1}', "an array")]
)
def test_the_other_form_is_refused(reply: str, says: str) -> None:
    with pytest.raises(UnparsableReplyError, match=says):
        (read_object if reply == "[1]" else read_array)(reply)


def test_an_array_that_is_the_only_value_of_an_object_counts() -> None:
    assert read_array('{"queries": ["a"]}') == ["a"]


def test_what_is_in_it_is_taken_or_refused_by_name() -> None:
    assert text_of({"why": "  so "}, "why") == "so"
    assert texts(["a", 1, " a", "", "b"], "queries") == ("a", "b")
    assert objects([{"a": 1}, "b"], "slots") == [{"a": 1}]
    assert word_of({"kind": " Failed "}, "kind", ("success", "failed")) == "failed"
    for nothing in (1, " "):
        with pytest.raises(UnparsableReplyError, match="'why' is missing"):
            text_of({"why": nothing}, "why")
    with pytest.raises(UnparsableReplyError, match="no text among 'queries'"):
        texts([1], "queries")
    with pytest.raises(UnparsableReplyError, match="'queries' is missing or no array"):
        texts("a", "queries")
    with pytest.raises(UnparsableReplyError, match="'slots' is missing or no array"):
        objects(None, "slots")
    with pytest.raises(UnparsableReplyError, match="'kind' is 'good'; it has to be one of success, failed"):
        word_of({"kind": "good"}, "kind", ("success", "failed"))
