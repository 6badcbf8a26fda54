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
    ran = FolderResult("one", True, 0.25, 0.5, 4, 3, source="someone/fork@1234567", score_trust="isolated")
    failed = FolderResult("two", False, why="needs what is not here")
    beside = FolderResult(
        "three", True, 0.0, 0.0, 4, 4, score_trust="shared", shared_because="it hands over a function"
    )
    rows = table([ran, failed, beside]).splitlines()
    assert rows[0] == "2 of 3 folders ran."
    assert rows[-7:] == [
        "| `one` | someone/fork@1234567 | yes | 0.25 → 0.5 | 3 of 4 |",
        "| `two` |  | no | | needs what is not here |",
        "| `three` |  | yes | 0 → 0 | 4 of 4 |",
        "",
        "1 evaluators worked in a sandbox of their own, and these did not:",
        "",
        "- `three`: it hands over a function",
    ]
