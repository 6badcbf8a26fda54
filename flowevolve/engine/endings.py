"""Candidates that are given up. Each ends as soon as no live item is about it any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import CandidateEnding
from flowevolve.core.item import Item
from flowevolve.core.pool import DEFAULT_POOL, Candidate, Move
from flowevolve.engine.flows import Flows
from flowevolve.engine.services import EngineServices


class CandidateEndings:
    """The candidates that are to end, with the reasons."""

    def __init__(self, flows: Flows, services: EngineServices, log: Callable[[EventBody], None]) -> None:
        self._flows = flows
        self._services = services
        self._log = log
        self._reasons: dict[str, str] = {}

    def load(self, reasons: Mapping[str, str]) -> None:
        """Take over the candidates that were to end when a run was interrupted."""
        self._reasons.update(reasons)

    def note(self, candidates: Sequence[Candidate], reason: str) -> None:
        """Note that these candidates are to end. The first reason for a candidate counts."""
        for candidate in candidates:
            if candidate.id not in self._reasons:
                self._reasons[candidate.id] = reason
                if self._flows.carries(candidate.id):
                    self._log(CandidateEnding(candidate.id, reason))

    def end(self, candidates: Sequence[Candidate], item: Item[object]) -> None:
        """End those of the candidates that are to end and that no live item is about any more."""
        for candidate in candidates:
            if candidate.id in self._reasons and not self._flows.carries(candidate.id):
                self._reject_or_revoke(candidate, item, self._reasons.pop(candidate.id))

    def _reject_or_revoke(self, candidate: Candidate, item: Item[object], reason: str) -> None:
        """Reject a candidate or, if it was released speculatively, revoke it."""
        pool = self._services.pool
        status = pool.status(candidate.id)
        if status == "proposed":
            self._services.reject(candidate, item.id, reason)
        elif status == "speculative":
            of = pool.pool_of(candidate.id) or DEFAULT_POOL
            self._services.apply([Move(candidate.id, "revoked", pool=of)], item.id)
