"""Reads the pool of a recorded run, so that another run can start from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve._util.words import counted
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected, FlowOpened, PoolCommitted, RunStarted
from flowevolve.core.pool import Add, Candidate, Change, Move, Note, Vetoed
from flowevolve.core.task import Task
from flowevolve.engine.recovery.state import Start
from flowevolve.journal.reading import RecordedRun
from flowevolve.tasks.identity import Adjustable, changed_parts, difference

_SCORING = {"metric": "the code of metric", "program": "the code of program", "input": "input"}
"""What the scores of a prompt depend on, beside the rows; in words."""


def read_start(path: Path, version: int | None, algorithm: str, task: Task, *, named_by_folder: bool = False) -> Start:
    """The pool of the run in ``path`` as of a version, by default the last. ``named_by_folder`` is as in
    `flowevolve.tasks.identity.difference`.

    Candidates that were speculative then are revoked: nobody is left to finish their evaluation.

    Raises:
        InputError: if there is no such run or version, or it is a run of another algorithm or task.
    """
    proposed: dict[str, Candidate] = {}
    used: dict[str, Candidate] = {}
    speculative: dict[str, str] = {}
    updates: list[list[Change]] = []
    flows = 0
    with RecordedRun(path) as recorded:
        recorded.check()
        for event in recorded.events():
            match event.body:
                case RunStarted(algorithm=other) if other != algorithm:
                    raise InputError(
                        f"start.run: {path} is a run of algorithm {other!r}, but this one is of {algorithm!r}; start "
                        "from a run of the same one"
                    )
                case RunStarted() as start:
                    if wrong := difference(start, task, named_by_folder=named_by_folder):
                        raise InputError(
                            f"start.run: the scores in {path} are {wrong}; start from a run of the same task"
                        )
                case FlowOpened(flow=flow):
                    flows = flow + 1
                case CandidateProposed(candidate=name) as proposal:
                    proposed[name] = proposal.proposal()
                case CandidateRejected(candidate=name):
                    del proposed[name]
                case PoolCommitted() as commit if version is None or len(updates) < version:
                    updates.append(commit.read_changes(proposed.__getitem__))
                    _follow(updates[-1], proposed, used, speculative)
    if version is not None and version > len(updates):
        raise InputError(
            f"start.version is {version}, but the pool of {path} has only {counted(len(updates), 'version')}"
        )
    if not updates:
        raise InputError(f"start.run: the pool of {path} is empty; start from another run, or without start.run")
    updates = [[_without_veto(change, used) for change in changes] for changes in updates]
    if speculative:
        updates.append([Move(name, "revoked", pool=pool) for name, pool in speculative.items()])
    return Start(list(used.values()), updates, flows)


def changed_scoring(path: Path, task: Task) -> list[str]:
    """What the scores of the run in ``path`` depend on and is now another one in the task."""
    with RecordedRun(path) as recorded:
        start = recorded.start
    if start is None:
        return []
    settings = task.adjustable() if isinstance(task, Adjustable) else {}
    names = [name for name in changed_parts(start, task) if name in (*_SCORING, *settings)]
    return [name if name in settings else _SCORING[name] for name in names]


def _without_veto(change: Change, used: Mapping[str, Candidate]) -> Change:
    """The change; but a note in place of a veto of a candidate that was never in a pool."""
    if isinstance(change, Vetoed) and change.candidate_id not in used:
        return Note("veto", {"candidate": change.candidate_id, "stands": change.stands}, change.pool)
    return change


def _follow(
    changes: list[Change], proposed: dict[str, Candidate], used: dict[str, Candidate], speculative: dict[str, str]
) -> None:
    """Note which candidates a commit put into a pool, and which of them are speculative."""
    for change in changes:
        match change:
            case Add(candidate=candidate, status=status, pool=pool):
                used[candidate.id] = proposed[candidate.id]
                if status == "speculative":
                    speculative[candidate.id] = pool
            case Move(candidate_id=name):
                speculative.pop(name, None)
            case _:
                pass
