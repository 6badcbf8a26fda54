from hypothesis import given, strategies as st

from flowevolve.llm.client.answer_lengths import CallKind, LengthEstimates

works = st.builds(
    CallKind, st.sampled_from("rs"), st.sampled_from("ge"), st.just("1"), st.sampled_from(["", "a", "b", "c"])
)


def test_what_an_item_and_its_key_are() -> None:
    assert CallKind.of("task", "evaluate", "17.0/a/b") == CallKind("task", "evaluate", "17.0", "a/b")
    assert CallKind.of("task", "evaluate", "17.0").key == ""
    assert CallKind.of("task", "evaluate", "17.0/a").group == CallKind.of("reflection", "evaluate", "17.0/b").group
    assert CallKind.of("task", "evaluate", "17.0/a").group != CallKind.of("task", "screen", "17.0/a").group


def test_an_example_is_expected_to_take_what_it_took_before_whatever_the_item() -> None:
    lengths = LengthEstimates(weight=0.5)
    lengths.note(CallKind("task", "evaluate", "1", "long"), 1000)
    lengths.note(CallKind("task", "evaluate", "1", "short"), 10)
    assert lengths.expect(CallKind("task", "evaluate", "2", "long")) == 1000
    assert lengths.expect(CallKind("task", "evaluate", "2", "short")) == 10
    lengths.note(CallKind("task", "evaluate", "2", "long"), 500)
    assert lengths.expect(CallKind("task", "evaluate", "3", "long")) == 750


def test_what_is_new_is_expected_to_be_like_its_stage_or_else_its_role() -> None:
    lengths = LengthEstimates(weight=0.5)
    assert lengths.expect(CallKind("task", "screen", "1", "a")) == 0
    lengths.note(CallKind("task", "screen", "1", "a"), 100)
    lengths.note(CallKind("task", "evaluate", "1", "a"), 300)
    assert lengths.expect(CallKind("task", "screen", "1", "b")) == 100
    assert lengths.expect(CallKind("task", "generate", "1", "a")) == 200
    assert lengths.expect(CallKind("reflection", "generate", "1", "a")) == 0


def test_memory_is_bounded_and_what_is_used_stays() -> None:
    lengths = LengthEstimates(size=10)
    used = CallKind("task", "evaluate", "1", "used")
    lengths.note(used, 7)
    for number in range(100):
        lengths.note(CallKind("task", "evaluate", "1", str(number)), 1000)
        assert lengths.expect(used) == 7
    assert lengths.expect(CallKind("task", "evaluate", "1", "99")) == 1000
    assert lengths.expect(CallKind("task", "evaluate", "1", "0")) != 7


@given(st.lists(st.tuples(works, st.integers(1, 5000))), works, st.integers(1, 20))
def test_an_estimate_lies_between_the_shortest_and_the_longest_answer(answers, asked, size) -> None:
    lengths = LengthEstimates(size=size)
    for call_kind, tokens in answers:
        lengths.note(call_kind, tokens)
    seen = [tokens for call_kind, tokens in answers if call_kind.role == asked.role]
    expected = lengths.expect(asked)
    assert expected == 0 or min(seen) - 1e-6 <= expected <= max(seen) + 1e-6
