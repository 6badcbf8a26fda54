"""Loaders, scorers and the shipped tasks, on small rows and on the real ones."""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import cast

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Dataset, Example, Rollout, Task
from flowevolve.tasks.catalog import DataSource
from flowevolve.tasks.classification import Classification
from flowevolve.tasks.instructions import InstructionFollowing
from flowevolve.tasks.loaders import load_hf, load_rows, split_rows
from flowevolve.tasks.math import MathAnswer
from flowevolve.tasks.multihop import MultiHopQA
from flowevolve.tasks.scoring import exact_match, same_number, stated_answer, stated_label, token_f1

texts = st.text(alphabet="abc the,. ", max_size=30)


class Says:
    """A chat model that gives these answers in turn and remembers what it was asked."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked: list[Sequence[Message]] = []

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        self.asked.append(messages)
        return self._answers[(len(self.asked) - 1) % len(self._answers)]


def constrained(name: str, **given: JSON) -> dict[str, JSON]:
    """A row with one constraint."""
    kwargs: dict[str, JSON] = {"num_words": 5, "relation": "at least", **given}
    return {"prompt": "p", "instruction_id_list": [name], "kwargs": [kwargs]}


def roll(task: Task, *answers: str, artifact: Artifact | None = None) -> Rollout:
    async def go() -> Rollout:
        return await task.rollout(artifact or task.seed(), task.data.train[0], Says(*answers))

    return anyio.run(go)


def data(*rows: Mapping[str, JSON]) -> Dataset:
    examples = [Example(str(number), row) for number, row in enumerate(rows)]
    return Dataset(examples, examples)


# Loaders


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".json", ".csv", ".tsv"])
def test_all_kinds_of_files_give_the_same_rows(suffix: str, tmp_path: Path) -> None:
    rows = [{"a": "1", "b": "é,x"}, {"a": "2", "b": "y"}]
    path = tmp_path / f"rows{suffix}"
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    contents = {
        ".jsonl": lines,
        ".jsonl.gz": lines,
        ".json": json.dumps(rows),
        ".csv": 'a,b\n1,"é,x"\n2,y\n',
        ".tsv": "a\tb\n1\té,x\n2\ty\n",
    }
    raw = contents[suffix].encode()
    path.write_bytes(gzip.compress(raw) if suffix.endswith(".gz") else raw)
    assert load_rows(path) == rows


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b'{"x": 1}\n{\n', "a.jsonl: line 2: not valid JSON: Expecting property name .* at column 2$"),
        ("a.jsonl", b"[1]\n", "line 1 has to be an object, but is of type list"),
        (
            "a.jsonl",
            b'[\n{"a": 1},\n{"a": 2}\n]\n',
            "holds one JSON array; name it .json, or write each object in a line",
        ),
        ("a.jsonl", b'[{"a": 1}]', "holds one JSON array; name it .json, or write each object in a line"),
        ("a.json", b"{}", "has to hold a list of objects"),
        ("a.jsonl", b"\n", "holds no rows"),
        ("a.csv", b"x,y\n", "holds no rows"),
        ("a.txt", b"", "unknown kind of file"),
        ("a.jsonl", b"\xff\xfe", "can't be read"),
        ("a.jsonl.gz", b"not gzip", "can't be read"),
        ("a.jsonl.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff", "can't be read"),
        ("a.json", b"[" * 200_000, "a.json: not valid JSON"),
        ("a.csv", b"x,y\n1,2\n3,4,5\n", "line 3 has more columns than the header; put what holds a comma in quotes"),
        ("a.csv", b"x;y\n1;2\n", "its columns are separated by semicolons; save it with commas"),
        ("a.csv", "x,y\nü,1\n".encode("latin-1"), "it is not in UTF-8; save it in UTF-8"),
        ("a.csv", b"x,y\n" + b"z" * 200_000 + b",1\n", "line 2 can't be read: field larger"),
    ],
)
def test_bad_files_are_named(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says):
        load_rows(tmp_path / name)


def test_lines_end_where_json_lets_them(tmp_path: Path) -> None:
    """Separators that JSON texts may contain, and at which Python's splitlines() would split."""
    row = {"problem": "a\u2028b\u2029c\u0085d"}
    (tmp_path / "a.jsonl").write_bytes((json.dumps(row, ensure_ascii=False) + "\r\n").encode() * 2)
    assert load_rows(tmp_path / "a.jsonl") == [row, row]


