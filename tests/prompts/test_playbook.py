"""The playbook's prompts, and what is read from replies that are not quite what was asked for."""

from __future__ import annotations

import json

import pytest

from flowevolve.core.artifact import Artifact
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.playbook import (
    gather_prompt,
    parse_comparison,
    parse_curator_requests,
    parse_lesson,
    parse_lessons,
    parse_merged,
    with_playbook,
)
from flowevolve.prompts.reading.notes import split_citation
from flowevolve.prompts.shipped import SHIPPED


def test_every_component_ends_with_the_playbook() -> None:
    artifact = with_playbook(SHIPPED, Artifact({"a": "First.", "b": "Second."}), "- [str-00001] Be brief.")
    assert all(text.endswith("- [str-00001] Be brief.") for text in artifact.values())
    assert with_playbook(SHIPPED, Artifact({"a": "First."}), "", cite=True)["a"] == "First."


@pytest.mark.parametrize(
    ("reply", "text", "cited"),
    [
        ("42\nUsed: str-00001, mis-00012", "42", ("str-00001", "mis-00012")),
        ("42\n**Used:** [str-00001]\n", "42", ("str-00001",)),
        ("As [str-00001] says, 42", "As [str-00001] says, 42", ("str-00001",)),
        ("42\nUsed: none", "42", ("none",)),
        ("42\n**Used:** None.", "42", ("none",)),
        ("42\nUsed:", "42", ()),
        ("42\nUsed: str-00001\n\nGood luck!", "42\n\nGood luck!", ("str-00001",)),
        ("Used: str-00001\n42", "42", ("str-00001",)),
        ("42\nUsed: none\nThat is all.", "42\nThat is all.", ("none",)),
        ("I used: a trick\n42", "I used: a trick\n42", ()),
        ("Used: a trick, and none of it new\n42", "Used: a trick, and none of it new\n42", ()),
        (r"\boxed{42} Used: str-00001", r"\boxed{42}", ("str-00001",)),
        ("**42** **Used:** str-00001, str-00002", "**42**", ("str-00001", "str-00002")),
        ("<answer>42</answer> (Used: str-00001 and mis-00012)", "<answer>42</answer>", ("str-00001", "mis-00012")),
        ("42. Used: [str-00001].", "42.", ("str-00001",)),
        ("42\n(Used: str-00001)", "42", ("str-00001",)),
        ("42\n- Used: str-00001", "42", ("str-00001",)),
        ("42\n> [Used: str-00001, str-00002]\n\nGood luck!", "42\n\nGood luck!", ("str-00001", "str-00002")),
        ("42 (Used: none)", "42", ("none",)),
        ("42\n- Used: none.", "42", ("none",)),
        ("- New: 3\n- Used: none\n- Lost: 1", "- New: 3\n- Used: none\n- Lost: 1", ()),
        ("42, and I used: str-00001", "42, and I used: str-00001", ("str-00001",)),
        ("42 (Used: str-00001 for the units)", "42 (Used: str-00001 for the units)", ("str-00001",)),
        ("Cars - Used: 3", "Cars - Used: 3", ()),
    ],
)
def test_citations_are_read_anywhere_and_their_line_is_taken_off(reply: str, text: str, cited: tuple[str, ...]) -> None:
    assert split_citation(reply) == (text, cited)


def test_lessons_and_tags_of_known_bullets_are_read() -> None:
    reply = (
        "Diagnosis: hasty.\nLesson: Check  units.\n**Lesson:** Round late.\n[str-00001]: helpful\nstr-00009: harmful"
    )
    reflection = parse_lesson(reply, {"str-00001"})
    assert reflection.lessons == ("Check units.", "Round late.")
    assert reflection.tags == {"str-00001": "helpful"}
    with pytest.raises(UnparsableReplyError):
        parse_lesson("No idea.", set())


