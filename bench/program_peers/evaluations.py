"""The evaluations of a run: from the log that `forms/judging.py` writes, or from the journal of a run of ours.

Our sandbox lets no evaluator write to a log. A journal has the times of evaluations and of LLM calls on one clock, so
its first call, which the server has seen as well, relates these times to the server's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from flowevolve.journal.reading import RecordedRun

_TIMED_OUT = "timeout"
"""A failure of a program of ours has this word in it if the program was ended at the time limit."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``began`` is unknown for our runs. ``ended`` and the score are None if the evaluation did not end by itself."""

    began: float | None
    ended: float | None
    score: float | None
    error: str | None = None


def read_log(log: Path, first: float) -> list[Evaluation]:
    """The evaluations of a log, with their times relative to ``first``, in the order in which they ended."""
    found: list[Evaluation] = []
    running: dict[str, float] = {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
        told = json.loads(line)
        worker, at = told["worker"], told["at"] - first
        if told["event"] == "began":
            if worker in running:
                found.append(Evaluation(running[worker], None, None))
            running[worker] = at
        else:
            found.append(Evaluation(running.pop(worker), at, told["score"], told["error"]))
    return [*found, *(Evaluation(began, None, None) for began in running.values())]


def read_journal(out: Path) -> list[Evaluation]:
    """The evaluations of a run of ours since it was started or last resumed, relative to its first call since then."""
    with RecordedRun(out) as run:
        events = list(run.events())
        since = max((event.seq for event in events if event.kind == "run.resumed"), default=-1)
        first = min((call.started for call in run.calls(texts=False) if call.seq >= since), default=0.0)
    found: list[Evaluation] = []
    for event in events:
        if event.kind == "candidate.assessed" and event.seq > since:
            score, failure = event.data["score"], event.data["failure"]
            assert isinstance(score, int | float)
            if failure is not None and _TIMED_OUT in str(failure):
                found.append(Evaluation(None, None, None))
            else:
                error = None if failure is None else str(failure)
                found.append(Evaluation(None, event.time - first, float(score), error))
    return found
