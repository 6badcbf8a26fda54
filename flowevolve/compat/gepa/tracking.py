"""Reports to MLflow and Weights & Biases what gepa reports to them, through gepa's own tracker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from types import TracebackType
from typing import Self

from gepa.core.callbacks import EvaluationEndEvent, IterationEndEvent
from gepa.core.state import ValsetEvaluation
from gepa.logging.experiment_tracker import ExperimentTracker
from gepa.logging.utils import log_detailed_metrics_after_discovering_new_program as log_candidate
from gepa.strategies.eval_policy import EvaluationPolicy
from gepa.visualization import candidate_tree_html

from flowevolve._util.errors import InputError
from flowevolve._util.user_warnings import warn_user
from flowevolve.compat.gepa.data import AnyId
from flowevolve.compat.gepa.mirror import Mirror


def check_trackers(given: Mapping[str, object], *, use_wandb: bool, use_mlflow: bool) -> None:
    """Warn of arguments that were ``given`` for a tracker that is not used.

    Raises:
        InputError: naming the tracker that should be used but is not installed.
    """
    for package, used in (("wandb", use_wandb), ("mlflow", use_mlflow)):
        for name, value in given.items():
            if value and not used and name.startswith(package):
                warn_user(f"{name} has no effect without use_{package}=True")
        if used and find_spec(package) is None:
            raise InputError(f"use_{package} needs {package}, which is not installed; pip install {package}")


class _Quiet:
    """A logger that writes nothing: the lines that gepa logs beside its metrics are in the event log."""

    def log(self, message: str) -> None:
        pass


class Tracking:
    """A gepa callback that is entered for the duration of a run, in the thread that called `optimize`.

    MLflow's active run belongs to that thread. While the run goes on, metrics are sent from another thread, because a
    tracking server may be slow. Tables are sent when the run is over.
    """

    def __init__(
        self,
        tracker: ExperimentTracker,
        mirror: Mirror,
        policy: EvaluationPolicy[AnyId, object],
        config: Mapping[str, object],
        valset_size: int,
    ) -> None:
        self._tracker = tracker
        self._mirror = mirror
        self._policy = policy
        self._config = config
        self._valset_size = valset_size
        self._sender = ThreadPoolExecutor(1, "flowevolve-tracking")
        self._tables: dict[str, tuple[list[str], list[list[object]]]] = {}
        self._before: dict[tuple[int, int], float] = {}
        """The sum of a parent's scores on its minibatch, by the numbers of the iteration and of the parent."""

    def __enter__(self) -> Self:
        self._tracker.__enter__()  # type: ignore[no-untyped-call]
        self._tracker.log_config(dict(self._config))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._sender.shutdown()
        for name, (columns, rows) in self._tables.items():
            self._tracker.log_table(name, columns, rows)
        self._tracker.__exit__(kind, error, at)  # type: ignore[no-untyped-call]

    def on_evaluation_end(self, event: EvaluationEndEvent) -> None:
        """A parent or its child was evaluated on the minibatch. Merges, which have two parents, are not reported."""
        iteration, number, parents = event["iteration"], event["candidate_idx"], event["parent_ids"]
        scored, calls = sum(event["scores"]), self._mirror.calls
        if number is not None:
            self._before[iteration, number] = scored
            metrics = {"iteration": iteration, "selected_program_candidate": number, "total_metric_calls": calls}
            self.log_metrics(metrics, iteration)
        elif len(parents) == 1 and (before := self._before.pop((iteration, parents[0]), None)) is not None:
            both = {"subsample_score": before, "new_subsample_score": scored}
            both |= {"subsample/before": before, "subsample/after": scored, "total_metric_calls": calls}
            self.log_metrics(both, iteration)

    def on_iteration_end(self, event: IterationEndEvent) -> None:
        self._before = {key: before for key, before in self._before.items() if key[0] != event["iteration"]}

    def on_valset_evaluated(self, event: Mapping[str, object]) -> None:
        """A candidate has entered: log what gepa logs about it, and a row with its texts."""
        state, number = self._mirror.state, len(self._mirror.state.program_candidates) - 1
        scores = state.prog_candidate_val_subscores[number]
        objectives = state.prog_candidate_objective_scores[number]
        log_candidate(
            logger=_Quiet(),
            gepa_state=state,
            new_program_idx=number,
            valset_evaluation=ValsetEvaluation({}, scores),
            objective_scores=objectives,
            experiment_tracker=self,
            linear_pareto_front_program_idx=self._policy.get_best_program(state),
            valset_size=self._valset_size,
            val_evaluation_policy=self._policy,
        )
        texts = state.program_candidates[number]
        columns = ["iteration", "candidate_idx", "parent_ids", "valset_score", "is_best"]
        row = [
            event["iteration"], number, str(event["parent_ids"]), event["average_score"], event["is_best_program"]
        ]  # fmt: skip
        self.log_table(
            "candidates",
            [*columns, *(f"text:{name}" for name in sorted(texts))],
            [[*row, *(text for _, text in sorted(texts.items()))]],
        )

    def on_optimization_end(self, event: Mapping[str, object]) -> None:
        state = self._mirror.state
        best = self._policy.get_best_program(state)
        summary: dict[str, object] = {
            "best_candidate_idx": best,
            "best_valset_score": self._policy.get_valset_score(best, state),
            "total_iterations": state.i,
            "total_candidates": len(state.program_candidates),
        }
        for name, text in sorted(state.program_candidates[0].items()):
            summary[f"seed/{name}"] = text
            summary[f"best/{name}"] = state.program_candidates[best][name]
        self._sender.submit(self._tracker.log_html, candidate_tree_html(state))
        self._sender.submit(self._tracker.log_summary, summary)

    # The methods of a tracker that gepa's function for a new candidate calls

    def log_metrics(self, metrics: Mapping[str, object], step: int | None = None) -> None:
        self._sender.submit(self._tracker.log_metrics, dict(metrics), step)

    def log_table(self, table_name: str, columns: list[str], data: Sequence[list[object]]) -> None:
        self._tables.setdefault(table_name, (columns, []))[1].extend(data)