@pytest.mark.parametrize(
    "lesson",
    [
        *("none", "None.", "**None**", "(none)", "N/A", "-", "", "Nothing new.", "no new lesson"),
        *("No new lessons.", "No lesson needed.", "No lesson is needed here.", "Nothing to learn from this answer."),
        *("None, the answer is right.", "none (answer is correct)", "none; str-00001 was enough"),
        *("N/A - the answer was right", "None, as the notes already say this.", "No lesson: answered correctly."),
        *("None because there is no error", "Nothing to add. The notes already cover it."),
    ],
)
def test_that_there_is_no_lesson_is_none(lesson: str) -> None:
    assert parse_lesson(f"Diagnosis: right\nLesson: {lesson}", set()).lessons == ()


@pytest.mark.parametrize(
    "lesson",
    [
        "None of the dates is right unless the year is.",
        "None is not 0: leave such rows out.",
        "Nothing, not even a unit, may follow the answer.",
        "Nothing in the table is in euros.",
        "None, some or all of the rows may match, so count them.",
        "No lesson plan without its goals.",
        "No units in the answer.",
        "No more than one word, as the answer is compared with one.",
        "Nothing: some rows are already sorted, so keep their order.",
        "None: return it where there is no row.",
        "Not all that is correct is asked for.",
        "Nothing to add as the answer is correct, but check units.",
        "None; the notes already say that units are to be checked. Check units twice.",
        "None, the sum is right, so keep adding up twice.",
    ],
)
def test_advice_that_begins_with_no_or_none_is_a_lesson(lesson: str) -> None:
    assert parse_lesson(f"Diagnosis: wrong\nLesson: {lesson}", set()).lessons == (lesson,)


def test_tags_to_choose_from_are_none() -> None:
    reply = "str-00001: helpful | harmful | neutral\nstr-00002: **helpful** or neutral\nstr-00003: helpful, str-00004: neutral"
    known = {f"str-0000{number}" for number in range(1, 5)}
    assert parse_lesson(reply, known).tags == {"str-00003": "helpful", "str-00004": "neutral"}
    assert parse_lesson(f"{reply}\nstr-00001: harmful", known).tags["str-00001"] == "harmful"


@pytest.mark.parametrize(
    "line",
    ["1. {}", "## {}", "> {}", "* {}", "- **{}**", "2) {}", "> - {}", "  {}"],
)
@pytest.mark.parametrize(
    "said", ["Lesson: check units", "Lesson 1: check units", "lesson #2: check units", "Lesson : check units"]
)
def test_lessons_are_read_in_the_forms_that_models_give_a_list(line: str, said: str) -> None:
    written = line.format(said)
    reply = f"Diagnosis: hasty.\n{written}\nstr-00001: helpful"
    assert [lesson.strip("*") for lesson in parse_lesson(reply, set()).lessons] == ["check units"]
    assert [lesson.strip("*") for lesson in parse_lessons(written)] == ["check units"]


@pytest.mark.parametrize("line", ["Lesson: {}", "**Lesson:** {}", "*Lesson:* {}", "__Lesson:__ {}"])
@pytest.mark.parametrize(
    ("said", "lesson"),
    [
        ("Check units.", "Check units."),
        ("*Check units.*", "Check units."),
        ("_Check units._", "Check units."),
        ("**Check units.**", "Check units."),
        ("_id is a key.", "_id is a key."),
        ("Give **two** decimals of a*b.", "Give **two** decimals of a*b."),
    ],
)
def test_emphasis_around_a_lesson_is_no_part_of_it(line: str, said: str, lesson: str) -> None:
    assert parse_lesson(line.format(said), ()).lessons == (lesson,)


def test_what_only_speaks_of_a_lesson_is_none() -> None:
    assert (
        parse_lesson("Diagnosis: the lesson: none.\nNo lesson: it was right.\nLessons learnt: many", set()).lessons
        == ()
    )


