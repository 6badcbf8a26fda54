"""Calls a user's adapter from worker threads, because it is synchronous, may block, and may not be thread-safe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf, isnan
from numbers import Real
from threading import Lock
from typing import TypeVar, TypeVarTuple

import anyio
from gepa.core.adapter import EvaluationBatch, GEPAAdapter

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import EndedInThreadError, InputError
from flowevolve._util.json_types import JSON
from flowevolve.compat.signed_pickles import keep_signed
from flowevolve.tasks.rows import unwrapped

T = TypeVar("T")
Args = TypeVarTuple("Args")
Batch = EvaluationBatch[object, object]
keep_signed(EvaluationBatch, "gepa_adapter.Batch")
Adapter = GEPAAdapter[object, object, object]
Reflections = Mapping[str, Sequence[Mapping[str, object]]]
"""A reflective dataset: records by component."""
Fetch = Callable[[], list[object]]


class _StateNotTakenError(Exception):
    """The adapter raised ``ended`` while restoring its state. Going on would mean going on without that state."""

    def __init__(self, ended: Exception) -> None:
        self.ended = ended
        super().__init__(str(ended))


class AdapterThreads:
    """Calls an adapter, at most ``concurrency`` methods at a time. 1 is safe for every adapter.

    The adapter gets its own copies of the candidate and the list of examples each time. Calls begin in the order in
    which they were requested.
    """

    def __init__(self, adapter: Adapter, concurrency: int) -> None:
        self.adapter = adapter
        self.concurrency = concurrency
        self._cut_off: Callable[[], None] = lambda: None
        self.ended: BaseException | None = None
        """The exception by which the adapter tried to end the process, or failed to restore its state."""
        self._limiter = anyio.CapacityLimiter(concurrency)
        self._evaluate_many: Callable[..., Sequence[Batch]] | None = getattr(adapter, "batch_evaluate", None)
        self._get_state: Callable[[], Mapping[str, object]] | None = getattr(adapter, "get_adapter_state", None)
        self._set_state: Callable[[dict[str, JSON]], object] = getattr(adapter, "set_adapter_state", lambda state: None)
        self._restoring = Lock()
        self._restored: dict[str, JSON] | None = None
        self.state: dict[str, JSON] | None = None
        """The adapter's own state (gepa's ``get_adapter_state``) after its last validation; None if it has none."""

    @contextmanager
    def cutting_off(self) -> Iterator[None]:
        """Wrap a run, which is cancelled when `ended` is set."""
        with anyio.CancelScope() as scope:
            self._cut_off = scope.cancel
            yield

    async def run(self, function: Callable[[*Args], T], *args: *Args) -> T:
        """Run a function in a thread, within the limit of ``concurrency`` calls."""
        try:
            return await in_thread(self._in_turn, partial(function, *args), limiter=self._limiter)
        except (EndedInThreadError, _StateNotTakenError) as error:
            self.ended = error.ended
            self._cut_off()
            await anyio.sleep_forever()
            raise

    def _in_turn(self, call: Callable[[], T]) -> T:
        with self._restoring:  # before the first call, whichever of several concurrent ones that is
            if self._restored is not None:
                try:
                    self._set_state(self._restored)
                except Exception as error:
                    raise _StateNotTakenError(error) from error
                self._restored = None
        return call()

    async def evaluate(
        self, candidate: Mapping[str, str], fetch: Fetch, *, traced: bool, notes_state: bool = False
    ) -> Batch:
        """Evaluate a candidate on the examples that ``fetch`` gets, which may itself take long.

        With ``traced``, the adapter is called as in gepa's iterations: with traces, and through ``batch_evaluate`` if
        it has that method. With ``notes_state``, its own state is read in the same turn, without waiting for another.

        Raises:
            InputError: if the result does not fit the batch, or the state can't be read or is not plain data.
        """
        return await self.run(self._evaluate, dict(candidate), fetch, traced, notes_state)

    def _evaluate(self, candidate: dict[str, str], fetch: Fetch, traced: bool, notes_state: bool) -> Batch:
        examples = fetch()
        if traced and self._evaluate_many is not None:
            (evaluated,) = self._evaluate_many([(candidate, list(examples))])
        else:
            evaluated = self.adapter.evaluate(list(examples), candidate, capture_traces=traced)
        evaluated = _checked(evaluated, len(examples))
        if notes_state and self._get_state is not None:
            self.state = _plain(self._get_state)
        return evaluated

    async def reflections(
        self, candidate: Mapping[str, str], evaluated: Batch, components: Sequence[str]
    ) -> Reflections:
        """The adapter's reflective dataset for these components."""
        return await self.run(self.adapter.make_reflective_dataset, dict(candidate), evaluated, list(components))

    def restore(self, state: Mapping[str, JSON]) -> None:
        """Have the adapter restore a state from before the run was interrupted. Of several, the last one counts."""
        self._restored = dict(state)


def _plain(get: Callable[[], Mapping[str, object]]) -> dict[str, JSON]:
    try:
        state: dict[str, JSON] = json.loads(json.dumps(dict(get())))
    except Exception as error:
        raise InputError(
            f"adapter.get_adapter_state failed with {type(error).__name__}: {error}; return what JSON can hold, or "
            "leave the method out"
        ) from error
    return state


def _checked(evaluated: Batch, examples: int) -> Batch:
    """The evaluation with scores that are numbers to Python, too: truth values of numpy and the like are none.

    Raises:
        InputError: if it does not fit the batch.
    """
    if not all(hasattr(evaluated, name) for name in ("outputs", "scores", "trajectories", "objective_scores")):
        raise InputError(
            f"adapter.evaluate returned something of type {type(evaluated).__name__}; return a gepa EvaluationBatch"
        )
    given = {"trajectories": evaluated.trajectories, "objective_scores": evaluated.objective_scores}
    wanted: dict[str, Sequence[object]] = {"scores": evaluated.scores, "outputs": evaluated.outputs}
    wanted |= {name: values for name, values in given.items() if values}
    for name, values in wanted.items():
        if len(values) != examples:
            raise InputError(
                f"adapter.evaluate returned {len(values)} {name} for {examples} examples; return one for each, in "
                "their order"
            )
    scores: list[float] = []
    for place, given_score in enumerate(wanted["scores"]):
        score = given_score if isinstance(given_score, Real) else unwrapped(given_score)
        if not isinstance(score, Real) or isnan(score) or score == inf:
            raise InputError(
                f"adapter.evaluate returned {score!r} as score {place}; return a number below infinity for each example"
            )
        scores.append(float(score))
    for place, objectives in enumerate(evaluated.objective_scores or ()):
        try:
            for score in objectives.values():
                float(score)
        except (AttributeError, TypeError, ValueError):
            raise InputError(
                f"adapter.evaluate returned {objectives!r} as the objective scores of example {place}; return a "
                "mapping of names to numbers for each example"
            ) from None
    plain = all(isinstance(score, Real) for score in evaluated.scores)
    return evaluated if plain else replace(evaluated, scores=scores)
