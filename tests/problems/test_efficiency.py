"""Programs judged on tests and measured."""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.problems.efficiency import EfficiencyProblem, Figures, Procedure, Trial, difference, rules
from tests.problems.conftest import Court

DOUBLE = "import sys\nfor line in sys.stdin:\n    print(2 * int(line))\n"
TRIALS = (Trial("1\n2\n", "2\n4\n"), Trial("21", "42"), Trial("", ""))
QUICK = Procedure(timeout=5.0, memory_mb=64, runs=3)


def problem(
    *trials: Trial, source: str = DOUBLE, reference: str | None = None, procedure: Procedure = QUICK
) -> EfficiencyProblem:
    return EfficiencyProblem("double", "Double the numbers.", source, trials or TRIALS, reference, procedure)


def test_what_is_right_is_worth_what_its_integral_says(court: Court) -> None:
    verdict = court.judge(problem(reference=DOUBLE))
    assert verdict.failure is None
    metrics = verdict.metrics
    assert verdict.value == 1 / (metrics["integral"] + 0.001)
    assert 0 < metrics["integral"] < metrics["seconds"] * metrics["peak_mb"] * 1.1
    assert set(metrics) == {"integral", "seconds", "peak_mb", "et", "mp", "mi"}
    assert verdict.feedback.startswith("All 3 tests are right. They take ")
    assert " MB·s. A reference takes " in verdict.feedback


def test_without_a_reference_there_are_no_ratios(court: Court) -> None:
    passed, lost = court.judge(problem()), court.judge(problem(), "print(0)")
    assert set(passed.metrics) == {"integral", "seconds", "peak_mb"}
    assert set(lost.metrics) == {"seconds"}
    assert "reference" not in passed.feedback


def test_the_reference_is_measured_once_in_a_sandbox(court: Court) -> None:
    judged = problem(reference=DOUBLE)
    slower = [f"{DOUBLE}for _ in range({count}): pass\n" for count in (400_000, 600_000)]
    verdicts = [court.judge(judged, source) for source in slower]
    first, second = (verdict.metrics["mi"] * verdict.metrics["integral"] for verdict in verdicts)
    assert first == pytest.approx(second, rel=1e-9)


def test_a_reference_that_fails_is_the_users_mistake(court: Court) -> None:
    with pytest.raises(InputError, match=r"'double': the reference fails: test 1 of 3: line 1 must be '2', not '0'"):
        court.judge(problem(reference="print(0)"))


@pytest.mark.parametrize(
    ("source", "failure", "says"),
    [
        ("print(open(0).read())", "test 1 of 3: line 1 must be '2', not '1'", "It reads\n1\n2"),
        ("print(2)\nprint(4)\nprint(8)", "test 1 of 3: line 3 must be missing, not '8'", "is wrong"),
        (
            f"{DOUBLE}import sys\nsys.stdin.seek(0)\nif sys.stdin.read() == '21': raise ValueError('no')",
            "error: ValueError: no",
            "It was at test 2 of 3, which reads\n21",
        ),
        ("1 +", "error: SyntaxError: invalid syntax", "1 +"),
        ("import sys\nsys.exit(3)", "error: RuntimeError: the program exited with 3", "It was at test 1 of 3"),
        ("x = bytearray(2 ** 28)", "memory: MemoryError", "It was at test 1 of 3"),
        ("import os\nos._exit(0)", "error: the program ended without a result", "It was at test 1 of 3"),
    ],
)
def test_what_failed_is_said(source: str, failure: str, says: str, court: Court) -> None:
    verdict = court.judge(problem(reference=DOUBLE), source)
    assert verdict.value == 0
    assert verdict.failure == failure
    assert says in verdict.feedback
    assert {name: verdict.metrics[name] for name in ("et", "mp", "mi")} == {"et": 0, "mp": 0, "mi": 0}


def test_who_takes_too_long_hears_where(court: Court) -> None:
    endless = DOUBLE + "sys.stdin.seek(0)\nwhile sys.stdin.read() == '21': sys.stdin.seek(0)\n"
    verdict = court.judge(problem(procedure=replace(QUICK, timeout=2.0)), endless)
    assert verdict.failure is not None
    assert verdict.failure.startswith("timeout")
    assert "It was at test 2 of 3" in verdict.feedback


def test_long_texts_are_cut(court: Court) -> None:
    verdict = court.judge(problem(Trial("1" * 5000, "2" * 5000)), "print('3' * 5000)")
    assert verdict.failure is not None
    assert len(verdict.failure) < 600
    assert len(verdict.feedback) < 2000
    assert "and 4400 characters more" in verdict.feedback


