"""Hints for users who give `flowevolve.optimize` what they know from configurations or from other optimizers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from flowevolve._util.errors import InputError
from flowevolve.config.backends import SIMULATED_BACKENDS
from flowevolve.config.prices import price_table
from flowevolve.config.roles import model_names
from flowevolve.config.run import Config
from flowevolve.core.algorithm import Algorithm
from flowevolve.runner.backend_checks import OPENAI_PREFIX
from flowevolve.runner.llm import make_roles
from flowevolve.runner.registries import ALGORITHMS

_ROLE = 'give the model that reflects as a role: llm=flowevolve.LLM(…, roles={"reflection": {"model": …}})'
_MODEL = 'give the model as llm=flowevolve.LLM("…")'
_ROLLOUTS = "give budget=flowevolve.Budget(rollouts=…)"
_SETTINGS_OF_MODEL = "it is a setting of the model: llm=flowevolve.LLM(…, {}=…)"
_OF_MODEL = ("base_url", "api_key_env", "temperature", "max_tokens", "roles", "prices", "cache", "concurrency")
_SECTION = (
    "it is a section of a configuration: give it to flowevolve.Config({}=…), and that to flowevolve.run "
    "(docs/how-to/python.md)"
)
ELSEWHERE: Mapping[str, str] = {
    "reflection_lm": _ROLE,
    "reflection_model": _ROLE,
    **dict.fromkeys(("lm", "model", "task_lm", "task_model"), _MODEL),
    **dict.fromkeys(("max_metric_calls", "max_rollouts", "rollouts"), _ROLLOUTS),
    **{
        name: f"give budget=flowevolve.Budget({name}=…)"
        for name in ("minutes", "hours", "seconds", "dollars", "tokens", "proposals", "target_score")
    },
    **{name: _SETTINGS_OF_MODEL.format(name) for name in _OF_MODEL},
    **dict.fromkeys(("num_threads", "workers"), _SETTINGS_OF_MODEL.format("concurrency")),
    **{
        name: f"it is a setting of the algorithm: settings={{{name!r}: …}}"
        for name in ("minibatch", "epochs", "merge", "aim")
    },
    "reflection_minibatch_size": "it is a setting of the algorithm: settings={'minibatch': …}",
    **{name: _SECTION.format(name) for name in ("stopping", "scheduler", "stages", "prompts", "journal")},
    **dict.fromkeys(("auto", "max_full_evals"), "give budget=flowevolve.Budget(minutes=…), or another of its limits"),
    "trainset": "give the rows as train=",
    "valset": "give the rows as val=",
    "testset": "give the rows as test=",
    "held_out": "give rows as test=, and the seed and the best candidate are scored on them at the end",
    "seed_candidate": "give the texts to begin with as prompt=",
    **dict.fromkeys(("objective", "background"), "write it into the text to begin with, which is prompt="),
    "evaluator": "give a function of a row and an output as metric=",
    "dataset": "give the rows as train=",
    **dict.fromkeys(("run_dir", "log_dir"), "give the directory as out="),
}
"""What to give instead of an argument of other optimizers, or of a setting of a configuration, by its name."""


def algorithm_name(algorithm: object) -> str:
    """The name that a configuration has for an algorithm, which is given by that name or as a class.

    Raises:
        InputError: if it is neither, or the class can't be found by a name.
    """
    if isinstance(algorithm, str):
        return algorithm
    if not isinstance(algorithm, type) or not issubclass(algorithm, Algorithm):
        raise InputError(
            f"optimize: algorithm is {algorithm!r}; give the name of one, such as 'gepa', or a class that is derived "
            "from flowevolve.Algorithm"
        )
    target = f"{algorithm.__module__}:{algorithm.__qualname__}"
    for name in (str(getattr(algorithm, "name", target)), target):  # those that ship have names of their own
        with suppress(InputError):
            if ALGORITHMS.find(name, "algorithm.name") is algorithm:
                return name
    raise InputError(
        f"optimize: algorithm is the class {algorithm.__name__}, but {target!r} does not name it, so that a resumed "
        "run could not find it; define it at the top level of a module"
    )


def check_prices(config: Config) -> None:
    """Check that all models have prices if the budget is in dollars, for a model that was given as an object.

    Raises:
        InputError: naming the models that have none.
    """
    if config.budget.dollars is None or config.llm.backend in SIMULATED_BACKENDS:
        return
    priced = price_table(config, ())
    missing = [name for name in model_names(make_roles(config).values()) if name not in priced]
    if missing:
        given = ", ".join(f'{name!r}: {{"input": …, "output": …}}' for name in missing)
        raise InputError(
            f"budget.dollars needs the price of {', '.join(map(repr, missing))}: give flowevolve.LLM(…, "
            f"prices={{{given}}}), in dollars per million tokens"
        )


def model_hint(llm: object) -> str:
    """What to give as the model in place of ``llm``, in words."""
    if not isinstance(llm, str):
        return "give flowevolve.LLM('gpt-5-mini'), or 'simulated'"
    if llm in ("sim", "simulate", "simulation", "simulator"):
        return "did you mean 'simulated'?"
    name = llm.removeprefix(OPENAI_PREFIX)
    if "/" in name:
        return f"give flowevolve.LLM({llm!r}, backend='litellm'), or base_url= where it is served, or 'simulated'"
    return f"give flowevolve.LLM({name!r}), or 'simulated'"
