"""What a run's events say about its candidates and its pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

from bench.simtest.rules import Rule
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected, PoolCommitted
from flowevolve.core.item_ids import flow_of
from flowevolve.core.logged_changes import LoggedAdd, LoggedAnnotate, LoggedChange, LoggedMove, LoggedVeto

_MOVES = {"proposed": {"speculative", "confirmed", "rejected"}, "speculative": {"confirmed", "revoked"}}
"""The statuses that a candidate may change to from each status."""


class PoolBooks:
    """The pool according to the events. ``fault`` is called with each rule that was broken, and what broke it."""

    def __init__(self, fault: Callable[[Rule, str], None]) -> None:
        self.version = 0
        self.statuses: dict[str, str] = {}
        self.scores: dict[str, Mapping[str, float]] = {}
        """The scores of the candidates that were added to a pool."""
        self.pools: dict[str, str] = {}
        self.accepted = 0
        self.best_score = -inf
        """The highest score that the best candidate ever had."""
        self.vetoed: dict[str, int] = {}
        """The vetoed candidates, and how many flows had been opened when each was vetoed."""
        self.flows = 0
        """How many flows were opened so far."""
        self._parents: dict[str, tuple[str, ...]] = {}
        self._fault = fault

    def take(self, body: CandidateProposed | CandidateRejected | PoolCommitted) -> None:
        match body:
            case CandidateProposed():
                self._proposed(body)
            case CandidateRejected(candidate=name):
                self._move(name, "rejected")
            case PoolCommitted():
                self._committed(body)

    def descends_from_revoked(self, names: Sequence[str]) -> bool:
        """Whether one of these was revoked, or descends from a revoked one with no confirmed candidate in between."""
        return any(
            self.statuses[name] == "revoked"
            or (self.statuses[name] != "confirmed" and self.descends_from_revoked(self._parents.get(name, ())))
            for name in names
        )

    def keeps(self, name: str) -> bool:
        """Whether a candidate was not rejected by a gate."""
        return self.statuses[name] != "rejected" or name in self.pools

    def _proposed(self, body: CandidateProposed) -> None:
        if body.candidate in self.statuses:
            self._fault("statuses", f"candidate {body.candidate} was proposed twice")
        unknown = [name for name in body.parents if name not in self.statuses]
        if unknown:
            self._fault("statuses", f"candidate {body.candidate} has parents {unknown}, which nobody proposed")
        if body.born > self.version:
            self._fault("versions", f"candidate {body.candidate} was born at {body.born}, after {self.version}")
        flow = flow_of(body.item)
        banned = [name for name in body.parents if flow >= self.vetoed.get(name, flow + 1)]
        if banned and body.operator != "injected":
            self._fault(
                "acts", f"candidate {body.candidate} was made of {banned}, which were vetoed before flow {flow}"
            )
        self.statuses[body.candidate] = "proposed"
        self._parents[body.candidate] = body.parents

    def _committed(self, body: PoolCommitted) -> None:
        if body.version != self.version + 1:
            self._fault("versions", f"version {body.version} follows on {self.version}")
        self.version = body.version
        for change in body.changes:
            self._apply(change, of_init=body.stage == "init")
        self.best_score = max(self.best_score, -inf if body.best_score is None else body.best_score)
        if body.best is not None and self.statuses.get(body.best) != "confirmed":
            self._fault("pool", f"{body.best} is the best at version {body.version}: {self.statuses.get(body.best)}")
        if body.best in self.vetoed:
            self._fault("acts", f"{body.best} is the best at version {body.version}, and is vetoed")

    def _apply(self, change: LoggedChange, *, of_init: bool) -> None:
        match change:
            case LoggedAdd(add=name, status=status):
                self._move(name, status)
                self.scores[name], self.pools[name] = change.scores, change.pool
                made = not of_init and change.operator not in ("seed", "migrate")
                self.accepted += made and status == "confirmed" and change.pool == "main"
            case LoggedMove(move=name, status=status, scores=scores):
                self._move(name, status)
                self.scores[name] = self.scores.get(name, {}) if scores is None else scores
                self.accepted += not of_init and status == "confirmed" and change.pool == "main"
            case LoggedAnnotate(annotate=name, scores=scores) if scores is not None:
                self.scores[name] = scores
            case LoggedVeto(veto=name, stands=True):
                self.vetoed[name] = self.flows
            case LoggedVeto(veto=name):
                self.vetoed.pop(name, None)

    def _move(self, name: str, status: str) -> None:
        before = self.statuses.get(name, "unknown")
        if status not in _MOVES.get(before, ()):
            self._fault("statuses", f"candidate {name} became {status}, and was {before}")
        self.statuses[name] = status
