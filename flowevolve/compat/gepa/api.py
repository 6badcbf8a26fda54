"""`optimize`, with gepa 0.1.4's arguments, and a few of our own after them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Literal, cast

from gepa.adapters.default_adapter.default_adapter import ChatCompletionCallable, Evaluator
from gepa.core.adapter import DataInst, GEPAAdapter, ProposalFn, RolloutOutput, Trajectory
from gepa.core.data_loader import DataId, DataLoader
from gepa.core.result import GEPAResult
from gepa.core.state import FrontierType
from gepa.logging.experiment_tracker import create_experiment_tracker
from gepa.logging.logger import LoggerProtocol, StdOutLogger
from gepa.proposer.reflective_mutation.base import CandidateSelector, LanguageModel, ReflectionComponentSelector
from gepa.proposer.reflective_mutation.reflection_lm import ReflectionLM
from gepa.strategies.acceptance import AcceptanceCriterion
from gepa.strategies.batch_sampler import BatchSampler
from gepa.strategies.eval_policy import EvaluationPolicy
from gepa.strategies.proposal_sampling import SamplingStrategy, SingleMutationSampling
from gepa.strategies.proposal_selection import SelectionStrategy
from gepa.utils import StopperProtocol

from flowevolve._util.errors import InputError
from flowevolve.compat.gepa import arguments
from flowevolve.compat.gepa.algorithm import AdapterTask, Parts
from flowevolve.compat.gepa.data import AnyId
from flowevolve.compat.gepa.failures import Failures
from flowevolve.compat.gepa.identity import digests_of_adapter, digests_of_rows, digests_of_settings
from flowevolve.compat.gepa.launch import NO_LIMIT, Bar, Launch, make_config, reflecting
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.compat.gepa.reflection import ByPrompt, make_writer
from flowevolve.compat.gepa.select import Merger, Strategies
from flowevolve.compat.gepa.threads import Adapter, AdapterThreads
from flowevolve.compat.gepa.tracking import Tracking, check_trackers
from flowevolve.core.task import Dataset

if TYPE_CHECKING:
    from gepa.core.callbacks import GEPACallback


def optimize(
    seed_candidate: dict[str, str],
    trainset: list[DataInst] | DataLoader[DataId, DataInst],
    valset: list[DataInst] | DataLoader[DataId, DataInst] | None = None,
    adapter: GEPAAdapter[DataInst, Trajectory, RolloutOutput] | None = None,
    task_lm: str | ChatCompletionCallable | None = None,
    evaluator: Evaluator | None = None,
    reflection_lm: LanguageModel | str | None = None,
    reflection_lm_kwargs: dict[str, object] | None = None,
    candidate_selection_strategy: CandidateSelector
    | Literal["pareto", "current_best", "epsilon_greedy", "top_k_pareto"] = "pareto",
    frontier_type: FrontierType = "instance",
    skip_perfect_score: bool = True,
    batch_sampler: BatchSampler[DataId, DataInst] | Literal["epoch_shuffled"] = "epoch_shuffled",
    reflection_minibatch_size: int | None = None,
    perfect_score: float = 1.0,
    reflection_prompt_template: str | dict[str, str] | None = None,
    custom_candidate_proposer: ProposalFn | None = None,
    module_selector: ReflectionComponentSelector | str = "round_robin",
    use_merge: bool = False,
    max_merge_invocations: int | None = 5,
    merge_val_overlap_floor: int = 5,
    max_metric_calls: int | None = None,
    max_reflection_cost: float | None = None,
    stop_callbacks: StopperProtocol | Sequence[StopperProtocol] | None = None,
    logger: LoggerProtocol | None = None,
    run_dir: str | None = None,
    callbacks: list[GEPACallback] | None = None,
    use_wandb: bool = False,
    wandb_api_key: str | None = None,
    wandb_init_kwargs: dict[str, object] | None = None,
    wandb_attach_existing: bool = False,
    use_mlflow: bool = False,
    mlflow_tracking_uri: str | None = None,
    mlflow_experiment_name: str | None = None,
    mlflow_attach_existing: bool = False,
    tracking_key_prefix: str = "",
    track_best_outputs: bool = True,
    display_progress_bar: bool = False,
    use_cloudpickle: bool = False,
    cache_evaluation: bool = False,
    seed: int = 0,
    raise_on_exception: bool = True,
    val_evaluation_policy: EvaluationPolicy[DataId, DataInst] | Literal["full_eval"] | None = None,
    acceptance_criterion: AcceptanceCriterion
    | Literal["strict_improvement", "improvement_or_equal"] = "strict_improvement",
    sampling_strategy: SamplingStrategy[DataId, DataInst] | None = None,
    selection_strategy: SelectionStrategy | None = None,
    reflection_strategy: ReflectionLM | None = None,
    *,
    adapter_concurrency: int = 1,
    chunk_size: int | None = None,
    reflection_concurrency: int | None = None,
    max_in_flight: int | None = None,
    mode: Literal["stream", "sync"] = "stream",
    staleness: str | None = None,
) -> GEPAResult[RolloutOutput, DataId]:
    """gepa's `optimize` as a stream. What gepa's arguments mean here: docs/how-to/gepa.md.

    At most ``adapter_concurrency`` calls of the adapter are made at a time, from worker threads, each with at most
    ``chunk_size`` examples. By default, half a validation is split over all calls that may be made at a time.
    ``reflection_concurrency``, by default the same as ``adapter_concurrency``, bounds the calls of a ``reflection_lm``
    or proposer that is a function. At most ``max_in_flight`` iterations are open at a time, by default as many as there
    is use for, given what a validation costs. With 1, the accepted candidates are those of gepa. With more, edits are
    merged, line by line or by the reflection model, and validated in groups.

    Raises:
        InputError: naming the argument that can't be used.
        FlowevolveError: if the run failed. Exceptions of the adapter are raised as they are.
    """
    arguments.warn_of_switches({"use_cloudpickle": use_cloudpickle, "cache_evaluation": cache_evaluation})
    arguments.check_switches(
        skip_perfect_score=skip_perfect_score,
        use_merge=use_merge,
        use_wandb=use_wandb,
        use_mlflow=use_mlflow,
        track_best_outputs=track_best_outputs,
        display_progress_bar=display_progress_bar,
        raise_on_exception=raise_on_exception,
    )
    of_trackers = {
        "wandb_api_key": wandb_api_key,
        "wandb_init_kwargs": wandb_init_kwargs,
        "wandb_attach_existing": wandb_attach_existing,
        "mlflow_tracking_uri": mlflow_tracking_uri,
        "mlflow_experiment_name": mlflow_experiment_name,
        "mlflow_attach_existing": mlflow_attach_existing,
    }
    check_trackers(of_trackers, use_wandb=use_wandb, use_mlflow=use_mlflow)
    arguments.check_selection(selection_strategy)
    adapter_concurrency = arguments.whole("adapter_concurrency", adapter_concurrency)
    chunk_size = arguments.whole_or_none("chunk_size", chunk_size)
    reflection_concurrency = arguments.whole_or_none("reflection_concurrency", reflection_concurrency)
    max_in_flight = arguments.whole_or_none("max_in_flight", max_in_flight)
    max_metric_calls = arguments.whole_or_none("max_metric_calls", max_metric_calls)
    reflection_minibatch_size = arguments.whole_or_none("reflection_minibatch_size", reflection_minibatch_size)
    merge_val_overlap_floor = arguments.whole("merge_val_overlap_floor", merge_val_overlap_floor)
    merges = NO_LIMIT
    if max_merge_invocations is not None:  # dspy's users may give None
        merges = max_merge_invocations = arguments.whole("max_merge_invocations", max_merge_invocations, least=0)
    seed = arguments.whole("seed", seed, least=0)
    arguments.check_frontier_type(frontier_type)
    arguments.check_reflection_lm(reflection_lm, reflection_lm_kwargs)
    arguments.check_callbacks(callbacks)
    arguments.check_methods("log", logger=logger)
    arguments.check_methods("sample_tasks", sampling_strategy=sampling_strategy)
    arguments.check_methods("reflect", reflection_strategy=reflection_strategy)
    arguments.check_methods("__call__", custom_candidate_proposer=custom_candidate_proposer)
    directory = arguments.directory(run_dir)
    arguments.check_perfect_score(perfect_score, used=skip_perfect_score)
    seed_artifact = arguments.seed(seed_candidate)
    # gepa's classes are invariant in the types of the user's data. Nothing here depends on these types, so the casts
    # below drop them, and they are restored with the result.
    threads = AdapterThreads(
        arguments.find_adapter(cast("Adapter | None", adapter), task_lm, evaluator), adapter_concurrency
    )
    train = arguments.examples(trainset, "trainset")
    val = train if valset is None else arguments.examples(valset, "valset")
    listed = arguments.stoppers(stop_callbacks, directory)
    if max_reflection_cost is not None:
        listed.append(arguments.cost_stopper(max_reflection_cost, reflection_strategy or reflection_lm))
    if max_metric_calls is None and not listed:
        raise InputError("max_metric_calls is missing, and so is every other limit; give it, or stop_callbacks")
    reflections = reflection_concurrency or adapter_concurrency
    role = reflecting(reflection_lm, reflection_lm_kwargs or {}, reflections)
    random = Random(seed)
    logger = logger or StdOutLogger()
    bar = Bar(max_metric_calls) if display_progress_bar else None
    mirror = Mirror(
        val,
        perfect_score=perfect_score,
        frontier_type=frontier_type,
        track_best_outputs=track_best_outputs,
        callbacks=[*(callbacks or ()), *([] if bar is None else [bar])],
        max_metric_calls=max_metric_calls,
    )
    policy = arguments.evaluation_policy(cast("str | EvaluationPolicy[AnyId, object] | None", val_evaluation_policy))
    arguments.check_calls(max_metric_calls, len(val.all()), policy)
    tracking = None
    if use_wandb or use_mlflow:
        tracker = create_experiment_tracker(
            use_wandb,
            wandb_api_key,
            wandb_init_kwargs,
            wandb_attach_existing,
            use_mlflow=use_mlflow,
            mlflow_tracking_uri=mlflow_tracking_uri,
            mlflow_experiment_name=mlflow_experiment_name,
            mlflow_attach_existing=mlflow_attach_existing,
            key_prefix=tracking_key_prefix,
        )
        told = {
            "seed": seed,
            "perfect_score": perfect_score,
            "frontier_type": frontier_type,
            "trainset_size": len(train.all()),
            "valset_size": len(val.all()),
            "seed_candidate_components": sorted(seed_artifact),
            "val_evaluation_policy": type(policy).__name__,
            "run_dir": run_dir,
        }
        tracking = Tracking(tracker, mirror, policy, told, len(val.all()))
        mirror.listen(tracking)
    as_gepa = mode == "sync" or max_in_flight == 1
    writer = make_writer(
        threads,
        custom_candidate_proposer,
        reflection_strategy,
        reflection_lm,
        reflection_prompt_template,
        reflections,
        list(seed_artifact),
        takes_empty=as_gepa,
    )
    parts = Parts(
        adapter=threads,
        train=train,
        val=val,
        mirror=mirror,
        strategies=Strategies(
            arguments.candidate_selector(candidate_selection_strategy, random),
            arguments.batch_sampler(
                cast("str | BatchSampler[AnyId, object]", batch_sampler),
                reflection_minibatch_size,
                len(train.all()),
                random,
            ),
            cast("SamplingStrategy[AnyId, object]", sampling_strategy or SingleMutationSampling()),
            listed,
        ),
        merger=Merger(mirror, val, logger, random, most=merges, overlap=merge_val_overlap_floor) if use_merge else None,
        components=arguments.component_selector(module_selector),
        criterion=arguments.acceptance(acceptance_criterion),
        policy=policy,
        writer=writer,
        chunk=chunk_size or _chunk(len(val.all()), reflection_minibatch_size or 3, adapter_concurrency),
        failures=Failures(mirror, logger, raising=raise_on_exception),
        skip_perfect=skip_perfect_score,
        reserved=1 if as_gepa else 2 * (reflection_minibatch_size or 3),
        as_gepa=as_gepa,
        asks=isinstance(writer, ByPrompt),
    )
    decisive = {
        "task_lm": task_lm,
        "evaluator": evaluator,
        "reflection_lm": reflection_lm,
        "candidate_selection_strategy": candidate_selection_strategy,
        "frontier_type": frontier_type,
        "skip_perfect_score": skip_perfect_score,
        "batch_sampler": batch_sampler,
        "reflection_minibatch_size": reflection_minibatch_size,
        "perfect_score": perfect_score,
        "reflection_prompt_template": reflection_prompt_template,
        "custom_candidate_proposer": custom_candidate_proposer,
        "module_selector": module_selector,
        "use_merge": use_merge,
        "max_merge_invocations": max_merge_invocations,
        "merge_val_overlap_floor": merge_val_overlap_floor,
        "val_evaluation_policy": val_evaluation_policy,
        "acceptance_criterion": acceptance_criterion,
        "sampling_strategy": sampling_strategy,
        "reflection_strategy": reflection_strategy,
    }
    task = AdapterTask(
        type(threads.adapter).__name__,
        seed_artifact,
        Dataset(train.all(), val.all()),
        digests_of_rows({"trainset": train, "valset": val}),
        digests_of_settings(decisive) | digests_of_adapter(threads.adapter),
    )
    config = make_config(
        task, role.section, seed=seed, mode=mode, width=max_in_flight, staleness=staleness, most=max_metric_calls
    )
    result = Launch(
        config=config,
        task=task,
        parts=parts,
        roles=role.opens_roles,
        run_dir=directory,
        logger=logger,
        shown=[each for each in (bar, tracking) if each is not None],
    ).run()
    return cast("GEPAResult[RolloutOutput, DataId]", result)


def _chunk(validation: int, minibatch: int, concurrency: int) -> int | None:
    """The most examples that a call of the adapter gets, at least a whole minibatch; None: all of them.

    A validation runs in two halves, each in as many calls as may be made at a time.
    """
    return None if concurrency == 1 else max(minibatch, -(-validation // (2 * concurrency)))
