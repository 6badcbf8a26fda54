"""Which rows a method is given, and what is said of files that are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.confirm.rows import SHIPPED, Sizes, default_rows, task_to_evolve, whole_task
from flowevolve._util.errors import InputError

SIZES = Sizes(5, 3, 4)


def test_rows_held_out_are_not_given_to_a_method() -> None:
    whole, given = whole_task(SHIPPED, None, SIZES), task_to_evolve(SHIPPED, None, SIZES)
    assert (len(whole.data.train), len(whole.data.val), len(whole.data.test)) == (5, 3, 4)
    assert list(given.data) == [*whole.data.train, *whole.data.val]
    assert not {row.id for row in whole.data.test} & {row.id for row in given.data}


def test_the_files_are_those_of_the_data_sets(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "ifbench.jsonl").symlink_to(data_dir / "ifbench" / "ifbench_test.jsonl")
    (tmp_path / "hotpotqa.jsonl.gz").symlink_to(data_dir / "hotpotqa" / "hotpotqa_train100_context.jsonl.gz")
    assert default_rows(tmp_path) == ["ifbench", "hotpotqa"]
    for name in default_rows(tmp_path):
        assert len(whole_task(name, tmp_path, SIZES).data.test) == 4


def test_ifbench_rows_may_have_the_nulls_of_the_hub(tmp_path: Path) -> None:
    kwargs = {"N": None, "keyword1": "kaleidoscope", "keyword2": "nebula", "keyword3": "whisper",
              "keyword4": "labyrinth", "keyword5": "paradox"}  # fmt: skip
    row = {"key": "0", "prompt": "Write.", "instruction_id_list": ["count:keywords_multiple"], "kwargs": [kwargs]}
    (tmp_path / "ifbench.jsonl").write_text("\n".join(json.dumps({**row, "key": str(key)}) for key in range(12)))
    assert len(list(whole_task("ifbench", tmp_path, SIZES).data)) == 12


def test_a_missing_file_is_said_with_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no ifbench\.jsonl .*github\.com/allenai/IFBench .*save them there as"):
        whole_task("ifbench", tmp_path, SIZES)
    with pytest.raises(InputError, match=r"--rows hotpotqa: needs a folder .* as --data; .*hotpotqa\.github\.io"):
        whole_task("hotpotqa", None, SIZES)


def test_too_few_rows_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    row = {"question": "Who?", "answer": "he", "context": [["He", "He did."]]}
    (tmp_path / "hotpotqa.jsonl").write_text("\n".join([json.dumps(row)] * 11))
    with pytest.raises(
        InputError,
        match=r"hotpotqa\.jsonl: the sizes of the splits add up to 12 rows, but the data has 11 .*--held-out",
    ):
        whole_task("hotpotqa", tmp_path, SIZES)
