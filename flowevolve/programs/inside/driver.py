"""Runs one step of an evaluator on a program, inside of the sandbox, and returns the evaluator's report as plain data.

Each entry function returns ``{"metrics": {name: number}, "texts": {name: text}, "failure": text or None}``, where
``failure`` is None for a program that works. An exception of the evaluator is not caught: it ends the sandboxed process
with its traceback.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import os
import runpy
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType

LONGEST = 20_000
"""The most characters that are passed on from one text."""
MOST = 40
"""The most texts, and the most metrics, that are passed on."""
_CANDIDATE = "candidate_program"
"""A program's file name. It differs from the seed's, which evaluators could otherwise import from the folder."""

_ENTRIES = ("openevolve", "shinka", "levi", "command")
Said = dict[str, object]
Validate = Callable[[object], tuple[bool, str | None]]


def apart(entry: str, **given: object) -> Said:
    """Call one of the other functions on a stand-in for the program, which is in a sandbox of its own.

    The result also has ``notes``: what the evaluator needs but can't have while the program is isolated from it.
    """
    from flowevolve.sandbox.inside import stand_in  # noqa: PLC0415 - of use in this way only

    stand_in.offer(standard_output=entry == "command")
    functions: dict[str, Callable[..., Said]] = {name: globals()[name] for name in _ENTRIES}
    try:
        said = functions[entry](program=stand_in.TEXT, **given)
    except Exception:
        if not stand_in.notes():
            raise
        traceback.print_exc()
        said = {"metrics": {}, "texts": {}, "failure": "; ".join(stand_in.notes())}
    return {**said, "notes": stand_in.notes()}


def openevolve(
    folder: str, program: str, name: str, evaluator: str, function: str, keywords: Mapping[str, object]
) -> Said:
    """Call one of an OpenEvolve evaluator's functions: ``evaluate``, ``evaluate_stage1``, ..."""
    path = _place(folder, program, name)
    _supply("openevolve", {})
    _supply("openevolve.evaluation_result", {"EvaluationResult": EvaluationResult})
    said = getattr(_load(folder, evaluator, "evaluation_module"), function)(path, **keywords)
    if isinstance(said, dict) and isinstance(said.get("metrics"), dict):
        said = EvaluationResult(said["metrics"], said.get("artifacts") or {})
    if inspect.iscoroutine(said):
        said.close()  # so that its warning does not hide the error below
    metrics, artifacts = getattr(said, "metrics", said), getattr(said, "artifacts", {})
    if not isinstance(metrics, dict) or not isinstance(artifacts, dict):
        raise TypeError(f"{function} returned {type(said).__name__}, not a dict of metrics or an EvaluationResult")
    error = metrics.get("error")
    unscored = isinstance(error, str) and error and _number(metrics.get("combined_score")) is None
    return _said(metrics, artifacts, error if unscored else None, "combined_score")


def shinka(folder: str, program: str, name: str, evaluator: str) -> Said:
    """Run a ShinkaEvolve evaluator as from its command line."""
    path = _place(folder, program, name)
    for module in ("shinka", "shinka.core", "shinka.core.wrap_eval"):
        _supply(module, {"run_shinka_eval": run_shinka_eval, "save_json_results": save_json_results})
    results = tempfile.mkdtemp(prefix="results-")
    sys.argv = [evaluator, "--program_path", path, "--results_dir", results]
    try:
        runpy.run_path(str(Path(folder, evaluator)), run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0) and not Path(results, "metrics.json").exists():
            raise RuntimeError(f"{evaluator} ended with {error.code!r} and without metrics") from None
    if not Path(results, "metrics.json").exists():
        raise FileNotFoundError(f"{evaluator} wrote no metrics.json")
    metrics = json.loads(Path(results, "metrics.json").read_text(encoding="utf-8"))
    if not isinstance(metrics, dict):
        raise TypeError(f"metrics.json holds {type(metrics).__name__}, not an object")
    public = metrics.pop("public", None)
    metrics.pop("private", None)
    correct = Path(results, "correct.json")
    verdict = json.loads(correct.read_text(encoding="utf-8")) if correct.exists() else {"correct": True}
    failure = None if verdict.get("correct") else str(verdict.get("error") or "not correct")
    return _said({**(public if isinstance(public, dict) else {}), **metrics}, {}, failure, "combined_score")


