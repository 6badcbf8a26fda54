"""OpenEvolve's folders, unchanged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.problems.folders.catalog import folder_problem
from tests.problems.folders.conftest import Judge
from tests.support.folder_samples import OPENEVOLVE, write

pytestmark = pytest.mark.anyio

ENOUGH = "def run():\n    return {}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "totals", OPENEVOLVE)


def test_what_a_folder_is_read_as(folder: Path) -> None:
    problem = folder_problem(folder)
    assert (problem.name, problem.file) == ("totals", "initial_program.py")
    assert problem.seed()["initial_program.py"] == OPENEVOLVE["initial_program.py"]
    assert problem.statement.startswith(
        "Write a function whose total is ten.\n\nThe program is the file initial_program"
    )
    assert [(step.label, step.at_least) for step in problem.steps] == [
        ("evaluate_stage1", 0.5),
        ("evaluate_stage2", 0.9),
        ("evaluate_stage3", None),
    ]
    assert any("could forge its own score" in note for note in problem.notes)


def test_what_has_no_counterpart_is_named_once(folder: Path) -> None:
    (note,) = [note for note in folder_problem(folder).notes if "counterpart" in note]
    assert note == (
        "config.yaml: these settings have no counterpart here, and have no effect: prompt.num_top_programs, database.num_islands"
    )


async def test_stages_up_to_the_threshold(folder: Path, judge: Judge) -> None:
    seed = await judge(folder_problem(folder), None)
    assert seed.failure is None
    assert seed.value == pytest.approx(0.3)
    assert {name: seed.metrics[name] for name in ("value", "gate")} == {"value": 3.0, "gate": 1.0}
    assert "hint: 7 points short" in seed.feedback
    assert "finest" not in seed.metrics

    best = await judge(folder_problem(folder), ENOUGH.format(10))
    assert (best.value, best.metrics["finest"], best.metrics["value"]) == (2.0, 1.0, 10.0)
    assert "log: all is well" in best.feedback

    gated = await judge(folder_problem(folder), "def other(): pass")
    assert (gated.value, gated.failure) == (0.0, None)


async def test_without_a_cascade_it_is_one_call(folder: Path, judge: Judge) -> None:
    (folder / "config.yaml").write_text("evaluator: {cascade_evaluation: false}")
    verdict = await judge(folder_problem(folder), ENOUGH.format(10))
    assert verdict.value == 1.0
    assert [step.label for step in folder_problem(folder).steps] == ["evaluate"]


async def test_arguments_of_evaluators_are_handed_on(tmp_path: Path, judge: Judge) -> None:
    evaluator = "def evaluate(path, bonus=0, **more):\n    return {'combined_score': bonus + more['twice']}\n"
    config = "evaluator: {evaluator_args: {bonus: 2, twice: 4}}"
    folder = write(tmp_path / "given", OPENEVOLVE, evaluator=evaluator, config=config)
    assert (await judge(folder_problem(folder), None)).value == 6.0


async def test_without_a_combined_score_it_is_the_mean_but_for_features(tmp_path: Path, judge: Judge) -> None:
    evaluator = (
        "def evaluate(path):\n    return {'speed': 1.0, 'size': 3, 'length': 100, 'note': 'short', 'odd': float('nan')}"
    )
    config = "database: {feature_dimensions: [length]}"
    folder = write(tmp_path / "mean", OPENEVOLVE, evaluator=evaluator, config=config)
    verdict = await judge(folder_problem(folder), None)
    assert verdict.value == 2.0
    assert "note: short" in verdict.feedback
    assert "odd: nan" in verdict.feedback


async def test_what_an_evaluator_scores_in_spite_of_an_error_has_that_score(tmp_path: Path, judge: Judge) -> None:
    evaluator = "def evaluate(path):\n    return {'combined_score': 0.25, 'error': 'two circles overlap'}"
    verdict = await judge(folder_problem(write(tmp_path / "partly", OPENEVOLVE, evaluator=evaluator, config="")), None)
    assert (verdict.value, verdict.failure) == (0.25, None)
    assert "error: two circles overlap" in verdict.feedback


async def test_metrics_may_stand_beside_artifacts_in_a_dict(tmp_path: Path, judge: Judge) -> None:
    evaluator = "def evaluate(path):\n    return {'metrics': {'combined_score': 0.5}, 'artifacts': {'log': 'slow'}}"
    verdict = await judge(folder_problem(write(tmp_path / "nested", OPENEVOLVE, evaluator=evaluator, config="")), None)
    assert verdict.value == 0.5
    assert "log: slow" in verdict.feedback


async def test_evaluators_may_start_interpreters_and_use_packages(tmp_path: Path, judge: Judge) -> None:
    evaluator = """