@pytest.mark.parametrize(
    ("reply", "lessons"),
    [
        ("Lesson:\n- Check units.\n- Mind signs.\nError: a sum", ("Check units.", "Mind signs.")),
        ("Lesson:\n1. Check units.\n\n2. Mind signs.", ("Check units.", "Mind signs.")),
        ("**Lesson:**\nCheck units.\n**Error:** a sum", ("Check units.",)),
        (
            "Error: a sum\n**Lesson**:\n\nWhen dividing: check the\nunits.\nstr-00001: helpful",
            ("When dividing: check the units.",),
        ),
        ("### Error\na sum\n\n### Lesson\nCheck units.\n\n### Tags\nstr-00001: helpful", ("Check units.",)),
        (
            "Lesson 1:\nCheck units.\n\nLesson 2:\nMind signs.\nTags:\nstr-00001: helpful",
            ("Check units.", "Mind signs."),
        ),
        ("Lesson:\n**Check units.**\n**Tags:**\nstr-00001: helpful", ("Check units.",)),
        ("Lessons:\n- Check units.\n- str-00001: helpful", ("Check units.",)),
        ("Lesson learned: Check units.\n**Key lesson:** Mind signs.", ("Check units.", "Mind signs.")),
        ('{"diagnosis": "a sum", "lesson": "Check units."}', ("Check units.",)),
        (
            '{"lessons": [{"lesson": "Check units."}, "Mind signs."], "key_lesson": "Add up."}',
            ("Check units.", "Mind signs.", "Add up."),
        ),
        ("Lesson\n======\nCheck units.\n======\nMore.", ("Check units.",)),
        ("Lesson: Check units.\nIt is as in the last\nlesson\nwhich was the same", ("Check units.",)),
        ("Lesson:\nError: a sum\nCause: haste", ()),
        ("Lesson:\n\n### What next\nNothing.", ()),
        ("### Lesson\nNone.", ()),
        ("Lesson:", ()),
    ],
)
def test_lessons_below_their_name_are_read(reply: str, lessons: tuple[str, ...]) -> None:
    assert parse_lesson(reply, {"str-00001"}).lessons == lessons


@pytest.mark.parametrize(
    ("reply", "diagnosis"),
    [
        ("Diagnosis: hasty.\nError: a", "hasty."),
        ("**Error:** a sum\n- Cause: haste\nLesson: b", "Error: a sum Cause: haste"),
        ("Error: none\nLesson: b", ""),
        ("Correct approach: add up", "Correct approach: add up"),
        ("### Error\na sum\n### Cause\nhaste\n\nMuch more.\n\nLesson: b", "Error: a sum Cause: haste"),
        ("**Diagnosis:**\nhasty.\nLesson: b", "hasty."),
        ("Diagnosis:\nError: a\nLesson: b", "Error: a"),
        ("Lesson: none", ""),
        ('{"diagnosis": "a sum"}', "a sum"),
        (
            '{"error": "a sum", "cause": "none", "correct_approach": "Add up. "}',
            "Error: a sum Correct approach: Add up.",
        ),
        ("Error: a sum\nIt was {1, 2}.", "Error: a sum"),
    ],
)
def test_a_diagnosis_is_one_line_or_the_lines_that_were_asked_for(reply: str, diagnosis: str) -> None:
    assert parse_lesson(reply, set()).diagnosis == diagnosis


@pytest.mark.parametrize(
    "reply",
    ["A diagnosis is not possible.", "I can't give a diagnosis {of} this.", "Diagnosis:", '{"diagnosis": ""}', "{}"],
)
def test_a_reply_that_only_speaks_of_a_diagnosis_is_not_taken_for_one(reply: str) -> None:
    with pytest.raises(UnparsableReplyError, match="neither diagnosis nor lesson nor tag"):
        parse_lesson(reply, set())


def test_who_tries_again_is_told_the_diagnosis_and_the_lessons() -> None:
    assert parse_lesson("Error: a sum\nLesson: Add up.", set()).in_words == "Error: a sum\nAdd up."


