"""Whether evaluators work in a sandbox of their own: how it is tried on the seed, and what works so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.problems.folders.catalog import folder_problem
from flowevolve.programs import EvaluatorProblem, ProgramTask, Verdict
from flowevolve.programs.evaluator import command_problem, with_readable_evaluator, without_evaluator
from flowevolve.sandbox import Sandbox, SandboxPair, SandboxSettings
from tests.support.folder_samples import LEVI, OPENEVOLVE, SHINKA, write
from tests.support.problems import Nearest

pytestmark = pytest.mark.anyio

SETTINGS = SandboxSettings(concurrency=1, timeout=10, memory_mb=256, preload=())
LOAD = """
import importlib.util
def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program
"""


def folder(place: Path, evaluator: str, program: str, **more: str) -> EvaluatorProblem:
    """An OpenEvolve folder; ``more`` are further modules of it."""
    files = {"initial_program.py": program, "evaluator.py": LOAD + evaluator}
    return folder_problem(write(place / "folder", {**files, **{f"{name}.py": text for name, text in more.items()}}))


async def found(problem: EvaluatorProblem, **settings: object) -> ScoreTrust:
    wanted = SETTINGS.model_copy(update=settings)
    async with ProgramTask(problem, with_readable_evaluator(wanted, problem)) as task:
        return await task.find_trust()


async def judged(problem: EvaluatorProblem, program: str, settings: SandboxSettings = SETTINGS) -> Verdict:
    """The verdict on a program that is held apart."""
    seeing = with_readable_evaluator(settings, problem)
    async with Sandbox(seeing) as evaluators, Sandbox(without_evaluator(seeing, problem)) as programs:
        return (await problem.judged(program, SandboxPair(evaluators, programs))).verdict


@pytest.mark.parametrize("files", [OPENEVOLVE, SHINKA, LEVI])
async def test_folders_of_all_systems_work_with_the_evaluator_apart(tmp_path: Path, files: Mapping[str, str]) -> None:
    problem = folder_problem(write(tmp_path / "folder", files))
    assert await found(problem) == ScoreTrust("isolated")


FORMS = {
    "importlib": "def evaluate(path):\n    return {'combined_score': load(path).solve(2)}",
    "__import__": """
import os, sys
def evaluate(path):
    sys.path.insert(0, os.path.dirname(path))
    return {"combined_score": __import__(os.path.basename(path)[:-3]).solve(2)}
""",
    "its text executed": """
def evaluate(path):
    names = {}
    exec(open(path).read(), names)
    return {"combined_score": names["solve"](names["TWO"])}
""",
    "runpy": """
import runpy
def evaluate(path):
    return {"combined_score": runpy.run_path(path)["solve"](2)}
""",
    "another interpreter that imports it": """
import os, subprocess, sys
def evaluate(path):
    code = "import sys; sys.path.insert(0, sys.argv[1]); import candidate_program; print(candidate_program.solve(2))"
    given = [sys.executable, "-c", code, os.path.dirname(path)]
    return {"combined_score": float(subprocess.run(given, capture_output=True, check=True).stdout)}
""",
    "another interpreter that runs it": """
import subprocess, sys
def evaluate(path):
    done = subprocess.run([sys.executable, path, "2"], capture_output=True, text=True, input="3")
    return {"combined_score": float(done.stdout) - done.returncode - len(done.stderr)}
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
def evaluate(path):
    program = load(path)
    with ThreadPoolExecutor(4) as pool:
        return {"combined_score": sum(pool.map(program.solve, [0, 1, 2, 3]))}
""",
    "forks": """
import multiprocessing
def call(number):
    return PROGRAM.solve(number)
def evaluate(path):
    global PROGRAM
    PROGRAM = load(path)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return {"combined_score": sum(pool.map(call, [0, 1, 2, 3]))}
""",
    "objects of the program": """
import inspect
def evaluate(path):
    program = load(path)
    counter = program.Counter(2)
    counter.add(3)
    assert list(inspect.signature(program.total).parameters) == ["counter", "more"]
    return {"combined_score": program.total(counter, more=counter.count)}
""",
    "what a program keeps": """
def evaluate(path):
    program = load(path)
    values = [program.solve(1), program.solve(1), program.CALLS]
    return {"combined_score": sum(values) + load(path).CALLS}