import subprocess, sys
import numpy as np
def evaluate(path):
    code = "import numpy, sys; print(numpy.ones(int(sys.argv[1])).sum())"
    done = subprocess.run([sys.executable, "-c", code, "4"], capture_output=True, text=True, check=True)
    return {"combined_score": np.float64(done.stdout), "count": np.int64(2), "many": np.arange(3)}
"""
    folder = write(tmp_path / "numbers", OPENEVOLVE, evaluator=evaluator, config="")
    verdict = await judge(folder_problem(folder), None)
    assert (verdict.value, verdict.metrics["count"]) == (4.0, 2.0)
    assert "many: [0 1 2]" in verdict.feedback


async def test_modules_in_a_package_without_an_init_file(tmp_path: Path, judge: Judge) -> None:
    evaluator = OPENEVOLVE["evaluator.py"].replace("from target", "from tools.target")
    folder = write(tmp_path / "plain", OPENEVOLVE, evaluator=evaluator, target=None)
    (folder / "tools").mkdir()
    (folder / "tools" / "target.py").write_text("TARGET = 10\n")
    assert (await judge(folder_problem(folder), None)).value == pytest.approx(0.3)
    (folder / "tools" / "target.py").write_text("import no_such_package\n")
    with pytest.raises(InputError, match=r"target.py needs no_such_package, which is not installed"):
        folder_problem(folder)


async def test_modules_in_a_folder_that_the_evaluator_puts_on_the_path(tmp_path: Path, judge: Judge) -> None:
    search = "import os, sys\nsys.path.append(os.path.join(os.path.dirname(__file__), 'tools'))\n"
    evaluator = search + OPENEVOLVE["evaluator.py"]
    folder = write(tmp_path / "added", OPENEVOLVE, evaluator=evaluator, target=None)
    (folder / "tools").mkdir()
    (folder / "tools" / "target.py").write_text("TARGET = 10\n")
    problem = folder_problem(folder)
    assert "evaluator.py needs target, and has to add the folder of tools/target.py to sys.path" in problem.notes
    assert (await judge(problem, None)).value == pytest.approx(0.3)


def test_what_the_seed_imports_from_a_package_without_an_init_file_goes_with_it(tmp_path: Path) -> None:
    files = {**OPENEVOLVE, "initial_program.py": "from tools.helper import help_out\nimport numpy\n"}
    folder = write(tmp_path / "helped", files)
    for name in ("tools", "numpy"):
        (folder / name).mkdir()
        (folder / name / "helper.py").write_text("def help_out(): pass\n")
    assert list(folder_problem(folder).modules) == ["tools/helper.py"]


async def test_other_languages(tmp_path: Path, judge: Judge) -> None:
    evaluator = """
import subprocess
def evaluate(path):
    assert path.endswith(".sh")
    return {"combined_score": float(subprocess.run(["sh", path], capture_output=True, text=True).stdout)}
