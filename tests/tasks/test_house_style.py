import json
from collections import Counter
from pathlib import Path

import pytest

from bench._lib.house_style import make_rows, rules_of, shipped_rows, write_rows
from flowevolve._util.errors import InputError
from flowevolve.tasks.house_style import DATA_FILE, HOUSE_STYLE, SEED_PROMPT, house_style_task


def test_shipped_file_is_what_the_generator_writes(tmp_path: Path) -> None:
    write_rows(shipped_rows(), tmp_path / "rows.jsonl")
    assert DATA_FILE.read_bytes() == (tmp_path / "rows.jsonl").read_bytes()


def test_shipped_rows_have_ifeval_form_and_all_splits() -> None:
    rows = [json.loads(line) for line in DATA_FILE.read_text().splitlines()]
    assert len(rows) >= 240
    assert all(list(row) == ["key", "prompt", "instruction_id_list", "kwargs", "split"] for row in rows)
    assert len({row["key"] for row in rows}) == len({row["prompt"] for row in rows}) == len(rows)
    assert Counter(row["split"] for row in rows) == {"train": 120, "val": 90, "test": 90}


def test_every_rule_is_needed_in_every_shipped_split() -> None:
    for split in ("train", "val", "test"):
        needed = [rule for row in shipped_rows() if row["split"] == split for rule in rules_of(row)]
        assert all(rule in needed for rule in HOUSE_STYLE)


def test_prompts_do_not_state_the_rules() -> None:
    for row in shipped_rows():
        assert not any(rule.describe() in str(row["prompt"]) for rule in HOUSE_STYLE)


def test_rows_need_different_rules_of_the_style_in_use() -> None:
    for row in make_rows(rules=10, per_example=4, overlap=0.5, rows=40, seed=3):
        rules = rules_of(row)
        assert len(rules) == 4
        assert [rule for rule in HOUSE_STYLE[:10] if rule in rules] == rules


def test_same_arguments_give_the_same_rows_and_another_seed_others() -> None:
    assert make_rows(8, 3, 0.2, 30, seed=5) == make_rows(8, 3, 0.2, 30, seed=5)
    assert make_rows(8, 3, 0.2, 30, seed=5) != make_rows(8, 3, 0.2, 30, seed=6)


def test_overlap_concentrates_the_needed_rules() -> None:
    def share_of_the_three_commonest(overlap: float) -> float:
        rows = make_rows(rules=12, per_example=3, overlap=overlap, rows=200, seed=1)
        counts = Counter(HOUSE_STYLE.index(rule) for row in rows for rule in rules_of(row))
        return sum(count for _, count in counts.most_common(3)) / counts.total()

    shares = [share_of_the_three_commonest(overlap) for overlap in (0.0, 0.3, 0.6, 1.0)]
    assert shares == sorted(shares)
    assert shares[0] < 0.35
    assert shares[-1] > 0.75


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"rules": 0}, "rules is 0"),
        ({"rules": 99}, "rules is 99"),
        ({"per_example": 7}, "per_example is 7"),
        ({"overlap": 2}, "overlap is 2"),
        ({"rows": 10_000}, "rows is 10000"),
    ],
)
def test_numbers_out_of_range_are_named(changed: dict[str, int], named: str) -> None:
    arguments = {"rules": 6, "per_example": 2, "overlap": 0, "rows": 10, "seed": 0} | changed
    with pytest.raises(InputError, match=named):
        make_rows(**arguments)


def test_malformed_row_is_named() -> None:
    with pytest.raises(InputError, match="row 7"):
        rules_of({"key": 7, "instruction_id_list": ["punctuation:no_comma"], "kwargs": []})


def test_task_has_the_shipped_splits_and_the_bare_seed() -> None:
    task = house_style_task()
    assert (len(task.data.train), len(task.data.val), len(task.data.test)) == (120, 90, 90)
    assert dict(task.seed()) == {"system_prompt": SEED_PROMPT}


def test_task_over_other_rows_and_unknown_splits() -> None:
    rows = make_rows(rules=4, per_example=2, overlap=0, rows=10, seed=0)
    assert [example.id for example in house_style_task(rows).data.train] == ["1000", "1001", "1002", "1003"]
    with pytest.raises(InputError, match="row 1000: 'split'"):
        house_style_task([{**rows[0], "split": "dev"}])
