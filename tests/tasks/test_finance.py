"""FiNER and XBRL Formula: reading answers and scoring them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.task import Dataset, Example, Task
from flowevolve.tasks.catalog import DataSource, finer, formula
from flowevolve.tasks.finance import Formula, score_number, score_tags


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("DebtFace,LineOfCredit", 1.0),
        ("I think so.\nAnswer: debtface, LineOfCredit", 1.0),
        ("Answer: 'DebtFace', Other", 0.5),
        ("LineOfCredit,DebtFace", 0.0),
        ("DebtFace", 0.5),
        ("Answer: DebtFace, LineOfCredit\n\nThe answer is based on the context.", 1.0),
        ("**Answer:** DebtFace, LineOfCredit\n\nI hope this answer is of use to you.", 1.0),
        ("Answer: DebtFace, Other\n\nNo, the answer is DebtFace, LineOfCredit", 1.0),
        ("Answer: what a debt's face is", 0.0),
        ("", 0.0),
    ],
)
def test_tags_count_in_their_place(output: str, value: float) -> None:
    score = score_tags(output, "DebtFace,LineOfCredit")
    assert score.value == value
    assert score.passed == (value == 1)
    assert "LineOfCredit" in score.feedback


@pytest.mark.parametrize(
    ("output", "right"),
    [
        ("15.0", True),
        ("Answer: 15", True),
        ("Answer: $15.001", True),
        ("The margin:\nAnswer: 15.00%", True),
        ("The answer is: 15", True),
        ("Answer: 15 USD", True),
        (r"\boxed{15\%}", True),
        ("Answer: 15\n\nI hope this answer is helpful.", True),
        ("Answer: 15 million", False),
        ("Answer: 150 basis points", False),
        ("Answer: (15)", False),
        ("Answer: 15 tn", False),
        ("Answer: 15 mio", False),
        ("Answer: 15 mrd", False),
        ("Answer: 15 lakhs", False),
        ("Answer: 15 hundredths", False),
        ("Answer: 1:5", False),
        ("Answer: 15 per", False),
        ("Answer: 15 USD per share", True),
        ("Answer: $15.00 per cent", True),
        ("Answer: 15 to 16 USD", False),
        ("Answer: 14.9", False),
        ("Answer: 3 * 5", False),
        ("Answer: __import__('os')", False),
        ("", False),
    ],
)
def test_numbers_count_to_two_decimals_and_nothing_is_evaluated(output: str, right: bool) -> None:
    assert score_number(output, "15.0").passed is right


def test_a_row_without_a_number_is_named() -> None:
    rows = [Example("7", {"context": "How much?", "target": "a lot"})]
    with pytest.raises(InputError, match="row 7"):
        Formula(Dataset(rows, rows))


@pytest.mark.parametrize(
    ("make", "train", "val"),
    [
        (formula, "xbrl_formula/xbrl_formula_ace_train.jsonl.gz", "xbrl_formula/xbrl_formula_ace_val.jsonl"),
        (finer, "finer/finer_ace_test_batched.jsonl.gz", "finer/finer_ace_val_batched.jsonl.gz"),
        (finer, "finer/finer_single_train.jsonl", "finer/finer_single_val.jsonl"),
    ],
)
def test_the_published_rows_load(make: Callable[[DataSource], Task], train: str, val: str, data_dir: Path) -> None:
    task = make(DataSource(train=data_dir / train, val=data_dir / val))
    assert len(task.data.train) >= 200
    assert len(task.data.val) >= 100