def levi(folder: str, program: str, name: str, problem: str, function: str, score: str, inputs: str | None) -> Said:
    """Call a LEVI score function on the function of this name that the program defines."""
    path = _place(folder, program, name)
    module = _load(folder, problem, "problem")
    names: dict[str, object] = {"__name__": "candidate", "__source_code__": program}
    exec(compile(program, path, "exec"), names)  # noqa: S102 - it is in the sandbox
    found = names.get(function)
    if not isinstance(found, FunctionType):
        raise NameError(f"the program defines no function {function}")
    data = None if inputs is None else getattr(module, inputs)
    said = _score(getattr(module, score), found, data() if callable(data) else data)
    if not isinstance(said, dict):
        raise TypeError(f"{score} returned {type(said).__name__}, not a dict")
    return _said(said, {}, str(said["error"]) if said.get("error") else None, "score")


def command(folder: str, program: str, name: str, words: Sequence[str]) -> Said:
    """Run a command that prints a number, or JSON with a score. ``{program}`` in it stands for the program's path."""
    path = _place(folder, program, name)
    given = [word.replace("{program}", path) for word in words]
    done = subprocess.run(given, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    sys.stderr.write(done.stderr)
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}")
    lines = done.stdout.strip().splitlines()
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = json.loads(lines[-1]) if lines else None
    if isinstance(said, int | float):
        said = {"score": said}
    if not isinstance(said, dict):
        raise TypeError(f"{words[0]} printed no number and no JSON object")
    return _said(said, {}, str(said["error"]) if said.get("error") else None, "score")


@dataclass
class EvaluationResult:
    """A replacement for OpenEvolve's class, with what evaluators use of it."""

    metrics: dict[str, float]
    artifacts: dict[str, str | bytes] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, metrics: dict[str, float]) -> EvaluationResult:
        return cls(metrics)

    def to_dict(self) -> dict[str, float]:
        return self.metrics

    def has_artifacts(self) -> bool:
        return bool(self.artifacts)

    def get_artifact_keys(self) -> list[str]:
        return list(self.artifacts)

    def get_artifact_size(self, key: str) -> int:
        value = self.artifacts.get(key, "")
        return len(value if isinstance(value, bytes) else str(value).encode())

    def get_total_artifact_size(self) -> int:
        return sum(self.get_artifact_size(key) for key in self.artifacts)


def run_shinka_eval(
    program_path: str,
    results_dir: str,
    experiment_fn_name: str,
    num_runs: int,
    get_experiment_kwargs: Callable[[int], dict[str, object]] | None = None,
    aggregate_metrics_fn: Callable[[list[object]], dict[str, object]] | None = None,
    validate_fn: Validate | None = None,
    default_metrics_on_error: dict[str, object] | None = None,
    **_: object,
) -> tuple[dict[str, object], bool, str | None]:
    """Run the experiment, check and aggregate its results, and write both files, as ShinkaEvolve's function does.

    Runs go one after the other; settings that only concern their scheduling are ignored.
    """
    results: list[object] = []
    seconds: list[float] = []
    errors: list[str] = []
    metrics: dict[str, object] = {}
    try:
        place = Path(program_path)
        experiment = getattr(_load(str(place.parent), place.name, "program"), experiment_fn_name)
        for number in range(num_runs):
            keywords = get_experiment_kwargs(number) if get_experiment_kwargs else {"seed": number + 1}
            start = time.perf_counter()
            results.append(experiment(**keywords))
            seconds.append(time.perf_counter() - start)
            valid, why = validate_fn(results[-1]) if validate_fn else (True, None)
            if not valid:
                errors.append(f"Validation failed: {why}" if why else "Validation failed")
        metrics = dict(aggregate_metrics_fn(results)) if aggregate_metrics_fn else {"num_successful_runs": len(results)}
        metrics["execution_time_mean"] = sum(seconds) / len(seconds) if seconds else 0.0
    except Exception as error:  # noqa: BLE001 - whatever the program raises is its failure
        traceback.print_exc()
        errors.insert(0, f"{type(error).__name__}: {error}")
        metrics = {"combined_score": 0.0, **(default_metrics_on_error or {})}
    metrics.pop("extra_data", None)
    failure = errors[0] if errors else None
    save_json_results(results_dir, metrics, not errors, failure)
    return metrics, not errors, failure


