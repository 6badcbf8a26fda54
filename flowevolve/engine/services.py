"""What stages do in a run through their contexts: propose, reject, commit, spend, log and call LLMs.

Every effect is an event, so the log tells everything that a run did. In a resumed run, interrupted work is done again
from its start, and its earlier effects are recognised instead of repeated (`engine.recovery.interrupted_work`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import TypeVar, cast

from flowevolve._util.errors import EngineError
from flowevolve._util.gauge import Gauge
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import run_all
from flowevolve.core.acts import Comment
from flowevolve.core.algorithm import Algorithm, Stateful
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import NOTHING, Cost
from flowevolve.core.calls import CallScope, Payer
from flowevolve.core.event_body import check_readable
from flowevolve.core.event_kinds import AlgorithmState, CandidateProposed, CandidateRejected, PoolCommitted
from flowevolve.core.events import Event, EventLog
from flowevolve.core.item import INJECTION
from flowevolve.core.item_ids import ItemId, WorkPart, candidate_name, flow_of
from flowevolve.core.model import ChatReply, EmbedReply, LLMError, Message, Usage
from flowevolve.core.pool import Candidate, Change, Pool, Update
from flowevolve.core.templates import Templates
from flowevolve.engine.comments import Comments
from flowevolve.engine.contract import best_of, check_proposal, readable_change, stage_event
from flowevolve.engine.ledger import Ledger
from flowevolve.engine.pool_and_archives import PoolAndArchives
from flowevolve.engine.recovery.interrupted_work import InterruptedWork, StoredResult
from flowevolve.engine.recovery.recorded_replies import RecordedReplies
from flowevolve.engine.recovery.state import RecoveredState
from flowevolve.llm.client.client import EMBED_BATCH, LLMClient

T = TypeVar("T")
Reply = TypeVar("Reply", bound=ChatReply | EmbedReply)
Settled = Callable[[], Awaitable[None]]
"""Returns once everything journaled so far is on disk."""


async def nothing_to_settle() -> None:
    """The `Settled` of a run that keeps no journal."""


class _ItemPays(Payer):
    """Lets the budget pay for a call of the work on an item, as long as tokens and dollars are left."""

    def __init__(self, services: EngineServices, ledger: Ledger, scope: CallScope) -> None:
        self._services = services
        self._ledger = ledger
        self._scope = scope

    def check(self) -> None:
        self._ledger.check_unforeseen()

    def pay(self, usage: Usage, dollars: float | None) -> None:
        self._services.pay(self._scope.stage, self._scope.work.item, usage, dollars)


class EngineServices:
    """The `flowevolve.core.context.Services` of one run."""

    def __init__(
        self,
        algorithm: Algorithm,
        *,
        llm: LLMClient,
        ledger: Ledger,
        events: EventLog,
        seed: int,
        templates: Templates,
        settled: Settled,
        on_commit: Callable[[Update, bool, ItemId], None],
    ) -> None:
        """``on_commit`` is told of every commit, whether it made the best score rise, and the item that caused it."""
        self.pool_and_archives = PoolAndArchives(algorithm)
        self.seed = seed
        self.templates = templates
        self.stopping = False
        """Whether the run was asked to stop."""
        self.asked_to_stop = False
        """Whether somebody asked the run to stop, as opposed to a limit or a policy."""
        self.open_calls = Gauge(events.elapsed)
        self.recorded_replies = RecordedReplies()
        self.interrupted_work: dict[ItemId, InterruptedWork] = {}
        """Interrupted work that has not been done again yet, by its item."""
        self.comments = Comments()
        self._on_commit = on_commit
        self._algorithm = algorithm
        self._llm = llm
        self._ledger = ledger
        self._events = events
        self.settled = settled
        self._proposals: dict[ItemId, list[Candidate]] = {}
        self._costs: dict[ItemId, Cost] = {}
        self._state: str | None = None

    @property
    def pool(self) -> Pool:
        return self.pool_and_archives.pool

    def load(self, state: RecoveredState) -> None:
        """Take over the state of an interrupted run, after its flows were opened again."""
        self.pool_and_archives = state.pool
        self.recorded_replies = state.recorded_replies
        self._ledger.owed = sum((self._price(*paid)[1] for paid in state.recorded_replies.paid), Cost())
        self.interrupted_work.update(state.interrupted_work)
        self._proposals.update({name: list(work.proposals) for name, work in state.interrupted_work.items()})
        self.comments.load(state.acts.comments, {item: work.comments for item, work in state.interrupted_work.items()})
        self._state = None if state.algorithm_state is None else json.dumps(state.algorithm_state)
        for item in state.injected:
            self.charge(INJECTION, item, Cost(proposals=1))  # it was charged before, but no event says so

    def record(
        self, kind: str, stage: str, item_id: ItemId, make: Callable[[], Mapping[str, JSON]], key: str | None = None
    ) -> Mapping[str, JSON]:
        """Write an event of a stage's work on an item, unless it was written already; returns the event's fields."""
        known = self._logged(kind, item_id, key)
        return self._write(kind, stage, item_id, key, make()) if known is None else known.data

    async def once(
        self,
        kind: str,
        stage: str,
        item_id: ItemId,
        make: Callable[[], Awaitable[Mapping[str, JSON]]],
        key: str | None = None,
    ) -> Mapping[str, JSON]:
        """Do something slow for a stage's work on an item, unless its result is logged already.

        The result is on disk when this returns.
        """
        known = self._logged(kind, item_id, key)
        if known is not None:
            return known.data
        data = self._write(kind, stage, item_id, key, await make())
        await self.settled()
        return data

    async def keep(
        self, kind: str, stage: str, item_id: ItemId, make: Callable[[], Awaitable[T]], key: str | None = None
    ) -> T:
        """Like `once`, for a result of any type, which is attached to the event and kept in the journal."""
        while (known := self._logged(kind, item_id, key)) is not None:
            if isinstance(known.attachment, StoredResult):
                return cast(T, known.attachment.value)  # the journal got it from this function, and keeps no types
        value = await make()
        self._write(kind, stage, item_id, key, {"value": type(value).__name__}, StoredResult(value))
        await self.settled()
        return value

    def _logged(self, kind: str, item_id: ItemId, key: str | None) -> Event | None:
        """The next such event that interrupted work on the item had written, if there is one."""
        work = self.interrupted_work.get(item_id)
        return None if work is None else work.logged(kind, key)

    def _write(
        self,
        kind: str,
        stage: str,
        item_id: ItemId,
        key: str | None,
        content: Mapping[str, JSON],
        attachment: object | None = None,
    ) -> Mapping[str, JSON]:
        data = {"stage": stage, "item": item_id, **({} if key is None else {"key": key}), **content}
        json.dumps(content)  # fails for values that would come back from the journal as something else, such as a set
        self._events.emit(stage_event(kind, data), attachment)
        return data

    async def chat(
        self,
        role: str,
        messages: Sequence[Message],
        scope: CallScope,
        *,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        """Make a call, unless its reply arrived before the run was interrupted.

        The reply is on disk when this returns.
        """
        if self.recorded_replies:
            known = await self._known(scope, self.recorded_replies.reply(scope, messages))
            if known is not None:
                return known
        payer = _ItemPays(self, self._ledger, scope)
        return await self._settle(
            self._llm.chat(role, messages, scope=scope, max_tokens=max_tokens, temperature=temperature, payer=payer)
        )

    def retries(self, role: str) -> int:
        return self._llm.retries(role)

    async def embed(self, role: str, texts: Sequence[str], scope: CallScope) -> EmbedReply:
        """Like `chat`, for vectors. More texts than fit into one call are split into several concurrent calls."""
        starts = range(0, len(texts), EMBED_BATCH)
        item = scope.work.item
        parts = [replace(scope, item=str(WorkPart(item, str(start)))) if len(starts) > 1 else scope for start in starts]
        calls = [
            partial(self._embed, role, texts[start : start + EMBED_BATCH], part)
            for start, part in zip(starts, parts, strict=True)
        ]
        return EmbedReply.joined(await run_all(calls))

    async def _embed(self, role: str, texts: Sequence[str], scope: CallScope) -> EmbedReply:
        if self.recorded_replies:
            known = await self._known(scope, self.recorded_replies.embedded(scope, texts))
            if known is not None:
                return known
        payer = _ItemPays(self, self._ledger, scope)
        return await self._settle(self._llm.embed(role, texts, scope=scope, payer=payer))

    async def _known(self, scope: CallScope, found: Awaitable[Reply | None]) -> Reply | None:
        """The recorded reply to a call, which is charged; None if there is none. A recorded error is raised again."""
        try:
            known = await found
        except LLMError as error:
            self._pay_again(scope.stage, scope.work.item, error.model, error.usage)
            raise
        if known is None:
            return None
        return replace(known, dollars=self._pay_again(scope.stage, scope.work.item, known.model, known.paid))

    async def _settle(self, call: Awaitable[Reply]) -> Reply:
        """Await a call and return its reply once the reply is on disk.

        The call is charged before the wait for the disk, so nothing is lost if that wait is cancelled.
        """
        with self.open_calls:
            try:
                reply = await call
            except LLMError:
                await self.settled()
                raise
        await self.settled()
        return reply

    def _pay_again(self, stage: str, item_id: ItemId, model: str, paid: Usage) -> float | None:
        """Charge a call that was made for interrupted work that is now done again; returns its price in dollars."""
        dollars, cost = self._price(model, paid)
        self._ledger.owed = self._ledger.owed.less(cost)
        self.charge(stage, item_id, cost)
        return dollars

    def _price(self, model: str, paid: Usage) -> tuple[float | None, Cost]:
        """What a call cost: its price in dollars, if the model's price is known, and the cost as a budget counts it."""
        dollars = self._llm.account.cost(model, paid)
        return dollars, Cost(tokens=paid.total_tokens, dollars=dollars or 0.0)

    def pay(self, stage: str, item_id: ItemId, paid: Usage, dollars: float | None) -> None:
        """Charge the budget for a call of the work on an item."""
        self.charge(stage, item_id, Cost(tokens=paid.total_tokens, dollars=dollars or 0.0))

    @contextmanager
    def reserved(self, item_id: ItemId, cost: Cost) -> Generator[None]:
        self._ledger.begin(flow_of(item_id), item_id, cost)
        try:
            yield
        finally:
            self._ledger.end(item_id, cost)

    def charge(self, stage: str, item_id: ItemId, cost: Cost) -> None:
        """Charge the budget. The event that ends the work on the item reports the total."""
        self._ledger.charge(flow_of(item_id), cost, item_id)
        self._costs[item_id] = self.cost(item_id) + cost

    def known_comments(self, item_id: ItemId) -> Sequence[Comment]:
        """The comments that people had made when the work on an item began."""
        return self.comments.known(item_id)

    def cost(self, item_id: ItemId) -> Cost:
        """What the work on an item has cost so far."""
        return self._costs.get(item_id, NOTHING)

    def share(self, more: Cost) -> float:
        return self._ledger.share(more)

    def propose(
        self,
        item_id: ItemId,
        artifact: Artifact,
        *,
        parents: Sequence[Candidate],
        operator: str,
        attributes: Mapping[str, JSON],
        born: int,
    ) -> Candidate:
        work = self.interrupted_work.get(item_id)
        known = work.proposed(artifact, parents, operator) if work is not None else None
        if known is not None:
            return known
        check_proposal(artifact, parents)
        names = tuple(parent.id for parent in parents)
        candidate = Candidate(self._new_id(item_id), artifact, names, operator, born, attributes=attributes)
        proposed = CandidateProposed.of(candidate, item_id)
        check_readable(proposed, "propose")
        self.pool.register(candidate)
        self._proposals.setdefault(item_id, []).append(candidate)
        self._events.emit(proposed)
        return candidate

    def adopt(self, candidate: Candidate, item_id: ItemId) -> None:
        """Register a candidate of another run as a proposal, under its own id, unless it is registered already."""
        if candidate.id not in self.pool:
            self.pool.register(candidate)
            self._events.emit(CandidateProposed.of(candidate, item_id, adopted=True))

    def _new_id(self, item_id: ItemId) -> str:
        """The item's short name, with a number appended if that name is taken."""
        base = candidate_name(item_id)
        names = chain([base], (f"{base}-{number}" for number in count(2)))
        return next(name for name in names if name not in self.pool)

    def reject(self, candidate: Candidate, item_id: ItemId, reason: str) -> None:
        if item_id in self.interrupted_work and self.pool.status(candidate.id) == "rejected":
            return
        rejected = CandidateRejected(candidate.id, item_id, reason)
        check_readable(rejected, "reject")
        self.pool.reject(candidate.id)
        self._events.emit(rejected)

    def commit(self, changes: Sequence[Change], item_id: ItemId, stage: str) -> Update:
        """Commit changes as part of a stage's work on an item."""
        work = self.interrupted_work.get(item_id)
        known = work.committed() if work is not None else None
        return self.apply(changes, item_id, stage) if known is None else known

    def apply(self, changes: Sequence[Change], item_id: ItemId, stage: str | None = None) -> Update:
        """Commit changes for a stage or, with None, for the engine itself."""
        logged = tuple(map(readable_change, changes))
        update = self.pool_and_archives.commit(changes, item_id, self._events.elapsed())
        best = best_of(self._algorithm)
        score = None if best is None else best.mean_score
        proposals = self._ledger.spent.proposals
        improved = self.pool_and_archives.note_best(score, proposals)
        self._events.emit(
            PoolCommitted(
                update.version,
                item_id,
                stage,
                logged,
                None if best is None else best.id,
                score,
                proposals if improved else None,
            )
        )
        self.keep_state()
        self._on_commit(update, improved, item_id)
        return update

    @property
    def measured_score(self) -> float | None:
        """The score that is compared with the run's target."""
        return self._algorithm.measured_score(self.pool_and_archives.best_score)

    def keep_state(self) -> None:
        """Write the algorithm's own state into the log, if it has any and it has changed.

        Raises:
            EngineError: if the state is not plain data.
        """
        if not isinstance(self._algorithm, Stateful):
            return
        state = self._algorithm.state()
        try:
            text = json.dumps(state)
        except (TypeError, ValueError) as error:
            raise EngineError(
                f"algorithm {self._algorithm.name!r}: what state() returns is no plain data: {error}"
            ) from error
        if text != self._state:
            self._state = text
            self._events.emit(AlgorithmState(json.loads(text)))  # a copy: the algorithm may go on changing its own

    # Work that ends

    def end_work(self, stage: str, item_id: ItemId) -> tuple[Cost, list[Candidate], list[Candidate]]:
        """End the work on an item.

        Returns its cost, the candidates that it proposed, and those of them that it had proposed before the run was
        interrupted and did not propose again.
        """
        for model, paid in self.recorded_replies.forget(stage, item_id):
            self._pay_again(stage, item_id, model, paid)
        self.comments.end(item_id)
        cost = self._costs.pop(item_id, Cost())
        proposals = self._proposals.pop(item_id, [])
        work = self.interrupted_work.pop(item_id, None)
        return cost, proposals, [] if work is None else work.proposals
