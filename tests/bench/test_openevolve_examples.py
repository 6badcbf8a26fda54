"""The table of which example folders run."""

from __future__ import annotations

from pathlib import Path

from bench.openevolve_examples.folders import FolderResult, folders, table
from tests.support.folder_samples import OPENEVOLVE, write


def test_folders_of_all_systems_are_found_and_others_left_out(tmp_path: Path) -> None:
    write(tmp_path / "totals", OPENEVOLVE)
    write(tmp_path / "shinka", {"evaluate.py": "", "initial.py": ""})
    write(tmp_path / "levi", {"problem.py": ""})
    write(tmp_path / "figures", {"plot.py": ""})
    write(tmp_path / "shinka" / "openevolve_output", {"evaluator.py": ""})
    assert [folder.relative_to(tmp_path).as_posix() for folder in folders(tmp_path)] == [
        "levi",
        "shinka",
        "totals",
    ]


def test_a_row_says_where_a_folder_is_from_and_what_came_of_it() -> None:
    ran = FolderResult("one", True, 0.25, 0.5, 4, 3, source="someone/fork@1234567")
    failed = FolderResult("two", False, why="needs what is not here")
    rows = table([ran, failed]).splitlines()
    assert rows[0] == "1 of 2 folders ran."
    assert rows[-2:] == [
        "| `one` | someone/fork@1234567 | yes | 0.25 → 0.5 | 3 of 4 |",
        "| `two` |  | no | | needs what is not here |",
    ]
