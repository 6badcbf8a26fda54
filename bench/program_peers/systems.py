"""The systems that are compared: how each is configured, started and resumed, and which file has its best program.

Each is run by its own command in an environment of its own (``.venv-peers/NAME``, made by `make peers`), and gets
everything through its own settings. ``settings`` lists for the page what differs from its defaults.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench._lib.paths import ROOT
from bench.program_peers.folders import Form, statement
from flowevolve._util.cores import usable_cores

ENVIRONMENTS = ROOT / ".venv-peers"
MODEL = "simulated"
CORES = len(usable_cores())


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a system. ``calls`` is its budget, in the system's own unit; ``timeout`` the seconds of an evaluation.

    ``place`` holds its problem's ``folder``, and the folder ``out`` that it writes to.
    """

    problem: str
    url: str
    calls: int
    width: int
    seed: int
    timeout: float
    place: Path

    @property
    def folder(self) -> Path:
        return self.place / "folder"

    @property
    def out(self) -> Path:
        return self.place / "out"


@dataclass(frozen=True, slots=True)
class System:
    """``command`` starts a run or, if its second argument is True, resumes one that was killed. ``best`` is the file
    with the best program. A system without ``package`` is ours.
    """

    name: str
    form: Form
    command: Callable[[Job, bool], Sequence[str]]
    best: str
    settings: Sequence[str]
    package: str | None = None
    version: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    python_path: Sequence[Path] = ()

    def ready(self) -> bool:
        return self.package is None or (ENVIRONMENTS / self.package / ".installed").is_file()


def _program(package: str, name: str) -> str:
    return str(ENVIRONMENTS / package / "bin" / name)


def _ours(job: Job, again: bool) -> list[str]:
    command = [sys.executable, "-m", "flowevolve"]
    if again:
        return [*command, "resume", str(job.out)]
    settings = {
        "llm.backend": "openai",
        "llm.base_url": job.url,
        "llm.model": MODEL,
        "budget.proposals": job.calls,
        "algorithm.max_in_flight": job.width,
        "sandbox.timeout": job.timeout,
        "seed": job.seed,
    }
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    return [*command, "run", str(job.folder), "--out", str(job.out), *given]


def _openevolve(job: Job, again: bool) -> list[str]:
    settings = {
        "random_seed": job.seed,
        "checkpoint_interval": 1,
        "llm": {"api_base": job.url, "api_key": "none", "primary_model": MODEL},
        "prompt": {"system_message": statement(job.problem)},
        "evaluator": {"parallel_evaluations": job.width, "timeout": int(job.timeout)},
    }
    return _iterations(job, again, settings, _program("openevolve", "openevolve-run"))


def _skydiscover(job: Job, again: bool) -> list[str]:
    settings = {
        "random_seed": job.seed,
        "checkpoint_interval": 1,
        "llm": {
            "api_base": job.url,
            "api_key": "none",
            "models": [{"name": MODEL, "api_base": job.url, "api_key": "none"}],
        },
        "prompt": {"system_message": statement(job.problem)},
        "evaluator": {"parallel_evaluations": job.width, "timeout": int(job.timeout)},
    }
    return _iterations(job, again, settings, _program("skydiscover", "skydiscover-run"))


def _iterations(job: Job, again: bool, settings: Mapping[str, object], program: str) -> list[str]:
    """The command line that OpenEvolve and SkyDiscover share. The settings are JSON, which is YAML, too."""
    file = job.place / "settings.yaml"
    file.write_text(json.dumps(settings))
    done, checkpoint = 0, list[str]()
    if again and (kept := sorted(job.out.glob("checkpoints/checkpoint_*"), key=_iteration)):
        done, checkpoint = _iteration(kept[-1]), ["--checkpoint", str(kept[-1])]
    given = ["--config", str(file), "--output", str(job.out), "--iterations", str(job.calls - done)]
    return [program, str(job.folder / "initial_program.py"), str(job.folder / "evaluator.py"), *given, *checkpoint]


def _iteration(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("_")[2])


