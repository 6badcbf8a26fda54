"""dspy's GEPA teleprompter over `flowevolve.compat.gepa.optimize`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from os import PathLike
from random import Random

import dspy
from dspy import Example, Module, Prediction
from dspy.teleprompt.gepa.gepa import AUTO_RUN_SETTINGS, DspyGEPAResult
from dspy.teleprompt.gepa.gepa_flex_utils import enumerate_flex_submodules
from dspy.teleprompt.gepa.gepa_utils import DspyAdapter, DSPyTrace, LoggerAdapter
from dspy.teleprompt.gepa.instruction_proposal import InstructionProposer
from gepa.core.result import GEPAResult

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.compat.dspy.adapter import ProgramAdapter
from flowevolve.compat.gepa import optimize
from flowevolve.tasks.judging import value_in_words

MINIBATCH = 3
"""The assumed size of a minibatch if it is not set, because a batch sampler may decide it."""
CHUNKS_OF = 4
"""Examples for each thread of a call, if an evaluation is split into several calls."""
OWN = frozenset(
    {
        "evaluator",
        "reflection_lm",
        "reflection_lm_kwargs",
        "reflection_prompt_template",
        "reflection_strategy",
        "task_lm",
    }
)
"""gepa's arguments that say how candidates are run and texts are written. Here dspy's adapter does both."""
# Below dspy's own logger, so that dspy.disable_logging and the like apply to it too.
logger = logging.getLogger("dspy.flowevolve")


@dataclass(frozen=True, slots=True)
class Shares:
    """How ``num_threads`` is split: ``calls`` evaluations at a time, each with ``threads`` and ``chunk`` examples."""

    calls: int
    threads: int
    chunk: int | None


class _InDspysWords(LoggerAdapter):
    """A logger that uses dspy's names of arguments in place of gepa's."""

    def log(self, message: str) -> None:
        super().log(_as_dspys(message))


def _as_dspys(message: str) -> str:
    """Translate a message about gepa's arguments to the arguments of dspy's `GEPA`."""
    if message.startswith(("run_dir: ", "run_dir is ")):
        message = message.replace("run_dir", "log_dir", 1).replace(
            "seed_candidate is another one", "student has other instructions"
        )
    for words, ours in {
        "another run_dir": "another log_dir",
        "without run_dir": "without log_dir",
        "call optimize": "call compile",
        "adapter calls are made one at a time, which is safe for every adapter; if yours may be called from several "
        "threads at once, adapter_concurrency=8 is faster": "evaluations are made one at a time; if your program and "
        "metric may be called from more threads at once, a higher num_threads is faster",
        "with max_metric_calls=…": "with max_metric_calls, max_full_evals or auto",
    }.items():
        message = message.replace(words, ours)
    return message


class GEPA(dspy.GEPA):
    """`dspy.GEPA` as a stream. What its arguments mean here: docs/how-to/dspy.md.

    ``num_threads`` bounds the examples that run at a time, as in dspy. They belong to ``adapter_concurrency``
    evaluations, by default as many as there are threads for whole minibatches. ``reflection_concurrency`` bounds the
    calls of the proposer at a time, by default ``adapter_concurrency``, or 1 for a proposer of the user's own.
    ``max_in_flight`` bounds the open iterations, by default as many as there is use for. With ``max_in_flight=1`` this
    does what `dspy.GEPA` does.
    """

    def __init__(
        self,
        metric: Callable[..., float | Prediction],
        *,
        adapter_concurrency: int | None = None,
        reflection_concurrency: int | None = None,
        max_in_flight: int | None = None,
        **arguments: object,
    ) -> None:
        """Take the arguments of `dspy.GEPA`, and ours.

        Raises:
            InputError: if an argument is wrong, with dspy's own message for those that dspy checks.
        """
        _check_arguments(arguments)
        try:
            super().__init__(metric, **arguments)
        except (AssertionError, TypeError, ValueError) as error:
            raise InputError(f"dspy.GEPA: {error}") from None
        self.adapter_concurrency = adapter_concurrency
        self.reflection_concurrency = reflection_concurrency
        self.max_in_flight = max_in_flight

    def compile(
        self,
        student: Module,
        *,
        trainset: list[Example],
        teacher: Module | None = None,
        valset: list[Example] | None = None,
    ) -> Module:
        """The student with the best instructions that were found. With ``track_stats`` it also has `detailed_results`.

        Raises:
            InputError: naming the argument that can't be used.
            FlowevolveError: if the run failed.
        """
        if teacher is not None:
            raise InputError("teacher: GEPA has no use for a teacher; leave it out")
        if not trainset:
            raise InputError("trainset is empty; give at least one dspy.Example")
        _check_rows("trainset", trainset)
        _check_rows("valset", valset or ())
        seed = _components(student)
        shares = self._shares()
        inner = self._adapter(student)
        run = partial(
            optimize,
            seed_candidate=seed,
            trainset=trainset,
            valset=trainset if valset is None else valset,
            adapter=ProgramAdapter(inner, seed, shares.threads),
            custom_candidate_proposer=inner.propose_new_texts,
            candidate_selection_strategy=self.candidate_selection_strategy,
            skip_perfect_score=self.skip_perfect_score,
            reflection_minibatch_size=self.reflection_minibatch_size,
            module_selector=self.component_selector,
            perfect_score=self.perfect_score,
            use_merge=self.use_merge,
            max_merge_invocations=self.max_merge_invocations,
            max_metric_calls=self._budget(len(seed), len(trainset), len(valset or ())),
            logger=_InDspysWords(logger),
            run_dir=self.log_dir,
            use_wandb=self.use_wandb,
            wandb_api_key=self.wandb_api_key,
            wandb_init_kwargs=self.wandb_init_kwargs,
            use_mlflow=self.use_mlflow,
            track_best_outputs=self.track_best_outputs,
            seed=self.seed,
            adapter_concurrency=shares.calls,
            reflection_concurrency=self._reflections(shares),
            max_in_flight=self.max_in_flight,
        )
        _check(self.gepa_kwargs, taken=OWN | run.keywords.keys())
        try:
            result: GEPAResult[object, int] = run(**{"chunk_size": shares.chunk, **self.gepa_kwargs})
        except InputError as error:
            raise InputError(_as_dspys(str(error))) from error.__cause__
        program = inner.build_program(result.best_candidate)
        if self.track_stats:
            program.detailed_results = DspyGEPAResult.from_gepa_result(result, inner)
        return program

    def _shares(self) -> Shares:
        total: int = self.num_threads or dspy.settings.num_threads
        minibatch = self.reflection_minibatch_size or MINIBATCH
        calls = self.adapter_concurrency
        if calls is None:
            calls = max(1, total // minibatch)
        if not 1 <= calls <= total:
            raise InputError(f"adapter_concurrency is {calls}, but has to be from 1 to {total}, the number of threads")
        threads = total // calls
        return Shares(calls, threads, None if calls == 1 else max(CHUNKS_OF * threads, minibatch))

    def _reflections(self, shares: Shares) -> int:
        """How many calls of the proposer are made at a time. Only dspy's own proposers are known to be thread-safe."""
        if self.reflection_concurrency is not None:
            return self.reflection_concurrency
        dspys = isinstance(self.custom_instruction_proposer, InstructionProposer | None)
        return shares.calls if dspys and self.custom_code_proposer is None else 1

    def _budget(self, components: int, train: int, val: int) -> int:
        """The number of metric calls, as dspy counts them. ``val`` is 0 if the trainset is used for both."""
        if self.auto is not None:
            tried = AUTO_RUN_SETTINGS[self.auto]["n"]
            return int(self.auto_budget(num_preds=components, num_candidates=tried, valset_size=val or train))
        if self.max_full_evals is not None:
            return int(self.max_full_evals * (train + val))
        return int(self.max_metric_calls)

    def _adapter(self, student: Module) -> DspyAdapter:
        return DspyAdapter(
            student_module=student,
            metric_fn=self.metric_fn,
            feedback_map={name: self._feedback(name, predictor) for name, predictor in student.named_predictors()},
            failure_score=self.failure_score,
            add_format_failure_as_feedback=self.add_format_failure_as_feedback,
            rng=Random(self.seed),
            reflection_lm=self.reflection_lm,
            custom_instruction_proposer=self.custom_instruction_proposer,
            custom_code_proposer=self.custom_code_proposer,
            warn_on_score_mismatch=self.warn_on_score_mismatch,
            reflection_minibatch_size=self.reflection_minibatch_size,
        )

    def _feedback(self, name: str, predictor: Module) -> Callable[..., dict[str, object]]:
        """The function that dspy's adapter asks for feedback on a predictor: it passes the predictor to the metric."""

        def feedback(
            *,
            predictor_output: Mapping[str, object],
            predictor_inputs: Mapping[str, object],
            module_inputs: Example,
            module_outputs: Prediction,
            captured_trace: DSPyTrace,
        ) -> dict[str, object]:
            called = [(predictor, predictor_inputs, predictor_output)]
            given = self.metric_fn(module_inputs, module_outputs, captured_trace, name, called)
            score = getattr(given, "score", given)
            text = getattr(given, "feedback", None)
            return {"score": score, "feedback": f"The score is {score}." if text is None else text}

        return feedback