def save_json_results(results_dir: str, metrics: Mapping[str, object], correct: bool, error: str | None = None) -> None:
    """Write the two result files of an evaluation, as ShinkaEvolve's function does."""
    folder = Path(results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    verdict = {"correct": bool(correct), "error": error}
    (folder / "correct.json").write_text(json.dumps(verdict), encoding="utf-8")
    (folder / "metrics.json").write_text(json.dumps(metrics, default=_plain), encoding="utf-8")


def _place(folder: str, program: str, name: str) -> str:
    """Write the program to a file, and make the folder's modules importable and its entries openable. Returns the
    program's path.
    """
    work = Path(tempfile.mkdtemp(prefix="work-"))
    for entry in Path(folder).iterdir():
        (work / entry.name).symlink_to(entry)
    os.chdir(work)
    sys.path.insert(0, folder)
    standard = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), sys.base_prefix)
    packages = [entry for entry in sys.path[1:] if not entry.startswith(standard) or "-packages" in entry]
    os.environ["PYTHONPATH"] = os.pathsep.join(packages)  # for interpreters that the evaluator starts
    path = Path(tempfile.mkdtemp(prefix="program-"), f"{_CANDIDATE}{Path(name).suffix}")
    path.write_text(program, encoding="utf-8")
    return str(path)


def _load(folder: str, file: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(folder, file))
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _supply(name: str, contents: Mapping[str, object]) -> None:
    """Provide a module with these names for evaluators to import; it becomes an attribute of its package, too."""
    module = ModuleType(name)
    module.__dict__.update(contents)
    module.__path__ = []
    sys.modules[name] = module
    package, _, last = name.rpartition(".")
    if package:
        setattr(sys.modules[package], last, module)


def _score(score: Callable[..., object], function: FunctionType, inputs: object) -> object:
    """Call the score function, with the inputs if it takes them."""
    parameters = inspect.signature(score).parameters.values()
    by_place = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = sum(each.default is each.empty for each in by_place)
    takes_two = len(by_place) >= 2 or any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if takes_two and (inputs is not None or required >= 2):
        return score(function, [] if inputs is None else inputs)
    return score(function)


def _said(
    metrics: Mapping[object, object], artifacts: Mapping[object, object], failure: str | None, score: str
) -> Said:
    """The report: finite numbers as metrics, and everything else as texts. ``score`` names the metric that is the
    score; if that is a number, it has to be finite.
    """
    scored = _number(metrics.get(score))
    if failure is None and scored is not None and not math.isfinite(scored):
        failure = f"{score} is {scored}, but has to be finite"
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for key, value in [*metrics.items(), *artifacts.items()]:
        number = _number(value) if key in metrics and key not in artifacts else None
        if number is not None and math.isfinite(number):
            if len(numbers) < MOST:
                numbers[str(key)[:200]] = number
        elif len(texts) < MOST and value is not None:
            texts[str(key)[:200]] = _text(value)
    return {"metrics": numbers, "texts": texts, "failure": None if failure is None else failure[:LONGEST]}


def _number(value: object) -> float | None:
    plain = None if value is None else _plain(value)
    try:
        return float(plain) if isinstance(plain, int | float) else None
    except OverflowError:
        return math.inf


def _plain(value: object) -> object:
    """A numpy scalar as a Python number, an array as a list, and objects of other types as texts."""
    for name in ("item", "tolist"):
        if name == "tolist" or getattr(value, "size", None) == 1:
            convert: object = getattr(value, name, None)
            if callable(convert):
                return convert()
    return value if isinstance(value, int | float | str | list | dict) else str(value)


def _text(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text[:LONGEST].encode("utf-8", "replace").decode()
