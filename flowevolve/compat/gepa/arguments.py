"""Checks gepa's arguments: what each is turned into, or why it is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from random import Random
from typing import TypeVar, cast, get_args

from gepa.adapters.default_adapter.default_adapter import ChatCompletionCallable, DefaultAdapter, Evaluator
from gepa.core.callbacks import GEPACallback
from gepa.core.data_loader import DataLoader, ensure_loader
from gepa.core.state import FrontierType
from gepa.proposer.reflective_mutation.base import CandidateSelector, ReflectionComponentSelector
from gepa.strategies.acceptance import AcceptanceCriterion, ImprovementOrEqualAcceptance, StrictImprovementAcceptance
from gepa.strategies.batch_sampler import BatchSampler, EpochShuffledBatchSampler
from gepa.strategies.candidate_selector import (
    CurrentBestCandidateSelector,
    EpsilonGreedyCandidateSelector,
    ParetoCandidateSelector,
    TopKParetoCandidateSelector,
)
from gepa.strategies.component_selector import AllReflectionComponentSelector, RoundRobinReflectionComponentSelector
from gepa.strategies.eval_policy import EvaluationPolicy, FullEvaluationPolicy
from gepa.strategies.instruction_proposal import InstructionProposalSignature
from gepa.strategies.proposal_selection import AllImprovements, SelectionStrategy
from gepa.utils import FileStopper, MaxReflectionCostStopper, StopperProtocol

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve._util.user_warnings import warn_user
from flowevolve.compat.gepa.data import AnyId, Examples
from flowevolve.compat.gepa.threads import Adapter
from flowevolve.core.artifact import Artifact
from flowevolve.tasks.judging import value_in_words

T = TypeVar("T")
GEPA_STATE = "gepa_state.bin"
"""The file in which gepa keeps a run of its own."""
WITHOUT_EFFECT: Mapping[str, str] = {
    "use_cloudpickle": "no state file is pickled, as a run with run_dir is kept in a journal there",
    "cache_evaluation": "scores are never taken from a cache; your adapter may keep one of its own",
}
"""Switches that have no effect here, and why."""


def warn_of_switches(given: Mapping[str, bool]) -> None:
    """Warn of switches that are on but have no effect. Results are the same without them; only the price differs."""
    for name, on in given.items():
        if on:
            warn_user(f"{name} has no effect here: {WITHOUT_EFFECT[name]}")


def find_adapter(
    adapter: Adapter | None, task_lm: str | ChatCompletionCallable | None, evaluator: Evaluator | None
) -> Adapter:
    """The adapter given, or gepa's default one over ``task_lm``."""
    if adapter is None:
        if task_lm is None:
            raise InputError("adapter and task_lm are both missing; give one of the two")
        if not (isinstance(task_lm, str) or callable(task_lm)):
            raise InputError(
                f"task_lm is {value_in_words(task_lm)}; give a model's name, or a function that answers messages"
            )
        check_methods("__call__", evaluator=evaluator)
        if isinstance(task_lm, str) and find_spec("litellm") is None:
            raise InputError(
                f"task_lm: gepa calls {task_lm!r} through LiteLLM, which is not installed; pip install litellm"
            )
        # gepa's adapters are invariant in the type of their data, on which nothing here depends.
        return cast(Adapter, DefaultAdapter(model=task_lm, evaluator=evaluator))
    for name, value in (("task_lm", task_lm), ("evaluator", evaluator)):
        if value is not None:
            raise InputError(f"{name} is only for gepa's default adapter; leave out either {name} or adapter")
    if isinstance(adapter, type):
        raise InputError(
            f"adapter is the class {adapter.__name__}; give an object of it, such as {adapter.__name__}(…)"
        )
    for method in ("evaluate", "make_reflective_dataset"):
        if not callable(getattr(adapter, method, None)):
            raise InputError(
                f"adapter: {type(adapter).__name__} has no method {method}; give it the methods of gepa's GEPAAdapter"
            )
    return adapter


