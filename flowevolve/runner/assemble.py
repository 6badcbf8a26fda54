"""From a checked configuration to the task, the algorithm and the policies of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel

from flowevolve._util.errors import FlowevolveError, InputError, described
from flowevolve._util.registry import validated
from flowevolve.config.run import Config, modules_beside
from flowevolve.core.algorithm import Algorithm, Tuning, WorkersWanted
from flowevolve.core.graph import Graph
from flowevolve.core.policies import Allocation, Speculation, StalenessPolicy, StoppingPolicy
from flowevolve.core.task import Task
from flowevolve.llm.scheduling.admission import Admission
from flowevolve.llm.scheduling.request_queue import Order
from flowevolve.policies.stopping import FileExists, NoImprovement, Unevaluated, Unproductive
from flowevolve.runner.registries import (
    ADMISSIONS,
    ALGORITHMS,
    ALLOCATION,
    ORDERINGS,
    RACING,
    STALENESS,
    TASKS,
)

if TYPE_CHECKING:
    from flowevolve.programs.problem import Problem


def make_task(config: Config) -> Task:
    if config.task.name == "program":
        from flowevolve.programs.evaluator import with_readable_evaluator  # noqa: PLC0415 - only programs need it
        from flowevolve.programs.task import ProgramTask  # noqa: PLC0415

        problem = make_problem(config)
        return ProgramTask(problem, with_readable_evaluator(config.sandbox, problem))
    with modules_beside(config):
        return TASKS.make(config.task.name, config.task.settings, "task")


def make_problem(config: Config) -> Problem:
    """The problem that ``[task]`` names; its other keys are the problem's settings."""
    from flowevolve.problems.catalog import EVALUATED, PROBLEMS  # noqa: PLC0415 - only programs need it

    settings = dict(config.task.settings)
    name = settings.pop("problem", next((name for name in EVALUATED if name in settings), None))
    if not isinstance(name, str):
        raise InputError("task.problem is missing; name the problem to solve (`flowevolve list problems` shows all)")
    with modules_beside(config):
        return PROBLEMS.make(name, settings, "task")


def problem_notes(config: Config) -> Sequence[str]:
    """Notes on the problem for whoever runs the configuration, one line each."""
    if config.task.name != "program" or not {"folder", "command"} & config.task.settings.keys():
        return ()
    from flowevolve.programs.evaluator import EvaluatorProblem  # noqa: PLC0415 - only programs need it

    problem = make_problem(config)
    return problem.notes if isinstance(problem, EvaluatorProblem) else ()


def make_staleness(config: Config, default: str) -> StalenessPolicy:
    """The staleness policy that the configuration names, or else the one named ``default``."""
    return STALENESS.make(config.staleness.policy or default, config.staleness.settings, "staleness")


def make_allocation(config: Config) -> Allocation | None:
    """The allocation policy; None for ``fixed``, which leaves the workers as they are."""
    section = config.allocation
    if section.policy != "fixed":
        policy = ALLOCATION.make(section.policy, section.settings, "allocation")
        if not policy.interval_seconds > 0:
            raise InputError(
                f"allocation: policy {section.policy!r} asks for an interval of {policy.interval_seconds:g} seconds, "
                "but it has to be above 0"
            )
        return policy
    if section.settings:
        raise InputError(f"allocation: policy 'fixed' has no settings; leave out {', '.join(section.settings)}")
    return None


def make_order(config: Config) -> Order:
    section = config.scheduler.order
    return ORDERINGS.make(section.policy, section.settings, "scheduler.order")


def make_admission(config: Config) -> Admission:
    section = config.scheduler.admission
    return ADMISSIONS.make(section.policy, section.settings, "scheduler.admission")


def make_stopping(config: Config) -> list[StoppingPolicy]:
    stopping = config.stopping
    policies: list[StoppingPolicy] = [Unevaluated(stopping.unevaluated), Unproductive(stopping.unproductive)]
    if stopping.no_improvement is not None:
        policies.append(NoImprovement(stopping.no_improvement))
    if stopping.file is not None:
        policies.append(FileExists(stopping.file))
    return policies


def find_algorithm(config: Config) -> type[Algorithm]:
    # A registry is typed by what its factories make. Those of this one are classes, as its contract has checked.
    with modules_beside(config):
        factory = cast("type[Algorithm]", ALGORITHMS.find(config.algorithm.name, "algorithm.name"))
    if not isinstance(getattr(factory, "name", None), str):
        raise InputError(f"algorithm.name: {config.algorithm.name!r} has no name; set name in class {factory.__name__}")
    config_type: object = factory.config_type
    if not (isinstance(config_type, type) and issubclass(config_type, BaseModel)):
        raise InputError(
            f"algorithm.name: config_type of class {factory.__name__} is {config_type!r:.80}; give a class that is "
            "derived from flowevolve.Settings"
        )
    return factory


def make_algorithm(config: Config, task: Task) -> Algorithm:
    factory = find_algorithm(config)
    settings = validated(factory.config_type, config.algorithm.settings, "algorithm")
    tuning = make_tuning(config)
    if config.algorithm.name in ALGORITHMS.builtin:
        return factory(task, settings, tuning)
    unusable = f"algorithm.name: can't use algorithm {config.algorithm.name!r}"
    try:
        algorithm = factory(task, settings, tuning)
        graph: object = algorithm.graph()  # errors in it are reported before anything is paid for
    except (AttributeError, TypeError) as error:
        place = extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"{unusable}: {type(error).__name__}: {error} "
            f"({Path(place.filename).name}, line {place.lineno}). Was it written for another version of flowevolve?"
        ) from error
    except FlowevolveError:
        raise
    except Exception as error:
        raise InputError(f"{unusable}: {described(error)}") from error
    if not isinstance(graph, Graph):
        raise InputError(f"{unusable}: graph() returned a {type(graph).__name__}; return a flowevolve.Graph")
    staleness: object = algorithm.staleness
    if not isinstance(staleness, str):
        raise InputError(
            f"{unusable}: its staleness is {staleness!r:.80}; give the name of a policy, such as 'guarded', or "
            "'module:Class' for one of your own"
        )
    _check_state(algorithm)
    _check_stages(algorithm.name, graph, tuning.workers)
    return algorithm


def _check_state(algorithm: Algorithm) -> None:
    """Raises: InputError if the algorithm has a state that it can't take back, or takes back one that it never had."""
    missing = [name for name in ("state", "restore") if not callable(getattr(algorithm, name, None))]
    if len(missing) == 1:
        other = "restore" if missing == ["state"] else "state"
        raise InputError(
            f"algorithm.name: algorithm {algorithm.name!r} has {other}() but no {missing[0]}(); it needs both to keep "
            "a state of its own, or neither"
        )


def _check_stages(algorithm: str, graph: Graph, named: Iterable[str]) -> None:
    """Check that the stages that the configuration gives workers to are among those whose workers can be set.

    Raises:
        InputError: naming the first that isn't, so that its section would have no effect.
    """
    settable = {stage.name for stage in graph.stages if stage.bounds is not None}
    for name in named:
        if name not in settable:
            raise InputError(
                f"stages.{name}: algorithm {algorithm} asks for no workers of its stages; "
                "leave [stages] out, or give it tuning.workers_of"
            )


def make_tuning(config: Config) -> Tuning:
    return Tuning(
        {
            name: WorkersWanted(stage.workers, stage.min_workers, stage.max_workers)
            for name, stage in config.stages.items()
        },
        Speculation(**dict(config.speculation)),
        RACING.make(config.racing.policy, config.racing.settings, "racing"),
        config.sandbox,
        config.budget.target_score,
    )