@given(st.integers(2, 60), st.integers(0, 5))
def test_fractions_of_one_use_every_row_once(count: int, seed: int) -> None:
    rows: list[Mapping[str, JSON]] = [{"n": number} for number in range(count)]
    split = split_rows(rows, {"train": 0.5, "val": 0.5}, seed)
    ids = [example.id for part in (split.train, split.val, split.test) for example in part]
    assert sorted(ids, key=int) == [str(number) for number in range(count)]
    assert split_rows(rows, {"train": 0.5, "val": 0.5}, seed) == split


def test_sizes_that_can_not_be_are_refused() -> None:
    rows: list[Mapping[str, JSON]] = [{"n": number} for number in range(4)]
    for sizes, says in (
        ({"train": 3, "val": 3}, "the sizes of the splits add up to 6 rows, but the data has 4"),
        ({"train": 2}, "'val' would be empty"),
        ({"train": -1, "val": 2}, "negative"),
        ({"train": 1.0, "val": 2}, "whole number of rows or a fraction below 1"),
        ({"train": math.nan, "val": 2}, "negative"),
        ({"train": 1, "dev": 1}, "unknown split"),
    ):
        with pytest.raises(InputError, match=says):
            split_rows(rows, sizes, 0)


def test_a_source_is_one_of_path_files_or_hub(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"k": 1}\n')
    separate = DataSource(train=file, val=file).load()
    assert [example.id for example in (*separate.train, *separate.val)] == ["train-0", "val-0"]
    for source in (DataSource(), DataSource(path=file, hf="x"), DataSource(train=file)):
        with pytest.raises(InputError, match=r"task\.data"):
            source.load()


def test_the_hub_needs_an_extra() -> None:
    with pytest.raises(InputError, match=r"flowevolve\[hf\]"):
        load_hf("some/set", "train")


class Hub:
    """Stands in for the package ``datasets``, with one data set that has several configurations."""

    @staticmethod
    def load_dataset(name: str, config: str | None, *, split: str) -> list[dict[str, JSON]]:
        if config is None:
            raise ValueError("Config name is missing.\nPlease pick one among the available configs")
        return [{"id": f"{name} {config} {split} {number}"} for number in range(2)]


def test_a_set_on_the_hub_may_have_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", cast("ModuleType", Hub))
    with pytest.raises(InputError, match=r"'some/set' \(no hf_config, split 'dev'\).*: Config name is missing\.$"):
        DataSource(hf="some/set", hf_split="dev").load()
    source = DataSource(hf="some/set", hf_split="dev", hf_config="distractor", sizes={"train": 1, "val": 1})
    assert {example.data["id"] for example in (*source.load().train, *source.load().val)} == {
        "some/set distractor dev 0",
        "some/set distractor dev 1",
    }


# Scorers


@given(texts, texts)
def test_f1_is_a_similarity(first: str, second: str) -> None:
    assert 0 <= token_f1(first, second) <= 1
    assert token_f1(first, second) == pytest.approx(token_f1(second, first))
    assert token_f1(first, first) == 1
    assert not exact_match(first, second) or token_f1(first, second) == 1


def test_f1_by_hand() -> None:
    assert token_f1("the cat sat", "cat") == pytest.approx(2 / 3)
    assert token_f1("yes it is", "yes") == 0
    assert exact_match("The Beatles!", "beatles")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        ("first 3, Answer: 042", "042"),
        ("the answer is **7**.", "7"),
        ("1 and 2 make 3", "3"),
        ("Paris", "Paris"),
        ("", ""),
    ],
)
def test_the_stated_answer_is_found(text: str, answer: str) -> None:
    assert stated_answer(text) == answer


def test_numbers_are_compared_as_numbers() -> None:
    assert same_number("042", "42")
    assert same_number(r"\frac{1}{2}", "0.5")
    assert same_number("1,000", "1000")
    assert not same_number("41", "42")
    assert not same_number("1/0", "0")
    assert same_number("x + 1", "X+1") is False
    assert not same_number("", "")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("This is Sci/Tech.", "Sci/Tech"),
        ("sports", "Sports"),
        ("World or Sports? Answer: World", "World"),
        ("World or Sports", None),
        ("none of them", None),
    ],
)
def test_the_stated_label_is_found(text: str, label: str | None) -> None:
    assert stated_label(text, ["World", "Sports", "Sci", "Sci/Tech"]) == label


# Tasks