""",
    "its exceptions": """
def evaluate(path):
    program = load(path)
    try:
        program.solve("text")
    except TypeError as error:
        return {"combined_score": len(str(error)), "artifact": str(error), "has": hasattr(program, "nothing")}
""",
    "large arrays": """
import numpy as np
def evaluate(path):
    array = load(path).solve(np.arange(300_000.0).reshape(3, -1))
    return {"combined_score": float(array.sum()), "rows": array.shape[0]}
""",
}
PROGRAM = """
import sys
if __name__ == "__main__":
    FACTOR = 3
else:
    from helper import FACTOR
TWO, CALLS = 2, 0

def solve(number):
    global CALLS
    CALLS += 1
    return number * FACTOR + 1

class Counter:
    def __init__(self, count):
        self.count = count
    def add(self, more):
        self.count += more

def total(counter, more=0):
    return counter.count + more

if __name__ == "__main__":
    print(solve(int(sys.argv[1])) + int(sys.stdin.read()))
    sys.exit(4)
"""


@pytest.mark.parametrize("form", FORMS)
async def test_ways_that_evaluators_take_to_a_program(tmp_path: Path, form: str) -> None:
    problem = folder(
        tmp_path, FORMS[form], PROGRAM, helper="import deeper\nFACTOR = deeper.FACTOR", deeper="FACTOR = 3"
    )
    assert dict(problem.modules) == {"helper.py": "import deeper\nFACTOR = deeper.FACTOR", "deeper.py": "FACTOR = 3"}
    assert await found(problem) == ScoreTrust("isolated")


@pytest.mark.parametrize(
    ("evaluator", "program", "why"),
    [
        (
            "class Graph: pass\ndef evaluate(path):\n    return {'combined_score': load(path).solve(Graph())}",
            "def solve(graph): return 1",
            "the evaluator hands the program a Graph",
        ),
        (
            "def evaluate(path):\n    return {'combined_score': load(path).solve(lambda x: 2)}",
            "def solve(function): return function(1)",
            "the evaluator hands the program a function",
        ),
        (
            "def evaluate(path):\n    return {'combined_score': load(path).solve() + ('import os' in open(path).read())}",
            "def solve(): return 1",
            "the evaluator reads the program's text",
        ),
        (
            "def evaluate(path):\n    return {'combined_score': 1.0 if load(path).solve() > 1 else 0.0}",
            "class Large:\n    def __gt__(self, other): return True\ndef solve(): return Large()",
            "the seed fails apart from its evaluator: error: TypeError",
        ),
        (
            "def evaluate(path):\n    value = load(path).solve()\n    return {'combined_score': float(type(value).__name__ == 'Odd')}",
            "class Odd(int): pass\ndef solve(): return Odd(1)",
            "the seed scores 0, 0 apart from its evaluator, but 1, 1, 1 beside it",
        ),
        (
            "def evaluate(path):\n    return {'combined_score': 1.0, type(load(path).solve()).__name__: 1.0}",
            "class Odd(int): pass\ndef solve(): return Odd(1)",
            "the seed has other metrics apart from its evaluator",
        ),
        (
            "def evaluate(path):\n    return {'combined_score': 1 / 0}",
            "",
            "the seed fails, so whether it works apart from its evaluator can't be tried",
        ),
    ],
)
async def test_evaluators_that_need_the_program_beside_them(
    tmp_path: Path, evaluator: str, program: str, why: str
) -> None:
    trust = await found(folder(tmp_path, evaluator, program))
    assert trust.kind == "shared"
    assert why in trust.why


async def test_scores_that_differ_from_run_to_run_may_differ_between_the_forms(tmp_path: Path) -> None:
    evaluator = "def evaluate(path):\n    return {'combined_score': load(path).solve()}"
    problem = folder(tmp_path, evaluator, "import os\ndef solve(): return 100 + os.urandom(1)[0] / 1e4")
    assert await found(problem) == ScoreTrust("isolated")


async def test_a_command_whose_output_is_the_programs_own_shares_its_sandbox(tmp_path: Path) -> None:
    place = write(tmp_path / "command", {"seed.py": "print(5)"})
    trust = await found(command_problem(("sh", "-c", "python3 $0", "{program}"), place / "seed.py"))
    assert trust.kind == "shared"
    assert "the program itself prints what the command says" in trust.why


async def test_what_settings_and_files_say_needs_no_trial(tmp_path: Path) -> None:
    place = write(tmp_path / "readable", {})
    problem = folder(place, FORMS["importlib"], "def solve(number): return number")
    assert await found(problem, evaluator="shared") == ScoreTrust("shared", 'sandbox.evaluator is "shared"')
    assert await found(problem, evaluator="isolated") == ScoreTrust("isolated")
    assert "which programs can read" in (await found(problem, readable=(place,))).why
    limited = SETTINGS.model_copy(update={"isolation": "limits"})
    assert "sandbox.isolation" in str(ProgramTask(problem, limited).trust)
    assert "sandbox.isolation" in str(ProgramTask(Nearest(), limited).trust)
    assert ProgramTask(Nearest(), SETTINGS).trust == ScoreTrust("isolated")


async def test_what_can_not_be_isolated_is_refused_where_that_is_asked_for(tmp_path: Path) -> None:
    files = {"initial_program.sh": "echo 5", "evaluator.py": FORMS["importlib"]}
    problem = folder_problem(write(tmp_path / "shell", files))
    assert "is not Python" in str(ProgramTask(problem, SETTINGS).trust)
    with pytest.raises(InputError, match=r'sandbox\.evaluator: "isolated" is not possible for .shell.: .* not Python'):
        ProgramTask(problem, SETTINGS.model_copy(update={"evaluator": "isolated"}))


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("def solve(number):\n    while True: pass", "timeout"),
        ("while True: pass", "timeout"),
        ("import os, time\ndef solve(number):\n    os.fork()\n    time.sleep(60)", "timeout"),
        ("import os, signal\ndef solve(number):\n    os.kill(os.getpid(), signal.SIGKILL)", "killed"),
        ("def solve(number):\n    return [bytearray(10**6) for _ in range(10**4)]", "MemoryError"),
        (
            "import os\ndef solve(number):\n    os._exit(0)",
            "error: RuntimeError: the program's process ended before it answered",
        ),
        ("import sys\ndef solve(number):\n    sys.exit(3)", "SystemExit: 3"),
        ("def solve(number):\n    return 1 / 0", "ZeroDivisionError: division by zero"),
        ("def solve(:", "SyntaxError"),
        ("import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
        ("def other(): pass", "AttributeError"),
        ("import evaluator", "No module named 'evaluator'"),
    ],
)
async def test_how_programs_that_are_held_apart_fail(tmp_path: Path, program: str, failure: str) -> None:
    problem = folder(tmp_path, FORMS["importlib"], "def solve(number): return number")
    with anyio.fail_after(30):
        verdict = await judged(
            problem, program, SETTINGS.model_copy(update={"timeout": 0.6 if failure == "timeout" else 10})
        )
    assert (verdict.value, verdict.failure is None) == (0.0, False)
    assert failure in f"{verdict.failure} {verdict.feedback}"


async def test_a_program_that_will_not_end_does_not_keep_its_evaluator_waiting(tmp_path: Path) -> None:
    problem = folder(tmp_path, FORMS["importlib"], "def solve(number): return number")
    stays = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\ndef solve(n): return n"
    with anyio.fail_after(30):
        assert (await judged(problem, stays)).value == 2.0


async def test_a_task_judges_as_it_was_found(tmp_path: Path) -> None:
    problem = folder(tmp_path, FORMS["importlib"], "def solve(number): return number")
    peeks = "import os\ndef solve(number): return float(any('readable' in name for name in os.listdir('/run')))"
    seen: dict[str, float] = {}
    for before in (ScoreTrust("isolated"), ScoreTrust("shared", "it was so")):
        async with ProgramTask(problem, with_readable_evaluator(SETTINGS, problem)) as task:
            assert await task.find_trust(before) == before
            rollout = await task.rollout(Artifact({problem.file: peeks}, kind="program"), task.data.val[0], nobody)
            seen[before.kind] = rollout.score.value
    assert seen == {"isolated": 0.0, "shared": 1.0}


async def nobody(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
    raise AssertionError("a program needs no model")
