"""dspy's own GEPA adapter, adapted to concurrent evaluations and to resumed runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import cloudpickle
from dspy import Example, Predict, Prediction
from dspy.teleprompt.bootstrap_trace import FailedPrediction
from dspy.teleprompt.gepa.gepa_utils import DspyAdapter, DSPyTrace
from dspy.utils.exceptions import AdapterParseError
from gepa.core.adapter import EvaluationBatch, GEPAAdapter
from pydantic import TypeAdapter

from flowevolve._util.errors import InputError, TaskFailedError, one_line
from flowevolve.compat.dspy.judging import checked
from flowevolve.compat.gepa.identity import digests_of_settings
from flowevolve.tasks.judging import FAILURES_BEFORE_GIVING_UP, row_in_words

RAISED = FailedPrediction("the program raised an exception")
"""Used in place of the prediction of a program that raised an exception."""
_RNG_STATE = TypeAdapter(tuple[int, tuple[int, ...], float | None])
"""Restores the state of a `random.Random` from JSON, which has no tuples."""


class Trace(dict[str, object]):
    """A `TraceData` that can be pickled, although signatures are classes created at run time.

    Its predictors come back with nothing but their signature: their models, which have keys, stay out of the pickle.
    """

    def __reduce__(self) -> tuple[Callable[[bytes], Trace], tuple[bytes]]:
        calls: DSPyTrace = self["trace"]
        bare = [(Predict(predictor.signature), inputs, outputs) for predictor, inputs, outputs in calls]
        return _unpickled, (cloudpickle.dumps({**self, "trace": bare}),)


def _has_failed(output: object) -> bool:
    """Whether dspy had no prediction for a row, or no score."""
    return output is None or (isinstance(output, Prediction) and not output.keys())


def _unpickled(data: bytes) -> Trace:
    return Trace(cloudpickle.loads(data))


@dataclass
class Batch(EvaluationBatch[Mapping[str, object], object]):
    """A batch that can be pickled, although predictions refer to their signature."""

    def __reduce__(self) -> tuple[Callable[[bytes], Batch], tuple[bytes]]:
        return _unpickled_batch, (cloudpickle.dumps(_fields(self)),)


def _fields(batch: EvaluationBatch[Mapping[str, object], object]) -> dict[str, Any]:
    return {field.name: getattr(batch, field.name) for field in fields(batch)}


def _unpickled_batch(data: bytes) -> Batch:
    return Batch(**cloudpickle.loads(data))


class ProgramAdapter(GEPAAdapter[Example, Mapping[str, object], object]):
    """A gepa adapter around dspy's. Each evaluation has ``threads`` threads.

    It has no proposer of its own, so that the proposer can be called beside evaluations.
    """

    def __init__(self, inner: DspyAdapter, seed: Mapping[str, str], threads: int) -> None:
        self._metric = inner.metric_fn
        self._refused: list[InputError] = []
        inner.metric_fn = checked(inner.metric_fn, self._refused.append)
        self._inner = inner
        self._seed = seed
        self._threads = threads
        self._worked = False
        self._failures = 0

    def evaluate(self, batch: list[Example], candidate: dict[str, str], capture_traces: bool = False) -> Batch:
        """Raises:
        InputError: if the metric returned no score.
        TaskFailedError: if the seed, or the metric on its answers, has failed on every row so far.
        """
        made = self._inner.evaluate(batch, candidate, capture_traces, num_threads=self._threads)
        if self._refused:
            raise self._refused[0]
        if candidate == self._seed and not self._worked:
            self._check_seed(batch, made.outputs)
        evaluated = Batch(**_fields(made))
        if evaluated.trajectories:
            evaluated.trajectories = self._one_each(batch, evaluated.trajectories)
        return evaluated

    def _check_seed(self, batch: Sequence[Example], outputs: Sequence[object]) -> None:
        """Check whether the seed works at all. dspy keeps no exceptions, so the last row is run again to get one."""
        self._worked = not all(map(_has_failed, outputs))
        self._failures += len(batch)
        if self._worked or self._failures < FAILURES_BEFORE_GIVING_UP:
            return
        row = batch[-1]
        try:
            self._inner.metric_fn(row, self._inner.build_program(dict(self._seed))(**row.inputs()))
        except AdapterParseError:  # the model's fault, which reflection may be able to fix
            pass
        except Exception as error:
            raise TaskFailedError(
                f"the program or the metric failed on each of the first {self._failures} rows, so there is nothing to "
                f"learn from; the last error was {type(error).__name__}: {one_line(error)}; {row_in_words(dict(row))}"
            ) from error
        self._worked = True

    def _one_each(self, batch: Sequence[Example], traces: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
        """A trace for each example. dspy leaves out the examples on which the program raised an exception."""
        known = {trace["example_ind"]: Trace(trace) for trace in traces}
        return [known.get(number) or self._no_trace(number, example) for number, example in enumerate(batch)]

    def _no_trace(self, number: int, example: Example) -> Trace:
        score = self._inner.failure_score
        return Trace(example_ind=number, example=example, prediction=RAISED, trace=[], score=score)

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Mapping[str, object], object],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Mapping[str, object]]]:
        traces = [trace for trace in eval_batch.trajectories or () if trace["prediction"] != RAISED]
        made: Mapping[str, Sequence[Mapping[str, object]]] = self._inner.make_reflective_dataset(
            candidate, replace(eval_batch, trajectories=traces), components_to_update
        )
        return made

    def adjustable(self) -> Mapping[str, str]:
        """Digests of what decides scores and texts besides gepa's arguments. A resumed run reports what changed."""
        inner = self._inner
        given = {
            "student.forward": getattr(type(inner.student), "forward", None),
            "metric": self._metric,
            "failure_score": inner.failure_score,
            "add_format_failure_as_feedback": inner.add_format_failure_as_feedback,
            "instruction_proposer": inner.custom_instruction_proposer,
            "code_proposer": inner.custom_code_proposer,
        }
        return digests_of_settings(given)

    def get_adapter_state(self) -> Mapping[str, object]:
        state: Mapping[str, object] = self._inner.get_adapter_state()
        return state

    def set_adapter_state(self, state: Mapping[str, object]) -> None:
        """Restore a state."""
        self._inner.set_adapter_state({"rng_state": _RNG_STATE.validate_python(state["rng_state"])})