def test_instructions_say_what_was_met_and_what_not() -> None:
    row: dict[str, JSON] = {
        "prompt": "Write.",
        "instruction_id_list": ["punctuation:no_comma", "detectable_format:title"],
        "kwargs": [{}, {}],
    }
    rollout = roll(InstructionFollowing(data(row)), "no title here")
    assert rollout.score.value == 0.5
    assert rollout.score.feedback.startswith("Met: Do not use any commas.\nNot met: ")
    assert roll(InstructionFollowing(data(row), strict=True), "no title").score.value == 0
    assert roll(InstructionFollowing(data(row)), "<<Title>> yes").score.passed


def test_multihop_makes_two_calls_and_names_what_was_missed() -> None:
    row: dict[str, JSON] = {
        "question": "Who?",
        "answers": ["Ada Lovelace"],
        "context": [["Ada", "Ada wrote."], ["Bob", ["Bob ", "read."]]],
        "supporting_titles": ["Ada", "Bob"],
    }
    rollout = roll(MultiHopQA(data(row)), "Ada wrote it.", "Lovelace")
    assert [call.component for call in rollout.calls] == ["find_evidence", "answer"]
    assert rollout.score.value == pytest.approx(2 / 3)
    assert "Bob" in rollout.score.feedback
    assert "Bob: Bob read." in rollout.calls[0].inputs["paragraphs"]
    assert roll(MultiHopQA(data(row), metric="em"), "Ada, Bob", "ada lovelace").score.passed


@pytest.mark.parametrize(
    ("reply", "gold", "right"),
    [
        ("Chief of Protocol\n\n(1976)", "Chief of Protocol", False),
        ("She held it from 1976.\n\nChief of Protocol", "Chief of Protocol", True),
        ("There are 2 notes.\n<answer>Ada Lovelace</answer>", "Ada Lovelace", True),
        ("<answer>Ada Lovelace</answer>", "Ada Lovelace", True),
        ("Answer: Ada Lovelace", "Ada Lovelace", True),
        ("Answer: Ada Lovelace\n\nI hope this answer is helpful.", "Ada Lovelace", True),
        ("The notes name 2 people.\nBy them the answer is Ada Lovelace.\nThey met in 1833.", "Ada Lovelace", True),
        ("Answer: Bob\nWait, that is her brother. So the final answer is Ada Lovelace.", "Ada Lovelace", True),
        ("1. Ada\n2. Bob\n\nYes", "yes", True),
        ("The Answer Band", "The Answer Band", True),
        ("She was born in London.\n\nThat was in 1815.", "1815", True),
        ("Answer: 1815\n\nShe was 36.", "1815", True),
        ("1815", "1815", True),
    ],
)
def test_what_multihop_takes_for_the_answer(reply: str, gold: str, right: bool) -> None:
    row: dict[str, JSON] = {"question": "Who?", "answer": gold, "context": [["A", "Ada."]]}
    assert roll(MultiHopQA(data(row), metric="em"), "notes", reply).score.passed is right


def test_multihop_takes_rows_as_they_are_on_the_hub() -> None:
    row: dict[str, JSON] = {
        "question": "Who?",
        "answer": "Ada Lovelace",
        "context": {"title": ["Ada", "Bob"], "sentences": [["Ada wrote."], ["Bob ", "read."]]},
        "supporting_facts": {"title": ["Ada", "Bob"], "sent_id": [0, 1]},
    }
    rollout = roll(MultiHopQA(data(row)), "Ada wrote it.", "Lovelace")
    assert rollout.calls[0].inputs["paragraphs"] == "Ada: Ada wrote.\n\nBob: Bob read."
    assert "Bob" in rollout.score.feedback


def test_math_shows_the_solution_to_who_was_wrong() -> None:
    row: dict[str, JSON] = {"problem": "1+1?", "answer": "2", "solution": "Add."}
    assert roll(MathAnswer(data(row)), "Answer: 2").score.passed
    wrong = roll(MathAnswer(data(row)), "Answer: 3")
    assert wrong.score.value == 0
    assert "Add." in wrong.score.feedback