"""
    files = {"initial_program.sh": "echo 5", "evaluator.py": evaluator}
    problem = folder_problem(write(tmp_path / "shell", files))
    assert problem.file == "initial_program.sh"
    assert (await judge(problem, None)).value == 5.0


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("def run():\n    return 1 / 0", "error: ZeroDivisionError: division by zero"),
        ("def run(:", "error: SyntaxError"),
        ("def run():\n    return bytearray(2**32)", "memory"),
        ("import os\nos._exit(0)", "ended without a result"),
        ("def run():\n    return 'many'", "error: TypeError"),
        ("import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
    ],
)
async def test_programs_that_fail(folder: Path, judge: Judge, program: str, failure: str) -> None:
    verdict = await judge(folder_problem(folder), program)
    assert verdict.value == 0.0
    assert verdict.failure is not None
    assert failure in verdict.failure
    assert "\n" not in verdict.failure
    assert verdict.feedback.startswith("evaluate_stage")


@pytest.mark.parametrize(
    ("says", "failure"),
    [
        ("return None", "TypeError: evaluate returned NoneType, not a dict of metrics"),
        ("return 1.0", "TypeError: evaluate returned float"),
        ("return {}", "no score among the metrics (there is no finite number)"),
        ("return {'loss': float('nan')}", "no score among the metrics (there is no finite number)"),
        ("return {'combined_score': float('nan'), 'got': float('nan')}", "combined_score is nan, but has to be finite"),
        ("return {'combined_score': float('inf'), 'speed': 3.0}", "combined_score is inf, but has to be finite"),
        ("return {'validity': 0.0, 'error': 'it is\\ntoo long'}", "it is too long"),
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("import sys; sys.exit(0)", "ended without a result"),
        ("import sys; sys.exit(3)", "error: it ended with exit code 3"),
        ("open(__file__ + '.log', 'w')", "evaluator.py.log': the sandbox does not permit what the program tried"),
        ("yield 1", "TypeError: evaluate returned generator"),
    ],
)
async def test_evaluators_that_fail(tmp_path: Path, judge: Judge, says: str, failure: str) -> None:
    folder = write(tmp_path / "bad", OPENEVOLVE, evaluator=f"def evaluate(path):\n    {says}\n", config="")
    verdict = await judge(folder_problem(folder), "x = 1")
    assert verdict.failure is not None
    assert failure in verdict.failure
    assert "\n" not in verdict.failure
    assert (await judge(folder_problem(folder), None)).failure == verdict.failure


async def test_an_evaluator_that_is_a_coroutine_fails(tmp_path: Path, judge: Judge) -> None:
    folder = write(tmp_path / "async", OPENEVOLVE, evaluator="async def evaluate(path):\n    return {}\n", config="")
    verdict = await judge(folder_problem(folder), None)
    assert str(verdict.failure).startswith("error: TypeError: evaluate returned coroutine")


def test_files_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_text(file.read_text(), encoding="utf-8-sig")
    problem = folder_problem(folder)
    assert problem.seed()["initial_program.py"] == OPENEVOLVE["initial_program.py"]
    assert problem.statement.startswith("Write a function whose total is ten.")


async def test_what_takes_too_long_fails(folder: Path, hurried: Judge) -> None:
    verdict = await hurried(folder_problem(folder), "while True: pass")
    assert (verdict.value, str(verdict.failure).split(":")[0]) == (0.0, "timeout")
    (folder / "evaluator.py").write_text("def evaluate(path):\n    while True: pass")
    seed = await hurried(folder_problem(folder), None)
    assert str(seed.failure).endswith("(sandbox.timeout allows more)")


async def test_a_seed_below_what_failures_score_is_an_error(tmp_path: Path, judge: Judge) -> None:
    folder = write(
        tmp_path / "debts", OPENEVOLVE, evaluator="def evaluate(path):\n    return {'combined_score': -5}", config=""
    )
    seed = await judge(folder_problem(folder), None)
    with pytest.raises(InputError, match=r"scores -5, less than a failure's 0; set task.worst below all scores"):
        folder_problem(folder).check_seed(seed.value)
    folder_problem(folder, worst=-10).check_seed(seed.value)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"evaluator": "def score(path):\n    return {}"},
            "evaluator.py: it defines no function evaluate(program_path)",
        ),
        ({"evaluator": "def evaluate(:"}, "evaluator.py: not valid Python: invalid syntax (line 1)"),
        ({"evaluator": None}, "no problem in this folder; OpenEvolve's have evaluator.py"),
        ({"initial_program": None}, "there is no initial_program.py"),
        ({"config": "a: [1"}, "config.yaml: not valid YAML"),
        ({"config": "- 1"}, "config.yaml: this file has to hold keys and values, but its content is of type list"),
        ({"config": "evaluator: {timeout: soon}"}, "config.yaml: evaluator.timeout"),
        ({"target": "import no_such_package\nTARGET = 1"}, "target.py needs no_such_package, which is not installed"),
        ({"evaluator": "import pycuda\ndef evaluate(path): pass"}, "(pip install pycuda), and there is no GPU"),
        (
            {"evaluator": "from openevolve.llm import x\ndef evaluate(path): pass"},
            "openevolve.llm, which flowevolve has no",
        ),
        ({"initial_program": "from wandb import init"}, "initial_program.py needs wandb"),
    ],
)
def test_folders_that_can_not_be_run(tmp_path: Path, changed: dict[str, str | None], says: str) -> None:
    with pytest.raises(InputError) as error:
        folder_problem(write(tmp_path / "bad", OPENEVOLVE, **changed))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "evaluator",
    [
        "try:\n    from fast import evaluate\nexcept ImportError:\n    def evaluate(path): pass",
        "try:\n    from fast import evaluate\nexcept* ImportError:\n    pass",
        "try:\n    import fast\nexcept* ImportError:\n    def evaluate(path): pass",
        "import sys\nmatch sys.platform:\n    case 'linux':\n        def evaluate(path): pass",
    ],
)
def test_its_function_may_be_defined_in_a_branch(tmp_path: Path, evaluator: str) -> None:
    files = {**OPENEVOLVE, "fast.py": "def evaluate(path): pass"}
    assert folder_problem(write(tmp_path / "branch", files, evaluator=evaluator)).steps[0].label == "evaluate"


def test_without_what_reads_yaml_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(
        InputError, match=r"config.yaml: reading this file needs PyYAML; pip install 'flowevolve\[openevolve\]'"
    ):
        folder_problem(folder)
    (folder / "config.yaml").unlink()
    assert folder_problem(folder).file == "initial_program.py"


def test_what_may_be_missing_is_a_note(tmp_path: Path) -> None:
    evaluator = (
        "try:\n    import cupy\nexcept ImportError:\n    cupy = None\ndef evaluate(path):\n    import no_such_package"
    )
    notes = folder_problem(write(tmp_path / "maybe", OPENEVOLVE, evaluator=evaluator)).notes
    assert any(
        note.startswith("evaluator.py needs cupy") and note.endswith("this matters only if it is imported")
        for note in notes
    )
    assert any("no_such_package" in note for note in notes)


@pytest.mark.parametrize(
    "imported",
    [
        "try:\n    import cupy\nexcept* ImportError:\n    cupy = None",
        "from contextlib import suppress\nwith suppress(ImportError):\n    import cupy",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import cupy",
        "match 1:\n    case 2:\n        import cupy",
    ],
    ids=["except_star", "suppress", "contextlib_suppress", "match"],
)
def test_an_import_that_may_fail_or_is_only_made_in_some_cases_is_a_note(tmp_path: Path, imported: str) -> None:
    evaluator = f"{imported}\ndef evaluate(path):\n    pass\n"
    notes = folder_problem(write(tmp_path / "maybe", OPENEVOLVE, evaluator=evaluator)).notes
    assert any(
        note.startswith("evaluator.py needs cupy") and note.endswith("this matters only if it is imported")
        for note in notes
    )


def test_an_import_under_another_with_is_needed(tmp_path: Path) -> None:
    evaluator = "import warnings\nwith warnings.catch_warnings():\n    import cupy\ndef evaluate(path):\n    pass\n"
    with pytest.raises(InputError, match=r"evaluator.py needs cupy"):
        folder_problem(write(tmp_path / "needed", OPENEVOLVE, evaluator=evaluator))


def test_of_several_programs_it_takes_the_one_in_python(tmp_path: Path) -> None:
    folder = write(tmp_path / "two", {**OPENEVOLVE, "initial_program.md": "# About"})
    assert folder_problem(folder).file == "initial_program.py"
    (folder / "initial_program.py").unlink()
    (folder / "initial_program.rs").write_text("fn main() {}")
    with pytest.raises(InputError, match=r"several files could be the program: initial_program.md, initial_program.rs"):
        folder_problem(folder)


async def test_a_program_can_forge_its_score_but_reads_nothing_of_ours(folder: Path, judge: Judge) -> None:
    forged = """
import json, os, sys
seen = [name for top in ("/root", "/home", "/tmp") for name in (os.listdir(top) if os.path.isdir(top) else [])]
report = {"metrics": {"combined_score": 99.0, "seen": float(len([n for n in seen if "pytest" in n]))}, "texts": {}, "failure": None}
os.write(3, json.dumps(report).encode())
os._exit(0)
"""
    (folder / "config.yaml").write_text("evaluator: {cascade_evaluation: false}")
    verdict = await judge(folder_problem(folder), forged)
    assert (verdict.value, verdict.metrics["seen"]) == (99.0, 0.0)