def _shinka(job: Job, again: bool) -> list[str]:
    """The command that starts a run also resumes it."""
    model = f"local/{MODEL}@{job.url}"
    seconds = int(job.timeout)
    settings = {
        "evo.llm_models": json.dumps([model]),
        "evo.embedding_model": model,
        "evo.task_sys_msg": statement(job.problem),
        "job.time": f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}",
    }
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    width = ["--max-proposal-jobs", str(job.width), "--max-evaluation-jobs", str(job.width)]
    place = ["--task-dir", str(job.folder), "--results_dir", str(job.out), "--num_generations", str(job.calls + 1)]
    return [_program("shinka-evolve", "shinka_run"), *place, *width, *given]


def _levi(job: Job, again: bool) -> list[str]:
    snapshot = job.out / "snapshot.json"
    done = 0
    if again and snapshot.exists():
        done = int(json.loads(snapshot.read_text())["run_state"]["eval_count"])
    settings = {
        "model": {"model": f"openai/{MODEL}", "api_base": job.url, "api_key": "none"},
        "budget_evals": job.calls - done,
        "resume": again,
        "output_dir": str(job.out),
        "pipeline": {"n_llm_workers": job.width, "n_eval_processes": CORES, "eval_timeout": job.timeout},
        "init": {"n_diverse_seeds": 2, "n_variants_per_seed": 5},
    }
    file = job.place / "settings.json"
    file.write_text(json.dumps(settings))
    return [_program("levi-evolve", "python"), str(job.folder / "run.py"), str(file)]


SYSTEMS: Mapping[str, System] = {
    each.name: each
    for each in (
        System(
            "flowevolve",
            "openevolve",
            _ours,
            "result.json",
            ["`budget.proposals` = N", "`algorithm.max_in_flight` = width", "`sandbox.timeout`", "`seed`"],
        ),
        System(
            "openevolve",
            "openevolve",
            _openevolve,
            "best/best_program.py",
            [
                "`--iterations` N",
                "`evaluator.parallel_evaluations` = width",
                "`evaluator.timeout`",
                "`checkpoint_interval` = 1 instead of 100, so that a kill loses as little as it can",
                "`random_seed`",
            ],
            "openevolve",
            "0.4.1",
        ),
        System(
            "shinka",
            "shinka",
            _shinka,
            "best/main.py",
            [
                "`--num_generations` N + 1, as the seed is one",
                "`--max-proposal-jobs` and `--max-evaluation-jobs` = width",
                "`job.time`",
                "`evo.embedding_model`: the simulated server's, whose calls are in no count",
                "an `os.cpu_count` of 32",
            ],
            "shinka-evolve",
            "0.0.7",
            python_path=[Path(__file__).parent / "more_cores"],
        ),
        System(
            "shinka_two_cores",
            "shinka",
            _shinka,
            "best/main.py",
            ["the same, with the machine's own `os.cpu_count`"],
            "shinka-evolve",
            "0.0.7",
        ),
        System(
            "levi",
            "levi",
            _levi,
            "best_program.py",
            [
                "`budget_evals` = N",
                "`pipeline.n_llm_workers` = width",
                "`pipeline.n_eval_processes` = the number of cores, as each of them imports LEVI",
                "`pipeline.eval_timeout`",
                "`init.n_diverse_seeds` = 2, `init.n_variants_per_seed` = 5: the defaults, 4 and 20, take all of N",
                "LITELLM_LOCAL_MODEL_COST_MAP, without which each evaluation would ask the web for prices",
            ],
            "levi-evolve",
            "0.1.1",
            {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        ),
        System(
            "skydiscover",
            "openevolve",
            _skydiscover,
            "best/best_program.py",
            [
                "`--iterations` N",
                "`evaluator.parallel_evaluations` = width, which changes nothing: iterations wait for each other",
                "`evaluator.timeout`",
                "`checkpoint_interval` = 1 instead of 10",
                "`random_seed`",
            ],
            "skydiscover",
            "0.1.0",
        ),
    )
}
