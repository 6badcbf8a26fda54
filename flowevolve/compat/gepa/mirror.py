"""gepa's own state, kept in step with the pool, for the user's objects that read it: selectors, stoppers, callbacks.

Like archives, it is a function of the log: `apply` takes commits, `note` and `count` take what no commit contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gepa.core.callbacks import notify_callbacks
from gepa.core.state import FrontierType, GEPAState, ValsetEvaluation

from flowevolve._util.errors import EngineError
from flowevolve.compat.gepa.data import AnyId, Examples
from flowevolve.compat.gepa.records import Validated
from flowevolve.compat.gepa.threads import AdapterThreads, Batch
from flowevolve.core.event_kinds import CandidateRejected, FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import Add, Candidate, Update

State = GEPAState[object, AnyId]


class Mirror:
    """Keeps gepa's state. Candidates have gepa's numbers: the order in which they entered the pool, 0 for the seed."""

    def __init__(
        self,
        val: Examples,
        *,
        perfect_score: float | None,
        frontier_type: FrontierType,
        track_best_outputs: bool,
        callbacks: Sequence[object],
        max_metric_calls: int | None,
    ) -> None:
        self._val = val
        self._perfect_score = perfect_score
        self._frontier_type: FrontierType = frontier_type
        self._track_best_outputs = track_best_outputs
        self._callbacks = list(callbacks)
        self._most_calls = max_metric_calls
        self._state: State | None = None
        self._calls = 0
        self._ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._passed: dict[str, float] = {}
        self._objectives: dict[str, dict[str, dict[str, float]]] = {}
        self._outputs: dict[str, dict[str, object]] = {}
        self._validated: dict[str, Validated] = {}
        self._iterations: dict[int, int] = {}
        self._accepted: set[int] = set()

    @property
    def state(self) -> State:
        """Raises:
        EngineError: as long as the seed is not in the pool.
        """
        if self._state is None:
            raise EngineError("gepa's state begins with the seed's scores, which are not there yet")
        return self._state

    @property
    def begun(self) -> bool:
        return self._state is not None

    @property
    def calls(self) -> int:
        """Metric calls so far."""
        return self._calls

    def number(self, candidate_id: str) -> int:
        return self._numbers[candidate_id]

    def candidate_id(self, number: int) -> str:
        return self._ids[number]

    def perfect(self, score: float) -> bool:
        return self._perfect_score is not None and score >= self._perfect_score

    def count(self, calls: int) -> None:
        """Count metric calls that were made."""
        self._calls += calls
        if self._state is not None:
            self._state.increment_evals(calls)
            remaining = None if self._most_calls is None else max(0, self._most_calls - self._calls)
            self.tell(
                "on_budget_updated",
                iteration=self._state.i + 1,
                metric_calls_used=self._calls,
                metric_calls_delta=calls,
                metric_calls_remaining=remaining,
            )

    def recall(self, calls: int) -> None:
        """Count metric calls that were made before the run was interrupted."""
        self._calls += calls
        if self._state is not None:
            self._state.total_num_evals = self._calls

    def saw(self, candidate_id: str, example: str, batch: Batch, place: int) -> None:
        """Keep the output and the objectives' scores of a validation example until the candidate enters the pool."""
        if self._track_best_outputs:
            self._outputs.setdefault(candidate_id, {})[example] = batch.outputs[place]
        if batch.objective_scores:
            scores = {name: float(score) for name, score in batch.objective_scores[place].items()}
            self._objectives.setdefault(candidate_id, {})[example] = scores

    def objectives(self, candidate_id: str) -> Mapping[str, Mapping[str, float]]:
        """Take out the kept scores of the objectives, by validation example."""
        return self._objectives.pop(candidate_id, {})

    def passed(self, candidate_id: str, scores: Sequence[float]) -> None:
        """Note that a candidate passed the screening of its minibatch with these scores."""
        self._passed[candidate_id] = sum(scores)

    def passed_with(self, candidate_id: str) -> float | None:
        """Take out the sum of scores with which a candidate passed; None if it had no minibatch of its own."""
        return self._passed.pop(candidate_id, None)

    def front(self) -> frozenset[int]:
        """The numbers of the candidates on gepa's front; none before the seed entered, or if no callback listens."""
        if self._state is None or not self.listens("on_pareto_front_updated"):
            return frozenset()
        return frozenset().union(*self._state.get_pareto_front_mapping().values())

    def note(self, validated: Validated) -> None:
        """Note the data on a candidate that is about to enter."""
        self._validated[validated.candidate] = validated

    def apply(self, update: Update) -> None:
        for change in update.changes:
            if isinstance(change, Add) and change.status == "confirmed":
                self._enter(change.candidate)

    def _enter(self, candidate: Candidate) -> None:
        validated = self._validated.pop(candidate.id, Validated(candidate=candidate.id, calls=self._calls))
        evaluation = self._evaluation(candidate, validated)
        if self._state is None:
            self._state = GEPAState(
                dict(candidate.artifact),
                evaluation,
                track_best_outputs=self._track_best_outputs,
                frontier_type=self._frontier_type,
            )
            self._state.total_num_evals = self._calls
            self._state.num_full_ds_evals = 1
            if self._state.best_outputs_valset is not None:
                for data_id in evaluation.scores_by_val_id:  # a resumed run does not have the outputs from before
                    self._state.best_outputs_valset.setdefault(data_id, [])
        else:
            self._state.num_full_ds_evals += 1
            self._state.update_state_with_new_program(
                parent_program_idx=[self._numbers[parent] for parent in candidate.parents],
                new_program=dict(candidate.artifact),
                valset_evaluation=evaluation,
                run_dir=None,
                num_metric_calls_by_discovery_of_new_program=validated.calls,
            )
        self._numbers[candidate.id] = len(self._ids)
        self._ids.append(candidate.id)

    def _evaluation(self, candidate: Candidate, validated: Validated) -> ValsetEvaluation[object, AnyId]:
        data_id = self._val.data_id
        outputs = self._outputs.pop(candidate.id, {})
        objectives = {data_id(name): dict(scores) for name, scores in validated.objectives.items()}
        return ValsetEvaluation(
            outputs_by_val_id={data_id(name): outputs[name] for name in candidate.scores if name in outputs},
            scores_by_val_id={data_id(name): score for name, score in candidate.scores.items()},
            objective_scores_by_val_id=objectives or None,
        )

    # Callbacks

    def listen(self, callback: object) -> None:
        """Add a callback after the existing ones."""
        self._callbacks.append(callback)

    def start(self, seed: Mapping[str, str], trainset_size: int, random_seed: int) -> None:
        """Tell callbacks that `optimize` was called, for a new run or to resume one."""
        self.tell(
            "on_optimization_start",
            seed_candidate=dict(seed),
            trainset_size=trainset_size,
            valset_size=len(self._val.loader),
            config={
                "perfect_score": self._perfect_score,
                "seed": random_seed,
                "track_best_outputs": self._track_best_outputs,
            },
        )

    def tell(self, method: str, **event: object) -> None:
        """Call this method of every callback that has it. A failing callback leads to a warning, as in gepa."""
        notify_callbacks(self._callbacks, method, event)

    def listens(self, method: str) -> bool:
        """Whether any callback has this method, so that its arguments are worth computing."""
        return any(hasattr(callback, method) for callback in self._callbacks)

    async def inputs(self, names: Sequence[str], examples: Examples, adapter: AdapterThreads) -> list[object]:
        """The examples that ``on_evaluation_start`` gets; none are fetched if no callback has that method."""
        return await adapter.run(examples.fetch, names) if self.listens("on_evaluation_start") else []

    def begin(self, flow: int, iteration: int) -> None:
        """Note the number of a flow's iteration."""
        self._iterations[flow] = iteration

    def iteration_of(self, item: str) -> int:
        """The number of the iteration that an item belongs to; 0 for the seed's."""
        return self._iterations.get(flow_of(item), 0)

    def accepted(self, item: str) -> None:
        """Note that a candidate of this item's iteration has entered."""
        self._accepted.add(flow_of(item))

    def end(self, flow: int) -> tuple[int | None, bool]:
        """Forget a flow that has ended. Returns the number of its iteration, if it was one, and whether a candidate of
        it has entered.
        """
        accepted = flow in self._accepted
        self._accepted.discard(flow)
        return self._iterations.pop(flow, None), accepted

    def forget(self, candidate_id: str) -> None:
        """Forget a candidate that will not enter any more."""
        self._passed.pop(candidate_id, None)
        self._objectives.pop(candidate_id, None)
        self._outputs.pop(candidate_id, None)
        self._validated.pop(candidate_id, None)

    def event(self, event: Event) -> None:
        """An event sink, which ends an iteration with its flow, and forgets rejected candidates."""
        match event.body:
            case CandidateRejected(candidate):
                self.forget(candidate)
            case FlowClosed(flow):
                iteration, accepted = self.end(flow)
                if iteration is not None:
                    self.tell("on_iteration_end", iteration=iteration, state=self.state, proposal_accepted=accepted)
            case _:
                pass

    def failed(self, error: Exception, *, will_continue: bool) -> None:
        self.tell("on_error", iteration=self.iteration, exception=error, will_continue=will_continue)

    @property
    def iteration(self) -> int:
        """The number of the latest iteration, from 1; 0 before there is a state."""
        return 0 if self._state is None else self._state.i + 1
