"""Folders that differ between machines are told from folders that don't."""

from __future__ import annotations

from pathlib import Path

from flowevolve.sandbox.nodes.folders import fingerprint


def test_what_programs_could_read_of_a_folder_counts(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "evaluator.py").write_text("def evaluate(): ...")
        (tmp_path / name / "inner" / "rows.csv").write_text("1,2")
    here, there = tmp_path / "a", tmp_path / "b"
    (here / "__pycache__").mkdir()
    (here / "__pycache__" / "evaluator.pyc").write_text("")
    assert fingerprint([here]) == fingerprint([there])
    (there / "inner" / "rows.csv").write_text("1,3")
    assert fingerprint([here]) != fingerprint([there])
    (there / "inner" / "rows.csv").rename(there / "inner" / "others.csv")
    (there / "inner" / "others.csv").write_text("1,2")
    assert fingerprint([here]) != fingerprint([there])
