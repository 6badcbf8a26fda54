"""Which models' proposals were accepted: combines a run's calls and events by the item that a call was made for.

A candidate is credited to the calls of the item that proposed it. Each of these calls gains 1 if the candidate is
confirmed, and 0 if it is rejected, for whatever reason, or revoked. A call whose item ends without a proposal, or whose
reply could not be read, gains 0 too. The gains are reported to the ensembles of the roles, and confirmed candidates are
counted by model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from flowevolve.core.calls import CallRecord
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected, ItemDone, PoolCommitted, ReplyUnparsable
from flowevolve.core.events import Event
from flowevolve.core.logged_changes import LoggedAdd, LoggedMove
from flowevolve.core.model import ChatReply, Usage
from flowevolve.llm.client.ensemble import Ensemble
from flowevolve.llm.client.role import Role


class _AskedModel(NamedTuple):
    role: str
    model: str


class Attribution:
    """Reads a run's calls and events, each in the order in which they happen."""

    def __init__(self, roles: Mapping[str, Role]) -> None:
        self.accepted: Counter[str] = Counter()
        """The number of confirmed candidates that a model had a part in making, by the model's name."""
        self._ensembles = {name: role for name, role in roles.items() if isinstance(role, Ensemble)}
        self._by_item: dict[str, list[_AskedModel]] = {}
        self._by_candidate: dict[str, list[_AskedModel]] = {}
        self._proposed: set[str] = set()

    def restore(self, facts: Iterable[Event | CallRecord], cost: Callable[[str, Usage], float | None]) -> None:
        """Take in what happened before the run was interrupted. ``cost`` returns the price in dollars of a model's
        tokens.
        """
        for fact in facts:
            if isinstance(fact, Event):
                self.event(fact)
                continue
            if fact.role in self._ensembles:
                self._ensembles[fact.role].drawn(fact.request.model)
            if isinstance(fact.reply, ChatReply):
                paid = cost(fact.request.model, fact.reply.paid)
                self.call(replace(fact, reply=replace(fact.reply, dollars=paid)))
            else:
                self.call(fact)

    def call(self, record: CallRecord) -> None:
        """An LLM client observer."""
        item = record.scope.work.item
        self._by_item.setdefault(item, []).append(_AskedModel(record.role, record.request.model))
        ensemble = self._ensembles.get(record.role)
        if ensemble is not None and record.reply is not None and record.reply.dollars is not None:
            ensemble.paid(record.request.model, record.reply.dollars)

    def event(self, event: Event) -> None:
        """An event sink."""
        match event.body:
            case ReplyUnparsable(item=item, role=role):
                self._unread(item, role)
            case CandidateProposed(item=item, candidate=candidate):
                self._proposed.add(item)
                self._by_candidate[candidate] = list(self._by_item.get(item, []))
            case CandidateRejected(candidate=candidate):
                self._judge(candidate, accepted=False)
            case PoolCommitted(changes=changes):
                for change in changes:
                    match change:
                        case LoggedAdd(add=candidate, status=status) | LoggedMove(move=candidate, status=status):
                            if status != "speculative":  # which is not final
                                self._judge(candidate, accepted=status == "confirmed")
            case ItemDone(item=item):
                self._end(item)

    def _unread(self, item: str, role: str) -> None:
        """The newest reply of a role could not be read: it gains 0, and gets no credit for what becomes of the item."""
        asked = self._by_item.get(item, [])
        for place in reversed(range(len(asked))):
            if asked[place].role == role:
                self._tell([asked.pop(place)], gain=0.0)
                return

    def _judge(self, candidate: str, *, accepted: bool) -> None:
        made_by = self._by_candidate.pop(candidate, [])
        self._tell(made_by, gain=float(accepted))
        if accepted:
            self.accepted.update(list(dict.fromkeys(asked.model for asked in made_by)))

    def _end(self, item: str) -> None:
        asked = self._by_item.pop(item, [])
        if item in self._proposed:
            self._proposed.remove(item)
        else:
            self._tell(asked, gain=0.0)

    def _tell(self, made_by: list[_AskedModel], *, gain: float) -> None:
        for asked in made_by:
            ensemble = self._ensembles.get(asked.role)
            if ensemble is not None:
                ensemble.judged(asked.model, gain)