def test_who_is_right_only_when_nobody_measures_has_failed(court: Court) -> None:
    sly = "import sys\nmeasured = not sys._getframe(2).f_locals['tell']\n" + DOUBLE + "if measured: print(1)\n"
    verdict = court.judge(problem(), sly)
    assert verdict.failure == "test 1 of 3: line 3 must be missing, not '1'"


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nprint(*(2 * int(x) for x in sys.stdin.buffer.read().split()), sep='\\n')\nsys.exit()",
        "print(*(2 * int(x) for x in open(0).read().split()), sep='\\n')\nexit(0)",
        "with open(0) as f: text = f.read()\nimport os\nos.write(1, '\\n'.join(str(2 * int(x)) for x in text.split()).encode())",
        "import sys\ntext = sys.stdin.read()\nsys.stdin.close()\nfor x in text.split(): print(2 * int(x))\nsys.stdout.close()",
        "import os\nfor x in os.read(0, 100).split(): os.system(f'echo {2 * int(x)}')",
        "def main():\n    while True:\n        try: print(2 * int(input()))\n        except EOFError: return\nif __name__ == '__main__': main()",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"
        + DOUBLE,
    ],
)
def test_programs_read_and_print_as_they_like(source: str, court: Court) -> None:
    assert court.judge(problem(), source).failure is None


def test_a_test_finds_nothing_of_the_one_before(court: Court) -> None:
    source = "import __main__\nassert not hasattr(__main__, 'kept')\nkept = [0] * 1000\n" + DOUBLE
    assert court.judge(problem(), source).failure is None


@pytest.mark.parametrize(("together", "kept"), [(None, "1 2 3 4 5"), (2, "1 2 1 2 1"), (1, "1 1 1 1 1")])
def test_tests_share_a_process_as_the_protocol_says(together: int | None, kept: str, court: Court) -> None:
    """What imported modules hold stays as long as the process does."""
    trials = [Trial("", count) for count in kept.split()]
    source = "import math\nmath.count = getattr(math, 'count', 0) + 1\nprint(math.count)\n"
    verdict = court.judge(problem(*trials, procedure=replace(QUICK, together=together)), source)
    assert verdict.failure is None
    assert verdict.metrics["integral"] > 0


def test_packages_other_than_numpy_are_refused(court: Court) -> None:
    verdict = court.judge(problem(), "import pydantic\n" + DOUBLE)
    assert verdict.failure is not None
    assert "'pydantic' can't be imported here" in verdict.failure


def test_programs_of_several_files_are_run(court: Court) -> None:
    class Two(EfficiencyProblem):
        def seed(self) -> Artifact:
            files = {
                "program.py": "import helper\nhelper.main()\n",
                "helper.py": f"def main():\n{indent(DOUBLE, '    ')}",
            }
            return Artifact(files, kind="program")

    assert court.judge(Two("two", "", "", TRIALS, None, QUICK)).failure is None


@pytest.mark.parametrize(
    ("expected", "answer", "same"),
    [
        ("1 2\n3", "1 2\n3\n", True),
        ("1 2\n3\n", "1 2  \r\n3 \n\n", True),
        ("", "\n", True),
        ("1 2", "1  2", False),
        ("1\n\n2", "1\n2", False),
        ("1", " 1", False),
        ("1", 1, False),
        ("1", None, False),
    ],
)
def test_space_at_the_ends_of_lines_is_free(expected: str, answer: JSON, same: bool) -> None:
    assert (difference(expected, answer) is None) is same


@given(st.text(), st.text())
def test_a_difference_is_told_in_one_line(expected: str, answer: str) -> None:
    told = difference(expected, answer)
    assert told is None or told.isprintable()
    assert difference(expected, expected) is None
    assert (told is None) == (difference(answer, expected) is None)


def test_ratios_are_the_references_figures_over_the_programs_up_to_five() -> None:
    reference = Figures(integral=10.0, seconds=1.0, peak_mb=30.0)
    assert reference.over(Figures(5.0, 4.0, 30.0)) == {"et": 0.25, "mp": 1.0, "mi": 2.0}
    assert reference.over(Figures(0.1, 0.2, 1.0)) == {"et": 5.0, "mp": 5.0, "mi": 5.0}
    assert reference.over(Figures(0.0, 0.2, 1.0))["mi"] == 5.0
    assert Figures(0.0, 1.0, 1.0).over(Figures(0.0, 4.0, 1.0))["mi"] == 1.0


@pytest.mark.parametrize("wrong", [{"runs": 2}, {"timeout": 0.0}, {"memory_mb": 0}, {"together": 0}])
def test_a_protocol_that_measures_nobody_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"^task\.\w+ is .*, but has to be (at least [13]|above 0)"):
        replace(QUICK, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("together", "said"),
    [
        (None, "with 10 seconds and 64 MB of memory to run them in"),
        (1, "each with 10 seconds and 64 MB of memory to run in"),
        (2, "each 2 of them with 10 seconds and 64 MB of memory to run in"),
        (3, "with 10 seconds and 64 MB of memory to run them in"),
    ],
)
def test_a_statement_says_what_its_limits_are_of(together: int | None, said: str) -> None:
    assert f"There are 3 tests; all must be right, {said}." in rules(3, Procedure(memory_mb=64, together=together))
