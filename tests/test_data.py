"""Where the benchmark rows that tests read are missing, continuous integration says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.data import find_data


def test_the_folder_is_the_one_that_is_named(tmp_path: Path) -> None:
    assert find_data({"FLOWEVOLVE_DATA": str(tmp_path), "CI": "true"}) == tmp_path


@pytest.mark.parametrize("ci", [{}, {"CI": "false"}])
def test_without_data_tests_are_skipped(ci: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"no benchmark data in .*/missing"):
        find_data({"FLOWEVOLVE_DATA": str(tmp_path / "missing"), **ci})


def test_without_data_tests_fail_in_continuous_integration(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"no benchmark data in .*/missing: put it there, name its folder"):
        find_data({"FLOWEVOLVE_DATA": str(tmp_path / "missing"), "CI": "true"})


def test_they_are_left_out_where_somebody_says_so() -> None:
    with pytest.raises(pytest.skip.Exception, match="FLOWEVOLVE_DATA says"):
        find_data({"FLOWEVOLVE_DATA": "none", "CI": "true"})
