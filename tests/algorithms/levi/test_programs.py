"""LEVI over programs, with the world `code` and the real sandbox on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.algorithms.levi.evaluate import SYNTAX, Describe
from flowevolve.algorithms.levi.map_elites import Described, MapElites
from flowevolve.config.run import Config, parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Candidate
from flowevolve.runner.result import Result
from tests.support.cells import cells_of
from tests.support.problems import SEED
from tests.support.whole_runs import evolve

LITTLE: Mapping[str, object] = {"name": "levi", "max_in_flight": 4, "seeds": 2, "variants": 4, "advice_every": 10}


def config(algorithm: Mapping[str, object] | None = None, **sections: object) -> Config:
    settings: dict[str, object] = {
        "clock": "virtual",
        "algorithm": {**LITTLE, **(algorithm or {})},
        "task": {"name": "program", "problem": "tests.support.problems:Nearest", "cases": 2},
        "sandbox": {"preload": [], "concurrency": 2, "timeout": 5},
        "llm": {"roles": {"large": {"model": "large-coder"}, "small": {"model": "small-coder"}}},
        "sim": {"world": "code"},
        "budget": {"evaluations": 60},
    }
    return parse_config(settings | sections, "test")


def evaluated(result: Result) -> list[Candidate]:
    updates = result.report.pool.updates_between(0)
    return [each.candidate for update in updates for each in update.changes if isinstance(each, Add)]


@pytest.mark.parametrize("form", ["edits", "whole"])
def test_a_run_comes_far_from_a_bad_seed(form: str) -> None:
    result, _ = evolve(config({"form": form}, budget={"evaluations": 120}))
    assert result.report.error is None
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > 0.3 * result.seed_score  # both are negative
    assert {each.operator for each in evaluated(result)} == {"seed", "diverse", "variant", "mutate", "shift"}


def test_programs_are_told_apart_by_their_syntax_and_their_scores() -> None:
    result, _ = evolve(config({"outputs": ["scores", "seconds"]}))
    archive = MapElites()
    for update in result.report.pool.updates_between(0):
        archive.apply(update)
    assert archive.space is not None
    names = [*SYNTAX, "score case0", "score case1", "seconds"]
    assert list(archive.space.scales) == names
    assert list(Described.of(archive.candidates[0]).descriptor) == names
    cells = cells_of(archive.elites, archive.space)
    assert len(set(cells)) == len(cells) > 1


def test_programs_that_fail_are_turned_down_and_remembered() -> None:
    result, _ = evolve(config({"cascade_examples": 1}, budget={"evaluations": 80}))
    failed = [each for each in evaluated(result) if each.attributes["failure"] is not None]
    assert failed
    assert {result.report.pool.status(each.id) for each in failed} == {"rejected"}


def test_a_cascade_works_for_negative_scores() -> None:
    result, _ = evolve(config({"cascade_examples": 1}, budget={"evaluations": 80}))
    stopped = [each for each in evaluated(result) if str(each.attributes["failure"]).startswith("cascade")]
    assert stopped
    assert all(each.scores["case1"] == -1e6 for each in stopped)
    better = [each for each in evaluated(result) if each not in stopped and each.operator == "mutate"]
    assert better


def test_a_seed_that_fails_is_no_end_where_others_work(tmp_path: Path) -> None:
    task = {"name": "program", "problem": "tests.support.problems:Nearest", "source": "def guess(shift): return 'x'"}
    with pytest.raises(InputError, match="works; the last failed: give a list of 4 numbers"):
        evolve(config({"seeds": 1, "seed_tries": 2}, task=task))


def test_a_seed_that_a_scorer_of_yours_turns_down_is_no_end(tmp_path: Path) -> None:
    (tmp_path / "seed.py").write_text(SEED)
    task = {
        "name": "program",
        "program": str(tmp_path / "seed.py"),
        "entry": "guess",
        "evaluator": "tests.support.problems:all_but_the_seed",
        "cases": [{"shift": 0}],
        "worst": -1e6,
    }
    result, _ = evolve(config(task=task, budget={"evaluations": 60}))
    assert result.report.error is None
    seed = evaluated(result)[0]
    assert seed.attributes["failure"] == "ValueError: the seed will not do"
    assert result.best is not None
    assert result.best.score > -1e6


def test_features_of_what_is_no_python() -> None:
    describe = Describe(Artifact({"main.c": ""}, kind="program"), lambda: ["one"], None, None)
    assert describe(Artifact({"main.c": "int x;\nint y;"}, kind="program"), {"one": 2.0}, {}) == {"length": 13.0}
    wanted = Describe(Artifact({"p.py": ""}, kind="program"), lambda: ["one", "two"], ["loop_count", "lines"], None)
    found = wanted(Artifact({"p.py": "for x in y:\n    pass"}, kind="program"), {"one": 2.0, "two": 0.0}, {})
    assert found == {"lines": 2.0, "loop_count": 1.0, "score one": 2.0, "score two": 0.0}
    broken = wanted(Artifact({"p.py": "for x in"}, kind="program"), {"one": 2.0, "two": 0.0}, {})
    assert broken == {"lines": 1.0, "score one": 2.0, "score two": 0.0}


def test_programs_of_several_files_are_told_apart_by_all_of_them() -> None:
    task = {"name": "program", "problem": "tests.support.problems:NearestInFiles"}
    result, _ = evolve(config(task=task, budget={"evaluations": 40}))
    assert result.report.error is None
    seed = evaluated(result)[0]
    assert len(seed.artifact) == 2
    descriptor = Described.of(seed).descriptor
    assert (descriptor["cyclomatic_complexity"], descriptor["comprehension_count"]) == (4.0, 2.0)


def test_features_that_no_candidate_has_are_named_with_what_to_set(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    old = tmp_path / "old.py"
    old.write_text("print 'Python 2'\n")
    task = {"name": "program", "program": str(old), "command": ["sh", "-c", "wc -l < $0", "{program}"]}
    with pytest.raises(InputError, match=r"algorithm\.features: no candidate .* be read as Python, .*length, lines"):
        evolve(config({"seeds": 0}, task=task))


def test_many_scores_are_told_apart_by_groups() -> None:
    cases = [str(number) for number in range(20)]
    describe = Describe(Artifact({"p": "x"}), lambda: cases, (), None)
    found = describe(Artifact({"p": "x"}), {name: float(name) for name in cases}, {})
    assert len(found) == 8
    assert found["score 0"] == 0.5
    assert list(found) == list(describe.names())