@pytest.mark.parametrize("name", ["[str-00001]", " str-00001 ", "STR-00001", "[STR-00001]"])
def test_ids_of_operations_are_read_as_prompts_show_them(name: str) -> None:
    requests, unread = parse_curator_requests(
        json.dumps(
            [
                {"op": "UPDATE", "id": name, "text": "a"},
                {"op": "DELETE", "id": name},
                {"op": "MERGE", "ids": [name, "[str-00002]"], "text": "b"},
                {"op": "MERGE", "ids": [name, "str-00001"], "text": "one and the same"},
            ]
        )
    )
    assert [request.ids for request in requests] == [("str-00001",), ("str-00001",), ("str-00001", "str-00002")]
    assert unread == 1


def test_operations_that_can_not_be_read_are_counted() -> None:
    reply = """Here you are:
```json
[{"op": "ADD", "section": "mistakes", "text": "a"}, {"op": "update", "id": "str-00001", "text": "b"},
 {"op": "MERGE", "ids": ["str-00001", "str-00001"], "text": "c"}, {"op": "DELETE"}, 7]
```"""
    requests, unread = parse_curator_requests(reply)
    assert [(request.verb, request.ids) for request in requests] == [("ADD", ()), ("UPDATE", ("str-00001",))]
    assert unread == 3
    assert parse_curator_requests('So: [{"op": "DELETE", "id": "str-00002"}]')[0][0].ids == ("str-00002",)
    with pytest.raises(UnparsableReplyError):
        parse_curator_requests("Nothing to do [really].")


@pytest.mark.parametrize("name", ["op", "type", "operation", "action"])
def test_what_an_operation_does_may_have_other_names(name: str) -> None:
    requests, unread = parse_curator_requests(json.dumps([{name: "add", "section": "mistakes", "content": "a"}]))
    assert ([(request.verb, request.text) for request in requests], unread) == ([("ADD", "a")], 0)


@pytest.mark.parametrize(
    "entries",
    ['["Check units."]', '[{"ADD": {"text": "Check units."}}]', '[{"op": "ADD", "note": "Check units."}, {}]'],
)
def test_a_list_without_a_single_operation_that_can_be_read_is_refused(entries: str) -> None:
    with pytest.raises(UnparsableReplyError, match="no entry"):
        parse_curator_requests(entries)


def test_a_text_in_several_parts_is_one_note() -> None:
    requests, unread = parse_curator_requests(
        '[{"op": "ADD", "text": ["Check units.", "Mind signs."]}, {"op": "ADD", "text": {"a": "Add up."}}]'
    )
    assert ([request.text for request in requests], unread) == (["Check units. Mind signs."], 1)


@pytest.mark.parametrize("verb", ["KEEP", "NONE", "noop", "Skip"])
def test_what_a_curator_keeps_stays_as_it_is(verb: str) -> None:
    kept = {"op": verb, "id": "str-00001"}
    assert parse_curator_requests(json.dumps([kept])) == ([], 0)
    requests, unread = parse_curator_requests(json.dumps([kept, {"op": "ADD", "text": "a"}, {"op": "WHAT"}]))
    assert ([request.text for request in requests], unread) == (["a"], 1)


@pytest.mark.parametrize("ids", ['"ids": ["str-00001"]', '"id": ["str-00001"]', '"id": "str-00001"'])
@pytest.mark.parametrize("written", ["[{}]", "{}", '{{"reasons": "It was vague.", "changes": [{}]}}'])
def test_operations_may_stand_in_an_object_or_alone_and_ids_in_a_list(ids: str, written: str) -> None:
    (request,), unread = parse_curator_requests(written.format(f'{{"op": "UPDATE", {ids}, "text": "Check units."}}'))
    assert (request.verb, request.ids, request.text, unread) == ("UPDATE", ("str-00001",), "Check units.", 0)


