"""``flowevolve run FOLDER``: a run's configuration, made from a problem folder of another system and from overrides."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flowevolve._util.addresses import is_on_loopback
from flowevolve._util.cores import usable_cores
from flowevolve._util.secrets import OPENAI_VARIABLE
from flowevolve.config.run import Config, parse_config
from flowevolve.config.table import override
from flowevolve.problems.folders.catalog import folder_problem, system_of
from flowevolve.problems.folders.settings import FolderSettings, LLMPart, read_settings
from flowevolve.runner.registries import ALGORITHMS

ALGORITHM = "one_plus_lambda"
WORLD = "code"
PROPOSALS = 100
"""The budget in proposals if none is given."""
MEMORY_MB = 2048
"""More than the sandbox's own default, which has no room for the libraries that evaluators use."""


@dataclass(frozen=True, slots=True)
class FolderRun:
    """A configuration that can be run, and notes for its user, one line each."""

    config: Config
    notes: tuple[str, ...]


def load_folder(folder: Path, overrides: Sequence[str] = ()) -> FolderRun:
    """The configuration of a problem folder; ``key=value`` overrides take precedence over what the folder says.

    Raises:
        InputError: naming file, key and what is wrong.
    """
    given: dict[str, object] = {}
    for each in overrides:
        override(given, each)
    settings, file = read_settings(folder) if system_of(folder) == "openevolve" else (FolderSettings(), None)
    table, notes = _table(folder.resolve(), settings, given)
    for each in overrides:
        override(table, each)
    config = parse_config(table, str(folder))
    worst = config.task.settings.get("worst", 0.0)
    problem = folder_problem(folder, float(worst) if isinstance(worst, int | float) else 0.0)
    place = "" if file is None else f"{file.name}: "
    return FolderRun(config, (*problem.notes, *(f"{place}{note}" for note in notes)))


def _table(folder: Path, settings: FolderSettings, given: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    notes: list[str] = []
    evaluator = settings.evaluator
    algorithm: dict[str, object] = {"name": _in(given, "algorithm").get("name", ALGORITHM)}
    if not settings.diff_based_evolution and "form" in _settings_of(str(algorithm["name"])):
        algorithm["form"] = "whole"
    table: dict[str, object] = {
        "algorithm": algorithm,
        "task": {"name": "program", "folder": str(folder)},
        "sim": {"world": WORLD},
        "sandbox": {
            "timeout": evaluator.timeout,
            "memory_mb": evaluator.memory_limit_mb or MEMORY_MB,
            "concurrency": min(len(usable_cores()), evaluator.parallel_evaluations or len(usable_cores())),
        },
    }
    if settings.random_seed is not None:
        table["seed"] = abs(settings.random_seed)
    if "budget" not in given:
        table["budget"] = {"proposals": settings.max_iterations or PROPOSALS}
        if settings.max_iterations is None:
            notes.append(
                f"no budget is given, so the run gets {PROPOSALS} proposals (--set budget.proposals=... gives it "
                "others)"
            )
    if settings.early_stopping_patience is not None:
        table["stopping"] = {"no_improvement": settings.early_stopping_patience}
    backend = _in(given, "llm").get("backend", "sim")
    if backend == "sim":
        notes += _unused(settings.llm)
    else:
        table["llm"] = _llm(settings.llm, str(algorithm["name"]))
        notes += [
            f"llm.{name} is not taken over; put the key into the environment variable {OPENAI_VARIABLE}"
            for name in _keys(settings.llm)
        ]
    return table, notes


def _llm(llm: LLMPart, algorithm: str) -> dict[str, object]:
    """The ``[llm]`` section. Several models become an ensemble for algorithms whose only role is ``code``."""
    models = llm.weighted()
    section: dict[str, object] = {
        "base_url": llm.api_base,
        "api_key_env": _key_variable(llm.api_base),
        "model": next(iter(models), None),
        "temperature": llm.temperature,
        "max_tokens": llm.max_tokens,
        "timeout_seconds": llm.timeout,
        "reasoning_effort": llm.reasoning_effort,
        "extra": {} if llm.top_p is None else {"top_p": llm.top_p},
    }
    if len(models) > 1 and tuple(getattr(ALGORITHMS.find(algorithm, "algorithm.name"), "roles", ())) == ("code",):
        entries = [{"model": name, "weight": weight} for name, weight in models.items()]
        section["roles"] = {"code": {"models": entries}}
    return {name: value for name, value in section.items() if value is not None}


def _key_variable(address: str | None) -> str | None:
    """The variable with the key for the address in a folder. As in OpenEvolve, it is the same for every address, but a
    server on this machine may do without a key.
    """
    needed = address is not None and (bool(os.environ.get(OPENAI_VARIABLE)) or not is_on_loopback(address))
    return OPENAI_VARIABLE if needed else None


def _unused(llm: LLMPart) -> list[str]:
    models = llm.weighted()
    if not models:
        return []
    return [
        f"it names {', '.join(models)}, but this run's LLM is simulated; for the real one give --set llm.backend=openai"
    ]


def _keys(llm: LLMPart) -> list[str]:
    return [name for name in llm.model_extra or {} if name == "api_key"]


def _settings_of(algorithm: str) -> set[str]:
    factory = ALGORITHMS.find(algorithm, "algorithm.name")
    config_type = getattr(factory, "config_type", None)
    return set(getattr(config_type, "model_fields", ()))


def _in(table: Mapping[str, object], section: str) -> Mapping[str, object]:
    found = table.get(section, {})
    return found if isinstance(found, Mapping) else {}