@pytest.mark.parametrize(
    ("reply", "gold", "right"),
    [
        ("The answer is: 42", "42", True),
        ("The answer is: 4.2", "42", False),
        ("The final answer is:\n<answer>42</answer>", "42", True),
        ("Answer: 42\n\nNote: the final answer is an integer.", "42", True),
        ("Answer: let me see.\n\nSo by this the answer is 42.", "42", True),
        ("Answer: 41\n\nThe final answer is 42.", "42", True),
        (r"\boxed{42^\circ}", "42", True),
        (r"\boxed{42\text{ cm}}", "42", True),
        (r"\boxed{42 \text{ million}}", "42", False),
        ("Answer: 42 square meters", "42", True),
        ("Answer: 42 million", "42", False),
        ("Answer: 3 pi", "3", False),
        ("Answer: 42 or 43", "42", False),
        ("Answer: 2 + 40 apples", "240", False),
        ("Answer: 12{,}345", "12345", True),
        (r"So the answer is \(42\).", "42", True),
        ("Answer: (42)", "42", False),
        ("Answer: 2^3", "23", False),
        ("Answer: 3*4", "34", False),
        ("Answer: 1:2", "12", False),
        ("Answer: 4 squared", "4", False),
        ("Answer: 3 halves", "3", False),
        ("Answer: 101 base two", "101", False),
        ("Answer: 5!", "5", False),
        ("Answer: {1,2}", "12", False),
        ("Answer: 6 dozen", "6", False),
        ("Answer: 42 miles per hour", "42", True),
        ("Answer: **42**", "42", True),
        ("Answer: 2\n\nThe final answer is x + 1", "x + 1", True),
        (r"\boxed{3 \text{ if } n > 2}", r"3 \text{ if } n > 2", True),
    ],
)
def test_what_math_takes_for_the_answer(reply: str, gold: str, right: bool) -> None:
    assert roll(MathAnswer(data({"problem": "?", "answer": gold})), reply).score.passed is right


def test_classification_names_the_right_label() -> None:
    row: dict[str, JSON] = {"question": "goal!", "answer": "Sports"}
    task = Classification(data(row), labels=["Sports", "World"])
    assert roll(task, "It is sports.").score.passed
    assert "'Sports'" in roll(task, "World").score.feedback


@pytest.mark.parametrize(
    ("make", "row", "says"),
    [
        (InstructionFollowing, {"prompt": ""}, "'prompt'"),
        (InstructionFollowing, {"prompt": "p", "instruction_id_list": ["x"], "kwargs": []}, "of one length"),
        (MultiHopQA, {"question": "q", "context": [["a", "b"]]}, "'answer'"),
        (MultiHopQA, {"question": "q", "answer": "a", "context": [["a"]]}, "pairs"),
        (MultiHopQA, {"question": "q", "answer": "a", "context": {"title": ["a"], "sentences": []}}, "of one length"),
        (
            InstructionFollowing,
            constrained("length_constraints:number_words", num_words=math.nan),
            "is nan, but has to be a number",
        ),
        (
            InstructionFollowing,
            constrained("length_constraints:number_words", relation="at most"),
            "has to be 'at least' or 'less than'",
        ),
        (InstructionFollowing, constrained("language:response_language", language="tlh"), "language 'tlh'"),
        (MathAnswer, {"problem": "p"}, "'answer'"),
        (Classification, {"question": 1, "answer": "x"}, "'question'"),
    ],
)
def test_rows_that_do_not_fit_are_named(make: type, row: dict[str, JSON], says: str) -> None:
    with pytest.raises(InputError, match=f"row 0.*{says}"):
        make(data(row))


def test_real_rows_run(data_dir: Path) -> None:
    hotpot = split_rows(load_rows(data_dir / "hotpotqa/hotpotqa_dev500_context.jsonl.gz"), {"train": 5, "val": 5}, 0)
    original = split_rows(
        load_rows(data_dir / "hotpotqa/hotpotqa_train100_context.jsonl.gz"), {"train": 5, "val": 5}, 0
    )
    aime = split_rows(load_rows(data_dir / "aime/aime_2022_2024_gepa_trainval.jsonl"), {"train": 45, "val": 45}, 0)
    news = split_rows(load_rows(data_dir / "ag_news/ag_news_1200.jsonl.gz"), {"train": 9, "val": 9}, 0)
    disease = split_rows(load_rows(data_dir / "symptom2disease/symptom2disease_train.jsonl"), {"train": 9, "val": 9}, 0)
    ifeval = split_rows(load_rows(data_dir / "ifeval/ifeval_541.jsonl"), {"train": 0.5, "val": 0.5}, 0, id_field="key")
    tasks: list[Task] = [
        MultiHopQA(hotpot),
        MultiHopQA(original),
        MathAnswer(aime),
        Classification(news, text_fields=["title", "description"], label_field="label"),
        Classification(disease),
        InstructionFollowing(ifeval),
    ]
    for task in tasks:
        rollout = roll(task, "an answer")
        assert 0 <= rollout.score.value <= 1
        assert rollout.score.feedback
        assert rollout.calls
