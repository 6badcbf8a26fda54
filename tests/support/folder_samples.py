"""Problem folders of other systems' forms, written for these tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

OPENEVOLVE: Mapping[str, str] = {
    "initial_program.py": """\
# EVOLVE-BLOCK-START
def total():
    return 3
# EVOLVE-BLOCK-END


def run():
    return total()
""",
    "evaluator.py": """\
import importlib.util
import json
import os

from openevolve.evaluation_result import EvaluationResult
from target import TARGET


def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def evaluate_stage1(program_path):
    return {"combined_score": float(hasattr(load(program_path), "run"))}


def evaluate_stage2(program_path):
    value = load(program_path).run()
    with open("unit.json") as file:
        unit = json.load(file)["unit"]
    with open("scratch.txt", "w") as file:
        file.write(str(value))
    score = 1 - abs(TARGET - value) / TARGET
    return EvaluationResult(
        {"combined_score": score, "value": value, "gate": score > 0.1}, {"hint": f"{TARGET - value} {unit} short"}
    )


def evaluate_stage3(program_path):
    return EvaluationResult({"combined_score": 2.0, "finest": 1.0}, {"log": b"all is well"})


def evaluate(program_path):
    return evaluate_stage2(program_path)
""",
    "target.py": "TARGET = 10\n",
    "unit.json": '{"unit": "points"}',
    "config.yaml": """\
max_iterations: 7
random_seed: 3
diff_based_evolution: false
llm:
  primary_model: big
  secondary_model: small
  api_base: http://localhost:1/v1
  api_key: sk-not-for-us
  temperature: 0.5
  top_p:
prompt:
  system_message: Write a function whose total is ten.
  num_top_programs: 5
database:
  num_islands: 4
evaluator:
  timeout: 20
  parallel_evaluations: 1
  cascade_thresholds: [0.5, 0.9]
""",
}

SHINKA: Mapping[str, str] = {
    "initial.py": """\
# EVOLVE-BLOCK-START
def square(x):
    return 1.0 * x * x
# EVOLVE-BLOCK-END


def run_experiment(numbers, offset=0):
    return [square(number) + offset for number in numbers]
""",
    "evaluate.py": """\
import argparse

from shinka.core import run_shinka_eval


def arguments(number):
    return {"numbers": list(range(number + 1))}


def validate(result):
    return (all(each >= 0 for each in result), "a square is never negative")


def aggregate(results):
    total = sum(sum(each) for each in results)
    return {
        "combined_score": float(total), "public": {"runs": len(results)}, "private": {"secret": 1.0},
        "text_feedback": "larger is better", "extra_data": object(),
    }


def main(program_path, results_dir):
    metrics, correct, error = run_shinka_eval(
        program_path=program_path, results_dir=results_dir, experiment_fn_name="run_experiment", num_runs=3,
        get_experiment_kwargs=arguments, validate_fn=validate, aggregate_metrics_fn=aggregate, run_workers=2,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", default="initial.py")
    parser.add_argument("--results_dir", default="results")
    given = parser.parse_args()
    main(given.program_path, given.results_dir)
""",
    "run_evo.py": """\
from shinka.core import EvolutionConfig

search_task_sys_msg = "Make the " + "squares large."
config = EvolutionConfig(task_sys_msg=search_task_sys_msg, num_generations=3)
""",
}

LEVI: Mapping[str, str] = {
    "problem.py": '''\
LIMIT = 10
PROBLEM_DESCRIPTION = f"""
# Packing
Fill bins of size {LIMIT}.
"""
FUNCTION_SIGNATURE = "def pack(items):\\n    pass\\n"
SEED = """
def pack(items):
    bins = []
    for item in items:
        if len(bins) > 9:
            bins[-1].append(item)
        else:
            bins.append([item])
    return bins
""".strip()


def get_items():
    return [[4, 6, 5], [5, 5]]


def score_fn(pack, inputs):
    used = 0
    for items in inputs:
        bins = pack(items)
        if sorted(item for each in bins for item in each) != sorted(items):
            return {"error": "items are missing"}
        if any(sum(each) > LIMIT for each in bins):
            return {"score": 0.0, "error": "a bin is too full"}
        used += len(bins)
    return {"score": 100.0 / used, "bins": used}
''',
    "run.py": """\
import levi
from problem import FUNCTION_SIGNATURE, PROBLEM_DESCRIPTION, SEED, get_items, score_fn

levi.evolve_code(
    PROBLEM_DESCRIPTION, function_signature=FUNCTION_SIGNATURE, seed_program=SEED, score_fn=score_fn,
    inputs=get_items(), model="m", budget_evals=3,
)
""",
}


def write(folder: Path, files: Mapping[str, str], **changed: str | None) -> Path:
    """A folder with these files, some changed (named without suffix), or left out where they are None."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # for the user that programs run as
    for name, text in files.items():
        said = changed.get(Path(name).stem, text)
        if said is not None:
            (folder / name).write_text(said, encoding="utf-8")
    return folder
