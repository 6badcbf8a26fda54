"""``flowevolve run FOLDER``: what configuration a folder comes to, and whole runs from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.runner.problem_folder import load_folder
from flowevolve.runner.result import Result
from tests.support.command import flowevolve
from tests.support.folder_samples import LEVI, OPENEVOLVE, SHINKA, write

COMMAND = {"first.py": "VALUE = 3\n", "score.py": "import sys\nprint(len(open(sys.argv[1]).read()))\n"}
SHARED = """
import importlib.util


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return {"combined_score": program.larger(program.run(), lambda number: number + 1)}
"""
TRIED = "note: whether the evaluator works in a sandbox of its own is tried on the seed as the run begins"
QUICK = ("--set", "clock=virtual", "--set", "budget.evaluations=4", "--set", "sandbox.memory_mb=512")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "totals", OPENEVOLVE)


def test_what_config_yaml_says_becomes_a_configuration(folder: Path) -> None:
    config = load_folder(folder).config
    assert (config.algorithm.name, config.algorithm.settings) == ("one_plus_lambda", {"form": "whole"})
    assert (config.task.name, config.task.settings) == ("program", {"folder": str(folder)})
    assert (config.budget.proposals, config.seed) == (7, 3)
    assert (config.sandbox.timeout, config.sandbox.concurrency, config.sandbox.memory_mb) == (20, 1, 2048)
    assert (config.llm.backend, config.sim.world, config.llm.base_url) == ("sim", "code", None)


def test_overrides_go_first_and_a_budget_replaces_the_iterations(folder: Path) -> None:
    config = load_folder(folder, ["budget.evaluations=50", "sandbox.timeout=5", "algorithm.name=cse"]).config
    assert (config.budget.evaluations, config.budget.proposals) == (50, None)
    assert (config.sandbox.timeout, config.algorithm.name, config.algorithm.settings) == (5, "cse", {"form": "whole"})


def test_the_llm_of_config_yaml_is_taken_when_a_real_one_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of a server on this machine that wants one")
    found = load_folder(folder, ["llm.backend=openai"])
    llm = found.config.llm
    assert (llm.model, llm.base_url, llm.temperature, llm.extra) == ("big", "http://localhost:1/v1", 0.5, {})
    assert llm.api_key_env == "OPENAI_API_KEY"
    assert [(model.model, model.weight) for model in llm.roles["code"].models] == [("big", 1.0), ("small", 0.2)]
    assert (
        "config.yaml: llm.api_key is not taken over; put the key into the environment variable OPENAI_API_KEY"
        in found.notes
    )
    simulated = load_folder(folder)
    assert any("names big, small, but this run's LLM is simulated" in note for note in simulated.notes)


@pytest.mark.parametrize(
    ("address", "variable"),
    [
        ("http://localhost:1/v1", None),
        ("http://127.0.0.1:1/v1", None),
        ("https://models.example/v1", "OPENAI_API_KEY"),
    ],
)
def test_a_server_on_this_machine_needs_no_key(
    address: str, variable: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = f"llm: {{primary_model: m, api_base: '{address}'}}"
    folder = write(tmp_path / "local", OPENEVOLVE, config=config)
    assert load_folder(folder, ["llm.backend=openai"]).config.llm.api_key_env == variable


def test_an_address_that_is_none_is_refused_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    folder = write(tmp_path / "local", OPENEVOLVE, config="llm: {primary_model: m, api_base: 'http://[::1'}")
    with pytest.raises(InputError, match=r"llm\.base_url: this is no address"):
        load_folder(folder, ["llm.backend=openai"])


@pytest.mark.parametrize(
    "files", [{**OPENEVOLVE, "config.yaml": ""}, SHINKA, LEVI], ids=["openevolve", "shinka", "levi"]
)
def test_without_a_time_limit_it_is_openevolves_default(files: dict[str, str], tmp_path: Path) -> None:
    assert load_folder(write(tmp_path / "unhurried", files)).config.sandbox.timeout == 300


def test_without_a_word_on_the_budget_it_is_said(tmp_path: Path) -> None:
    found = load_folder(write(tmp_path / "squares", SHINKA))
    assert found.config.budget.proposals == 100
    assert (
        "no budget is given, so the run gets 100 proposals (--set budget.proposals=... gives it others)" in found.notes
    )


@pytest.mark.parametrize("override", ["budget.evaluatons=3", "task.folders=x", "sandbox.timeout=0", "nonsense"])
def test_mistakes_in_overrides_are_told(folder: Path, override: str, tmp_path: Path) -> None:
    done = flowevolve("run", str(folder), "--set", override, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("files", "score"), [(OPENEVOLVE, 0.3), (SHINKA, 6.0), (LEVI, 20.0)], ids=["openevolve", "shinka", "levi"]
)
def test_a_run_from_the_command_line(files: dict[str, str], score: float, tmp_path: Path) -> None:
    folder = write(tmp_path / "problem", files)
    done = flowevolve("run", "problem", "--out", "out", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(TRIED) == 1
    assert done.stdout.splitlines()[-3] == "scores isolated: programs can't reach what scores them"
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (result["score_trust"], result["shared_because"]) == ("isolated", None)
    assert result["seed_score"] == pytest.approx(score)
    assert result["best"]["score"] >= result["seed_score"]
    assert result["stages"]["assess"]["items_in"] >= 4
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)  # it is as it was


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ('folder = "problem"', OPENEVOLVE),
        ('command = ["python3", "score.py", "{program}"]\nprogram = "problem/first.py"', COMMAND),
    ],
    ids=["folder", "command"],
)
def test_a_config_file_with_an_evaluator_says_so_too(task: str, problem: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "problem", problem)
    budget = (
        'clock = "virtual"\n[budget]\nevaluations = 2\n[sim]\nworld = "code"\n[algorithm]\nname = "one_plus_lambda"'
    )
    (tmp_path / "run.toml").write_text(f'{budget}\n[task]\nname = "program"\n{task}\n')
    for command in ("run", "check"):
        done = flowevolve(command, "run.toml", cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(TRIED) == 1


def test_whether_scores_could_be_forged_is_told_everywhere(tmp_path: Path) -> None:
    program = OPENEVOLVE["initial_program.py"] + "\n\ndef larger(number, function):\n    return function(number)\n"
    folder = write(tmp_path / "problem", OPENEVOLVE, evaluator=SHARED, initial_program=program, config="")
    out = tmp_path / "out"
    ran = flowevolve("run", "problem", "--out", "out", *QUICK, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = "scores shared: a program could forge its own score, as the evaluator hands the program a function"
    assert told in " ".join(ran.stdout.split())

    result = json.loads((out / "result.json").read_text())
    assert (result["score_trust"], result["shared_because"]) == ("shared", told.rpartition(" as ")[2])
    reported = flowevolve("report", "out", cwd=tmp_path)
    assert told in " ".join(reported.stdout.split())
    assert told in " ".join(flowevolve("export", "out", cwd=tmp_path).stdout.split())
    rows = [json.loads(line) for line in (out / "export" / "candidates.jsonl").read_text().splitlines()]
    assert {row["score_trust"] for row in rows} == {"shared"}

    write(folder, OPENEVOLVE, initial_program=program, config="")  # works apart, but the run has begun otherwise
    more = flowevolve("resume", "out", "--set", "budget.evaluations=6", cwd=tmp_path)
    assert more.returncode == 0, more.stdout + more.stderr
    assert more.stdout.count("out: the evaluator has changed since the run began; from now on the new one is used") == 1
    assert json.loads((out / "result.json").read_text())["score_trust"] == "shared"

    apart = flowevolve("run", "problem", "--out", "next", "--from", "out", *QUICK, cwd=tmp_path)
    assert apart.returncode == 0, apart.stdout + apart.stderr
    assert "start.run: the evaluator changed since out began, and its scores are taken over as they" in apart.stdout

    write(folder, OPENEVOLVE, initial_program=program + "\n\ndef unused(): pass\n", config="")
    refused = flowevolve("resume", "out", "--set", "budget.evaluations=8", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("the program that evolution starts from has changed since")) == (
        2,
        1,
    )

    write(folder, OPENEVOLVE, initial_program=program, config="")
    (tmp_path / "elsewhere").mkdir()
    folder.rename(tmp_path / "elsewhere" / "problem")
    gone = flowevolve("resume", "out", "--set", "budget.evaluations=8", cwd=tmp_path)
    assert (gone.returncode, gone.stderr.count("if it has moved, set task.folder to where it is now")) == (2, 1)
    place = f"task.folder={tmp_path / 'elsewhere' / 'problem'}"
    moved = flowevolve("resume", "out", "--set", "budget.evaluations=8", "--set", place, cwd=tmp_path)
    assert moved.returncode == 0, moved.stdout + moved.stderr
    (tmp_path / "elsewhere" / "problem").rename(tmp_path / "renamed")
    place = f"task.folder={tmp_path / 'renamed'}"
    renamed = flowevolve("resume", "out", "--set", "budget.evaluations=10", "--set", place, cwd=tmp_path)
    assert renamed.returncode == 0, renamed.stdout + renamed.stderr
    begun = flowevolve("run", "renamed", "--out", "third", "--from", "out", *QUICK, cwd=tmp_path)
    assert begun.returncode == 0, begun.stdout + begun.stderr
    (tmp_path / "renamed").rename(tmp_path / "again")
    write(tmp_path / "other", OPENEVOLVE, config="")
    other = flowevolve("run", "other", "--out", "fourth", "--from", "out", *QUICK, cwd=tmp_path)
    assert (other.returncode, other.stderr.count("are of task 'problem'")) == (2, 1), other.stderr
    replayed = flowevolve("replay", "out", "--set", f"task.folder={tmp_path / 'again'}", cwd=tmp_path)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr

    for name in ("score_trust", "shared_because"):  # as in files of earlier versions
        del result[name]
    (out / "result.json").write_text(json.dumps(result))
    assert Result.load(out).score_trust is None
    old = flowevolve("report", "out", cwd=tmp_path)
    assert old.returncode == 0
    assert "scores shared" not in old.stdout


@pytest.mark.parametrize("algorithm", ["one_plus_lambda", "best_of_n", "code_evolve"])
def test_without_a_seed_program_it_is_said_which_algorithm_can_begin(algorithm: str, tmp_path: Path) -> None:
    write(tmp_path / "bins", LEVI, problem=LEVI["problem.py"].replace("SEED = ", "OTHER = "), run=None)
    done = flowevolve("run", "bins", *QUICK, "--set", f"algorithm.name={algorithm}", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    (error,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert error.endswith('levi can begin with a seed that fails (algorithm.name = "levi")')


def test_check_takes_a_folder_too(folder: Path, tmp_path: Path) -> None:
    done = flowevolve("check", str(folder), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "totals: fine" in done.stdout
    assert (
        "note: no program was run: a run scores the seed first, and ends at once if a working seed scores less than "
        "task.worst, the 0 of a program that fails\n"
    ) in done.stdout


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"evaluator": None}, "no problem in this folder"),
        ({"evaluator": "x = 1"}, "it defines no function evaluate"),
        ({"evaluator": "import no_such_package\ndef evaluate(path): pass"}, "needs no_such_package"),
        ({"evaluator": "def evaluate(path): return 3", "config": ""}, "TypeError: evaluate returned int"),
        ({"evaluator": "def evaluate(path): raise OSError('no data')", "config": ""}, "OSError: no data"),
        ({"evaluator": "def evaluate(path):\n    while True: pass", "config": "evaluator: {timeout: 1}"}, "timeout"),
        ({"initial_program": "1 +"}, "not valid Python"),
    ],
)
def test_bad_folders_are_one_line_and_exit_code_2(changed: dict[str, str | None], says: str, tmp_path: Path) -> None:
    write(tmp_path / "bad", OPENEVOLVE, **changed)
    done = flowevolve("run", "bad", "--out", "out", *QUICK, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    (error,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert says in error
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        load_folder(tmp_path / "nowhere")