def _components(student: Module) -> dict[str, str]:
    """A program's texts: instructions by predictor, and sources by `dspy.Flex` module.

    Raises:
        InputError: if it has none.
    """
    if not isinstance(student, Module):
        raise InputError(f"student is {value_in_words(student)}; give an object of a class of dspy.Module")
    texts: dict[str, str] = {name: each.signature.instructions for name, each in student.named_predictors()}
    texts |= {path: flex.module_src for path, flex in enumerate_flex_submodules(student).items()}
    if not texts:
        raise InputError(f"student: {type(student).__name__} has no predictor; give it one, such as dspy.Predict")
    return texts


def _check_arguments(given: Mapping[str, object]) -> None:
    """Raises: InputError if an argument is wrong in a way that dspy would notice in the middle of a run, if at all."""
    auto, model, threads = given.get("auto"), given.get("reflection_lm"), given.get("num_threads")
    if auto is not None and auto not in AUTO_RUN_SETTINGS:
        raise InputError(f"auto: unknown name {auto!r}; {did_you_mean(str(auto), list(AUTO_RUN_SETTINGS))}")
    if isinstance(model, str):
        raise InputError(f"reflection_lm is the text {model!r}; give dspy.LM({model!r})")
    if not isinstance(threads, Integral | None):
        raise InputError(f"num_threads is {threads!r}; give a whole number of at least 1")
    if threads is not None and int(threads) < 0:
        raise InputError(f"num_threads is {threads}, but has to be at least 1")
    log_dir = given.get("log_dir")
    if not isinstance(log_dir, str | PathLike | None):
        raise InputError(f"log_dir is {log_dir!r}; give the path of a directory")
    if not isinstance(more := given.get("gepa_kwargs"), Mapping | None):
        raise InputError(f"gepa_kwargs is {more!r}; give a mapping of arguments by name")


def _check_rows(name: str, rows: Sequence[object]) -> None:
    """Raises: InputError if a row is not an example, or does not say which of its fields are inputs."""
    for number, row in enumerate(rows):
        if not isinstance(row, Example):
            raise InputError(
                f"{name}: row {number} is of type {type(row).__name__}; give dspy.Example(…).with_inputs(…)"
            )
        try:
            row.inputs()
        except ValueError:
            raise InputError(
                f"{name}: row {number} does not say what its inputs are; add .with_inputs(…) with their names"
            ) from None


def _check(gepa_kwargs: Mapping[str, object], taken: Collection[str]) -> None:
    """Raises:
    InputError: if gepa does not have one of the arguments, or the user can't give it here.
    """
    known = [name for name in inspect.signature(optimize).parameters if name not in taken]
    for name in gepa_kwargs:
        if name in taken:
            raise InputError(
                f"gepa_kwargs: {name} can't be given there; leave it out, or give an argument of GEPA instead"
            )
        if name not in known:
            raise InputError(f"gepa_kwargs: unknown name {name!r}; {did_you_mean(name, known)}")