def test_other_lists_beside_the_operations_do_not_hide_them() -> None:
    added = '{"op": "ADD", "section": "", "text": "Check units."}'
    requests, unread = parse_curator_requests(f'{{"reasoning": ["a", "b"], "operations": [{added}]}}')
    assert ([request.text for request in requests], unread) == (["Check units."], 0)
    assert parse_curator_requests('{"operations": [], "conflicts": ["a"]}') == ([], 0)


def test_commands_of_latex_are_kept_though_their_backslashes_are_not_doubled() -> None:
    said = r"Use \frac{a}{b}, \beta \times \theta, \text{kg} and \rho \neq 0."
    (request,), _ = parse_curator_requests(f'[{{"op": "ADD", "section": "formulas", "text": "{said}"}}]')
    assert request.text == said


def test_an_empty_list_says_that_nothing_is_to_be_changed() -> None:
    assert parse_curator_requests("[]") == ([], 0)


@pytest.mark.parametrize(
    "entry", ['"op": "UPDATE", "id": "str-00001"', '"op": "ADD"', '"op": "MERGE", "ids": ["a", "b"]']
)
def test_counters_that_a_curator_repeats_are_no_part_of_the_text(entry: str) -> None:
    requests, _ = parse_curator_requests(f'[{{{entry}, "text": "Be brief (in mails). (helpful 3, harmful 1)"}}]')
    assert [request.text for request in requests] == ["Be brief (in mails)."]


def test_what_a_comparison_does_not_say_is_put_to_the_test() -> None:
    assert parse_comparison("1: same\n3. NEW", 3) == ["same", "conflict", "new"]


def test_gathered_lessons_are_read_each_once() -> None:
    prompt = gather_prompt(SHIPPED, [("a",), ("a", "b")])
    assert "- a\n- a\n- b" in prompt
    assert parse_lessons("Well.\nLesson: a\n- Lesson:  a\nLesson: b c") == ("a", "b c")
    with pytest.raises(UnparsableReplyError, match="no lesson"):
        parse_lessons("nothing")


DATES = ["Write dates as day, month, year.", "Dates have the day first, then the month."]
MARGINS = "Give margins in per cent with one decimal, unless the question asks for a ratio."


@pytest.mark.parametrize(
    ("merged", "texts"),
    [
        ("Write dates as day, month, year.", DATES),
        ("- Put the day first in dates, then month\n  and year.", DATES),
        ("Always check and convert units.", ["Check units.", "Units: always convert them!"]),
        ("Verify each unit conversion twice before you answer.", ["Always check units", "Check the units of results"]),
        ("Prüfe vor der Antwort stets alle Einheiten.", ["Einheiten prüfen", "Vor dem Antworten die Einheit prüfen"]),
        ("始终检查单位和符号。", ["始终检查单位。", "检查符号。"]),
    ],
)
def test_a_merged_note_has_words_of_those_it_stands_for(merged: str, texts: list[str]) -> None:
    found = parse_merged(f"```\n{merged}\n```", texts, SHIPPED["merge_notes"].text)
    assert found == " ".join(merged.removeprefix("- ").split())


@pytest.mark.parametrize(
    "merged",
    [
        "I'm sorry, but these notes contradict each other.",
        "I can't merge these notes, as the dates differ.",
        MARGINS,
        "...",
        "抱歉，无法合并。",
    ],
)
def test_what_says_something_else_is_no_merged_note(merged: str) -> None:
    with pytest.raises(UnparsableReplyError):
        parse_merged(f"```\n{merged}\n```", DATES, SHIPPED["merge_notes"].text)


def test_the_example_of_the_prompt_may_be_one_of_the_notes() -> None:
    others = [
        "Give ratios in per cent with a decimal.",
        "For the margin: one decimal, unless a question asks in words.",
    ]
    template = SHIPPED["merge_notes"].text
    assert parse_merged(f"```\n{MARGINS}\n```", [MARGINS, *others], template) == MARGINS
    with pytest.raises(UnparsableReplyError):
        parse_merged(f"```\n{MARGINS}\n```", others, template)
