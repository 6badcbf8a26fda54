"""Which programs live: the best of each cell, or the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.json_types import JSON
from flowevolve.archives.elites import Best, Cells, Elites, Mapped
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Candidate

GRID = Cells("grid", 2, 16)
CVT = Cells("cvt", 2, 12)


def program(name: str, score: float, seconds: float = 1.0, failure: str | None = None, source: str = "") -> Candidate:
    attributes: dict[str, JSON] = {"failure": failure, "metrics": {"seconds": seconds}}
    return Candidate(
        name, Artifact({"program.py": source or f"x = {name!r}"}, "program"), attributes=attributes
    ).scored({"one": score})


def entered(elites: Elites, programs: Sequence[Candidate]) -> set[str]:
    for each in programs:
        elites.enter(each)
    return {each.id for each in elites}


def mapped(cells: Cells = GRID, ranges: Mapping[str, tuple[float, float]] | None = None) -> Mapped:
    return Mapped(cells, ("fitness", "seconds"), ranges or {})


UNIT = {"fitness": (0.0, 1.0), "seconds": (0.0, 10.0)}


def test_a_cell_keeps_its_best_and_of_equals_the_first() -> None:
    programs = [program("a", 0.80, 1), program("b", 0.85, 1.5), program("c", 0.85, 1.2), program("d", 0.80, 2)]
    assert entered(mapped(ranges=UNIT), programs) == {"b"}


def test_programs_of_different_cells_live_side_by_side() -> None:
    programs = [program("good", 0.9, 9), program("quick", 0.9, 1), program("bad", 0.1, 1), program("worse", 0.05, 1)]
    assert entered(mapped(ranges=UNIT), programs) == {"good", "quick", "bad"}


def test_what_failed_has_no_cell() -> None:
    assert entered(mapped(), [program("a", 0.0, failure="timeout"), program("b", 0.1)]) == {"b"}


def test_what_lies_beyond_a_given_range_is_at_its_end() -> None:
    programs = [program("a", 0.9, 9.9), program("b", 0.95, 1000), program("c", 0.1, -5), program("d", 0.2, 0)]
    assert entered(mapped(ranges=UNIT), programs) == {"b", "d"}


def test_features_can_be_of_the_text_or_of_the_problem() -> None:
    elites = Mapped(GRID, ("loop_count", "gap"), {"loop_count": (0, 4), "gap": (0, 1)})
    plain = program("plain", 0.5)
    loops = program("loops", 0.4, source="for i in x:\n for j in x:\n  for k in x: pass")
    assert entered(elites, [plain, loops, program("again", 0.3)]) == {"plain", "loops"}


def test_features_are_those_of_all_files() -> None:
    elites = Mapped(GRID, ("loop_count", "seconds"), {"loop_count": (0, 4), "seconds": (0, 10)})
    plain = program("plain", 0.5)
    helper = {"helper.py": "from __future__ import annotations\nfor i in x:\n for j in x:\n  for k in x: pass"}
    several = replace(program("several", 0.4), artifact=Artifact({**plain.artifact, **helper}, "program"))
    assert entered(elites, [plain, several]) == {"plain", "several"}


def test_a_program_that_does_not_parse_and_a_score_that_is_no_number_do_no_harm() -> None:
    elites = Mapped(GRID, ("fitness", "length"), {})
    assert entered(elites, [program("c", float("-inf"), source="int main() {}"), program("b", 0.5)]) >= {"b"}


SCORED = st.lists(
    st.tuples(st.floats(-100, 100), st.floats(0, 60)).map(lambda pair: (round(pair[0], 3), round(pair[1], 3))),
    min_size=1,
    max_size=40,
    unique_by=lambda pair: pair[0],
)


@pytest.mark.parametrize("cells", [GRID, CVT], ids=["grid", "cvt"])
@given(scored=SCORED)
def test_the_best_always_lives_and_growing_ranges_leave_nobody_in_a_wrong_cell(
    cells: Cells, scored: list[tuple[float, float]]
) -> None:
    programs = [program(str(number), score, seconds) for number, (score, seconds) in enumerate(scored)]
    grown = mapped(cells)
    found = entered(grown, programs)
    spans = {
        "fitness": (min(score for score, _ in scored), max(score for score, _ in scored)),
        "seconds": (min(seconds for _, seconds in scored), max(seconds for _, seconds in scored)),
    }
    assert max(programs, key=lambda each: each.mean_score).id in found
    if all(low < high for low, high in spans.values()):
        assert found == entered(mapped(cells, spans), programs)


def test_a_tessellation_is_the_same_every_time() -> None:
    points = [[place / 10, 1 - place / 10] for place in range(11)]
    first, second = (Cells("cvt", 2, 12).index_of(points) for _ in range(2))
    assert first == second
    assert len(set(first)) > 3


def test_a_lattice_has_as_many_cells_as_fit() -> None:
    cells = Cells("grid", 2, 60)
    points = [[x / 20, y / 20] for x in range(21) for y in range(21)]
    assert len(set(cells.index_of(points))) == 49


def test_a_full_population_takes_only_what_is_better_than_its_worst() -> None:
    elites = Best(3)
    assert entered(elites, [program("a", 0.1), program("b", 0.3), program("f", 0.0, failure="no")]) == {"a", "b", "f"}
    assert entered(elites, [program("c", 0.1)]) == {"a", "b", "c"}
    assert entered(elites, [program("d", 0.1)]) == {"a", "b", "c"}
    assert entered(elites, [program("e", 0.2), program("g", 0.9, failure="no")]) == {"a", "b", "e"}