def seed(given: object) -> Artifact:
    """Raises:
    InputError: if it is not a mapping of names to texts, or is empty.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"seed_candidate is of type {type(given).__name__}; give a mapping of names of components to texts"
        )
    try:
        return Artifact(given)
    except InputError as error:
        raise InputError(f"seed_candidate: {error}") from None


def check_perfect_score(given: float | None, *, used: bool) -> None:
    """Raises:
    InputError: if it is not a number, or is missing although it is used.
    """
    if not isinstance(given, Real | None):
        raise InputError(f"perfect_score is {given!r}; give a number")
    if used and given is None:
        raise InputError(
            "perfect_score is missing, and skip_perfect_score needs it; give it, or set skip_perfect_score=False"
        )


def check_frontier_type(given: object) -> None:
    """Raises:
    InputError: if gepa has no frontier type of this name.
    """
    known: tuple[str, ...] = get_args(FrontierType)
    if given not in known:
        raise InputError(f"frontier_type: unknown name {given!r}; {did_you_mean(str(given), list(known))}")


def check_reflection_lm(given: object, settings: object) -> None:
    """Raises:
    InputError: if it is neither a name nor a function, or its settings are not a mapping.
    """
    if not isinstance(settings, Mapping | None):
        raise InputError(f"reflection_lm_kwargs is {settings!r}; give a mapping of settings by name")
    if not (given is None or isinstance(given, str) or callable(given)):
        raise InputError(
            f"reflection_lm is of type {type(given).__name__}; give a model's name, or a function from a prompt to a "
            "text"
        )


def check_callbacks(given: object) -> None:
    """Raises:
    InputError: if it is not a list.
    """
    if isinstance(given, str) or not isinstance(given, Sequence | None):  # a text would be a list of letters
        raise InputError(
            f"callbacks is of type {type(given).__name__}; give a list of objects with methods such as on_error"
        )
    known = [name for name in vars(GEPACallback) if name.startswith("on_")]
    for callback in given or ():
        kind = type(callback).__name__
        if not any(hasattr(callback, name) for name in known):
            warn_user(f"callbacks: {kind} has none of the methods that are called, such as on_error")
        for name in dir(callback):
            if name.startswith("on_") and name not in known:
                warn_user(f"callbacks: {kind}.{name} is never called; {did_you_mean(name, known)}")


def examples(data: object, where: str) -> Examples:
    try:
        if isinstance(data, str):  # gepa would take it for a list of letters
            raise TypeError
        loader: DataLoader[AnyId, object] = ensure_loader(data)  # type: ignore[arg-type]  # it checks
    except TypeError:
        raise InputError(f"{where} is of type {type(data).__name__}; give a list or a gepa DataLoader") from None
    return Examples(loader, where)


def _named(where: str, given: str | T, known: Mapping[str, Callable[[], T]], method: str) -> T:
    """The strategy of this name, or the object given, which must have the method."""
    if isinstance(given, str):
        if given not in known:
            raise InputError(f"{where}: unknown name {given!r}; {did_you_mean(given, list(known))}")
        return known[given]()
    if not callable(getattr(given, method, None)):
        raise InputError(
            f"{where}: {type(given).__name__} has no method {method}; give one of {', '.join(known)}, or an object "
            "that has it"
        )
    return given


def candidate_selector(given: str | CandidateSelector, random: Random) -> CandidateSelector:
    known: dict[str, Callable[[], CandidateSelector]] = {
        "pareto": lambda: ParetoCandidateSelector(rng=random),
        "current_best": CurrentBestCandidateSelector,
        "epsilon_greedy": lambda: EpsilonGreedyCandidateSelector(epsilon=0.1, rng=random),
        "top_k_pareto": lambda: TopKParetoCandidateSelector(k=5, rng=random),
    }
    return _named("candidate_selection_strategy", given, known, "select_candidate_idx")


def batch_sampler(
    given: str | BatchSampler[AnyId, object], size: int | None, rows: int, random: Random
) -> BatchSampler[AnyId, object]:
    if not isinstance(given, str) and size is not None:
        raise InputError(
            "reflection_minibatch_size: a batch_sampler of your own decides the size itself; leave out one of the two"
        )
    if size is not None and size > rows:
        warn_user(
            f"reflection_minibatch_size is {size}, but the size of the trainset is {rows}, so each iteration evaluates "
            "some examples more than once"
        )
    known: dict[str, Callable[[], BatchSampler[AnyId, object]]] = {
        "epoch_shuffled": lambda: EpochShuffledBatchSampler(minibatch_size=size or 3, rng=random)
    }
    return _named("batch_sampler", given, known, "next_minibatch_ids")


def component_selector(given: str | ReflectionComponentSelector) -> ReflectionComponentSelector:
    known: dict[str, Callable[[], ReflectionComponentSelector]] = {
        "round_robin": RoundRobinReflectionComponentSelector,
        "all": AllReflectionComponentSelector,
    }
    return _named("module_selector", given, known, "__call__")


def acceptance(given: str | AcceptanceCriterion) -> AcceptanceCriterion:
    known: dict[str, Callable[[], AcceptanceCriterion]] = {
        "strict_improvement": StrictImprovementAcceptance,
        "improvement_or_equal": ImprovementOrEqualAcceptance,
    }
    return _named("acceptance_criterion", given, known, "should_accept")


def evaluation_policy(given: str | EvaluationPolicy[AnyId, object] | None) -> EvaluationPolicy[AnyId, object]:
    known: dict[str, Callable[[], EvaluationPolicy[AnyId, object]]] = {"full_eval": FullEvaluationPolicy[AnyId, object]}
    return _named("val_evaluation_policy", given or "full_eval", known, "get_eval_batch")


def check_selection(given: SelectionStrategy | None) -> None:
    """Raises:
    InputError: if it compares proposals with each other, because here each goes on independently.
    """
    if given is not None and not isinstance(given, AllImprovements):
        raise InputError(
            f"selection_strategy: {type(given).__name__} compares the proposals of an iteration with each other, but "
            "here none waits for the others; leave it out or give AllImprovements(), and say by acceptance_criterion "
            "which proposals are accepted"
        )


def check_template(template: str | dict[str, str] | None, components: Sequence[str], *, used: bool) -> None:
    if template is None:
        return
    if not used:
        raise InputError(
            "reflection_prompt_template would not be used, as you give a proposer of your own; leave it out"
        )
    if isinstance(template, dict):
        for name in template:
            if name not in components:
                hint = did_you_mean(str(name), components)
                warn_user(f"reflection_prompt_template: the candidate has no component {name!r}; {hint}")
    for text in template.values() if isinstance(template, dict) else [template]:
        if not isinstance(text, str):
            raise InputError(
                f"reflection_prompt_template is {value_in_words(text)}; give a text, or texts by component"
            )
        try:
            InstructionProposalSignature.validate_prompt_template(text)
        except ValueError as error:
            raise InputError(f"reflection_prompt_template: {error}") from None


def stoppers(given: StopperProtocol | Sequence[StopperProtocol] | None, run_dir: Path | None) -> list[StopperProtocol]:
    """The user's stoppers, and gepa's own for the file ``gepa.stop`` in the run directory."""
    listed = [] if given is None else list(given) if isinstance(given, Sequence) else [given]
    for stopper in listed:
        if not callable(stopper):
            raise InputError(f"stop_callbacks: {stopper!r} can't be called; give functions that take gepa's state")
    if run_dir is not None:
        listed.append(FileStopper(str(run_dir / "gepa.stop")))
    return listed


def cost_stopper(dollars: float, spender: object) -> StopperProtocol:
    """gepa's stopper, which reads the cost that the reflection model reports.

    Raises:
        InputError: if the model reports no cost, because then the limit would never be reached.
    """
    if not hasattr(spender, "total_cost"):
        raise InputError(
            "max_reflection_cost: what it limits is unknown, as the model that reflects has no total_cost; give a "
            "reflection_lm that has one, such as gepa.lm.LM(…), or limit the run by max_metric_calls"
        )
    return MaxReflectionCostStopper(dollars, reflection_lm=spender)


def whole(name: str, given: object, *, least: int = 1) -> int:
    """The number as a Python integer.

    Raises:
        InputError: if it is not a whole number, or too small.
    """
    if not isinstance(given, Integral) and not (isinstance(given, float) and given.is_integer()):
        raise InputError(f"{name} is {given!r}; give a whole number of at least {least}")
    number = int(given)
    if number < least:
        raise InputError(f"{name} is {number}, but has to be at least {least}")
    return number


def whole_or_none(name: str, given: object) -> int | None:
    """As `whole`, for an argument that may be left out."""
    return None if given is None else whole(name, given)


def check_switches(**given: object) -> None:
    """Raises:
    InputError: naming the first that is a text, because any non-empty text would count as true.
    """
    for name, value in given.items():
        if isinstance(value, str):
            raise InputError(f"{name} is {value!r}; give True or False")


def check_methods(method: str, **given: object) -> None:
    """Raises:
    InputError: naming the first that was given and has no method of this name.
    """
    for name, value in given.items():
        if value is not None and not callable(getattr(value, method, None)):
            what = (
                "can't be called; give a function"
                if method == "__call__"
                else f"has no method {method}; give an object that has it"
            )
            raise InputError(f"{name}: {value_in_words(value)} {what}")


def check_calls(most: int | None, validation: int, policy: EvaluationPolicy[AnyId, object]) -> None:
    """Raises:
    InputError: if there are not enough metric calls to evaluate the seed. This is not checked if the policy chooses the
        examples for the seed, because their number is not known yet.
    """
    if most is not None and most < validation and not hasattr(policy, "get_seed_eval_batch"):
        raise InputError(
            f"max_metric_calls is {most}, but evaluating the seed alone takes {validation}; give at least that many"
        )


def directory(run_dir: object) -> Path | None:
    """The directory of a run, if it should have one.

    Raises:
        InputError: if it is not a path, or holds a run of gepa's own.
    """
    if run_dir is None:
        return None
    if run_dir == "" or not isinstance(run_dir, str | PathLike):
        raise InputError(f"run_dir is {run_dir!r}; give the path of a directory")
    path = Path(run_dir)
    if (path / GEPA_STATE).exists():
        raise InputError(
            f"run_dir: {path} holds a run of gepa itself ({GEPA_STATE}), which can't be continued here; give another "
            "directory"
        )
    return path


def one_proposer(given: Mapping[str, object | None]) -> str | None:
    """Which of these arguments was given, and so says how texts are proposed; None if none was.

    Raises:
        InputError: if several were.
    """
    names: Collection[str] = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise InputError(f"{' and '.join(names)} each propose texts; leave out all but one")
    return next(iter(names), None)
