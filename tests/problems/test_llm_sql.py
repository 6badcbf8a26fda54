"""Tables for a cache of prefixes: hits are counted, and rows are neither lost nor changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.problems.llm_sql import LlmSql, adrs_score, hit_rate, shared
from tests.support.problem_checks import refusal, score

TABLE = "kind,name\na,xx\nb,yy\na,xx\n"


@pytest.fixture
def problem(tmp_path: Path) -> LlmSql:
    path = tmp_path / "table.csv"
    path.write_text(TABLE, encoding="utf-8")
    return LlmSql(path)


def test_hits_by_hand(problem: LlmSql) -> None:
    assert problem.cases[0].arguments == {"columns": ["kind", "name"], "rows": [["a", "xx"], ["b", "yy"], ["a", "xx"]]}
    assert score(problem, [[0, [0, 1]], [1, [0, 1]], [2, [0, 1]]]).value == pytest.approx(3 / 9)
    assert score(problem, [[0, [0, 1]], [1, [0, 1]], [2, [1, 0]]]).value == 0  # in this order it begins with x


@given(st.lists(st.text("ab", max_size=6), max_size=12))
def test_any_earlier_text_counts(texts: list[str]) -> None:
    hits = 0
    for place, text in enumerate(texts):
        lengths = [max(k for k in range(len(text) + 1) if other[:k] == text[:k]) for other in texts[:place]]
        hits += max(lengths, default=0)
    assert hit_rate(texts) == pytest.approx(hits / max(1, sum(map(len, texts))))


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_what_two_texts_share(one: str, other: str) -> None:
    assert shared(one, other) == max(k for k in range(min(len(one), len(other)) + 1) if one[:k] == other[:k])


def test_scores_in_levis_scale() -> None:
    """The best published program and the seed of LEVI's run, with the metrics that stand beside their scores."""
    assert adrs_score(0.7910719290473193, 0.06967553065447491, 1.1537425518035889) == pytest.approx(78.0884574405753)
    assert adrs_score(0.06967553065447491, 0.06967553065447491, 0.1439809799194336) == pytest.approx(4.928009510040283)


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ([], "the rows must have 3 entries, not 0"),
        ([[0, [0, 1]]] * 3, "row 0 is there twice"),
        ([[0, [0, 0]], [1, [0, 1]], [2, [0, 1]]], "row 0's columns has 0 twice"),
        ([[0, [0]], [1, [0, 1]], [2, [0, 1]]], "row 0's columns must have 2 entries, not 1"),
        ([[3, [0, 1]], [1, [0, 1]], [2, [0, 1]]], "row 0's number must be from 0 to 2, not 3"),
        ([["a", "xx"], ["a", "xx"], ["a", "xx"]], "row 0's number must be a whole number, not a text"),
    ],
)
def test_wrong_orders_are_refused(problem: LlmSql, result: object, says: str) -> None:
    assert refusal(problem, result).startswith(says)


def test_all_tables_of_a_folder_are_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(TABLE, encoding="utf-8")
    assert [case.id for case in LlmSql(tmp_path).cases] == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there are no rows"),
        ("a,b\n", "there are no rows"),
        ("a,b\n1,2\n3\n", r"row 3 has another number of cells \(1\) than row 1 \(2\)"),
    ],
)
def test_tables_that_are_wrong_are_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"table\.csv: {says}"):
        LlmSql(path)


def test_a_folder_without_tables_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no CSV file"):
        LlmSql(tmp_path)
    with pytest.raises(InputError, match="can't be read as CSV"):
        LlmSql(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="has to be at least 2"):
        LlmSql(rows=1)
