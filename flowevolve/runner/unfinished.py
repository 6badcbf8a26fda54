"""The result so far of a run that was stopped or killed before it wrote one, as its journal has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flowevolve._util.errors import InputError
from flowevolve._util.intervals import mean_interval
from flowevolve.config.backends import SIMULATED_BACKENDS
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.stop_reasons import INTERRUPTED
from flowevolve.journal.export import candidate_rows
from flowevolve.journal.reading import RecordedRun
from flowevolve.runner.overview import Overview, read_overview
from flowevolve.runner.result_parts import Best, totals_to_json, trust_to_json
from flowevolve.telemetry.role_replies import poor_to_json


def unfinished_result(path: Path) -> dict[str, object]:
    """What ``result.json`` would have if the run in a directory had been interrupted where it ended. What the journal
    can't tell without the algorithm, such as the frontier, is empty or left out.

    Raises:
        InputError: if there is no run, it is going on, or it has not begun.
    """
    overview = read_overview(path)
    if overview.state == "running":
        raise InputError(f"{path}: this run is still going on; flowevolve status {path} shows how far it is")
    if overview.state == "not begun":
        raise InputError(f"{path}: this run has not begun, so it has no result; to begin it: {overview.hint}")
    config, llm, seconds = overview.config, overview.llm, overview.wall_seconds
    best = _best(overview)
    return {
        "schema": 1,
        "algorithm": config.algorithm.name,
        "mode": config.algorithm.mode,
        "task": overview.task,
        "backend": config.llm.backend,
        "simulated": config.llm.backend in SIMULATED_BACKENDS and llm.any_calls,
        "stop_reason": INTERRUPTED,
        "error": None,
        "wall_seconds": round(seconds, 3),
        "seed_score": overview.seed_score,
        "best": None if best is None else best.to_json(),
        "frontier": [],
        "held_out": None,
        "pool_version": overview.pool_version,
        "proposals": overview.proposals,
        "accepted": overview.accepted,
        "rollouts": overview.rollouts,
        "failed_rollouts": asdict(overview.failed_rollouts),
        "llm": {
            **totals_to_json(llm),
            **poor_to_json(overview.cut_replies, overview.empty_replies),
            "mean_in_flight": round(llm.latency_seconds / seconds, 3) if seconds else 0.0,
        },
        **trust_to_json(overview.score_trust),
        "server": None,
        "stages": {},
    }


def _best(overview: Overview) -> Best | None:
    with RecordedRun(overview.path) as recorded:
        rows = {row["id"]: row for row in candidate_rows(recorded)}
    if overview.best_id not in rows:
        return None
    best = _candidate(rows[overview.best_id])
    seed = next((_candidate(row) for row in rows.values() if row["operator"] == SEED), None)
    return Best.of(best, mean_interval(list(best.scores.values())) if best.scores else None, seed=seed)


def _candidate(row: Mapping[str, Any]) -> Candidate:
    artifact = Artifact(row["components"], row["kind"])
    return Candidate(row["id"], artifact, scores=row["scores"], attributes=row["attributes"])
