"""What stages do to a run: propose, reject, commit, spend, log, call LLMs. This is what stands behind their contexts.

Every effect is an event, so the log tells all that a run did. Where a run is resumed, work that was interrupted is done
again from its start, and the effects it had are recognised instead of repeated (`flowevolve.work`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

from flowevolve.algorithm import Algorithm, Stateful
from flowevolve.artifact import Artifact
from flowevolve.budget import Cost, Ledger
from flowevolve.concurrency import run_all
from flowevolve.counts import Level
from flowevolve.errors import EngineError
from flowevolve.events import Event, EventLog
from flowevolve.item import flow_of, root_of
from flowevolve.llm.calls import CallScope
from flowevolve.llm.client import EMBED_BATCH, LLMClient
from flowevolve.llm.types import JSON, ChatReply, EmbedReply, LLMError, Message, Usage
from flowevolve.playback import Playback
from flowevolve.pool import Candidate, Change, Pool, Update, describe_candidate, describe_change
from flowevolve.work import Kept, Work

T = TypeVar("T")
Reply = TypeVar("Reply", bound=ChatReply | EmbedReply)
Settled = Callable[[], Awaitable[None]]
"""Returns once everything that was journaled so far is on disk."""


async def nothing_to_settle() -> None:
    """The `Settled` of a run that keeps no journal."""


class Effects:
    """The `flowevolve.context.Services` of one run."""

    def __init__(
        self,
        algorithm: Algorithm,
        *,
        llm: LLMClient,
        ledger: Ledger,
        events: EventLog,
        seed: int,
        settled: Settled,
    ) -> None:
        self.pool = Pool(algorithm.pools)
        self.seed = seed
        self.stopping = False
        self.open_calls = Level(events.elapsed)
        self.best_score: float | None = None
        self.proposals_at_gain = 0
        """How many proposals had been made when the best score last rose."""
        self.playback = Playback()
        self.works: dict[str, Work] = {}
        """Work that was interrupted and has not been done again yet, by its item."""
        self.on_commit: Callable[[Update, bool, str], None] = lambda update, improved, item: None
        """Told of every commit, whether it made the best score rise, and the item that caused it."""
        self._algorithm = algorithm
        self._llm = llm
        self._ledger = ledger
        self._events = events
        self.settled = settled
        self._proposals: dict[str, list[Candidate]] = {}
        self._costs: dict[str, Cost] = {}
        self._state: str | None = None

    def log(self, kind: str, data: Mapping[str, JSON], attachment: object | None = None) -> None:
        self._events.emit(kind, data, attachment)

    def record(
        self, kind: str, stage: str, item_id: str, make: Callable[[], Mapping[str, JSON]], key: str | None = None
    ) -> Mapping[str, JSON]:
        """Write an event of a stage's work on an item, or find it written already; returns what it says."""
        known = self._logged(kind, item_id, key)
        return self._write(kind, stage, item_id, key, make()) if known is None else known.data

    async def once(
        self,
        kind: str,
        stage: str,
        item_id: str,
        make: Callable[[], Awaitable[Mapping[str, JSON]]],
        key: str | None = None,
    ) -> Mapping[str, JSON]:
        """Do something slow for a stage's work on an item, or find its result. It is on disk before anybody sees it."""
        known = self._logged(kind, item_id, key)
        if known is not None:
            return known.data
        data = self._write(kind, stage, item_id, key, await make())
        await self.settled()
        return data

    async def keep(
        self, kind: str, stage: str, item_id: str, make: Callable[[], Awaitable[T]], key: str | None = None
    ) -> T:
        """As `once`, for any result: it is attached to the event, and kept in the journal."""
        while (known := self._logged(kind, item_id, key)) is not None:
            if isinstance(known.attachment, Kept):
                return cast(T, known.attachment.value)
        value = await make()
        self._write(kind, stage, item_id, key, {"value": type(value).__name__}, Kept(value))
        await self.settled()
        return value

    def _logged(self, kind: str, item_id: str, key: str | None) -> Event | None:
        """The next event like this that interrupted work on the item had written, if there is one."""
        work = self.works.get(item_id)
        return None if work is None else work.logged(kind, key)

    def _write(
        self,
        kind: str,
        stage: str,
        item_id: str,
        key: str | None,
        said: Mapping[str, JSON],
        attachment: object | None = None,
    ) -> Mapping[str, JSON]:
        data = {"stage": stage, "item": item_id, **({} if key is None else {"key": key}), **said}
        self.log(kind, data, attachment)
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
        """Make a call, or find the reply that had come in for it. A reply is on disk before anybody sees it."""
        known = await self._known(scope, self.playback.reply(scope, messages))
        if known is not None:
            return known
        pay = partial(self._pay, scope.stage, scope.item)
        return await self._settle(
            self._llm.chat(role, messages, scope=scope, max_tokens=max_tokens, temperature=temperature, charge=pay)
        )

    async def embed(self, role: str, texts: Sequence[str], scope: CallScope) -> EmbedReply:
        """As `chat`, for vectors; more texts than fit into one call are embedded in several, side by side."""
        starts = range(0, len(texts), EMBED_BATCH)
        parts = [replace(scope, item=f"{scope.item}/{start}") if len(starts) > 1 else scope for start in starts]
        calls = [
            partial(self._embed, role, texts[start : start + EMBED_BATCH], part)
            for start, part in zip(starts, parts, strict=True)
        ]
        return EmbedReply.joined(await run_all(calls))

    async def _embed(self, role: str, texts: Sequence[str], scope: CallScope) -> EmbedReply:
        known = await self._known(scope, self.playback.embedded(scope, texts))
        if known is not None:
            return known
        pay = partial(self._pay, scope.stage, scope.item)
        return await self._settle(self._llm.embed(role, texts, scope=scope, charge=pay))

    async def _known(self, scope: CallScope, found: Awaitable[Reply | None]) -> Reply | None:
        """The reply that had come in for a call, or its failure, charged; None if there is neither."""
        try:
            known = await found
        except LLMError as error:
            self._pay_again(scope.stage, scope.item, error.model, error.usage)
            raise
        if known is None:
            return None
        return replace(known, dollars=self._pay_again(scope.stage, scope.item, known.model, known.paid))

    async def _settle(self, call: Awaitable[Reply]) -> Reply:
        """What a call brings, once that is on disk. It is paid by then: waiting for the disk may be cancelled."""
        with self.open_calls.one_more():
            try:
                reply = await call
            except LLMError:
                await self.settled()
                raise
        await self.settled()
        return reply

    def _pay_again(self, stage: str, item_id: str, model: str, paid: Usage) -> float | None:
        """Charge a call that had been made for work that was not finished then; returns its dollars."""
        dollars = self._llm.account.cost(model, paid)
        self._pay(stage, item_id, paid, dollars)
        return dollars

    def _pay(self, stage: str, item_id: str, paid: Usage, dollars: float | None) -> None:
        self.charge(stage, item_id, Cost(tokens=paid.total_tokens, dollars=dollars or 0.0))

    def charge(self, stage: str, item_id: str, cost: Cost) -> None:
        """Spend; it is in the log once the work on the item is done."""
        root = root_of(item_id)
        self._ledger.charge(flow_of(root), cost)
        self._costs[root] = self._costs.get(root, Cost()) + cost

    def cost(self, item_id: str) -> Cost:
        """What the work on an item has cost so far."""
        return self._costs.get(root_of(item_id), Cost())

    def share(self, more: Cost) -> float:
        return self._ledger.share(more)

    def propose(
        self,
        item_id: str,
        artifact: Artifact,
        *,
        parents: Sequence[Candidate],
        operator: str,
        attributes: Mapping[str, JSON],
        born: int,
    ) -> Candidate:
        work = self.works.get(item_id)
        known = work.proposed(artifact, parents, operator) if work is not None else None
        if known is not None:
            return known
        names = tuple(parent.id for parent in parents)
        candidate = Candidate(self._new_id(item_id), artifact, names, operator, born, attributes=attributes)
        self.pool.register(candidate)
        self._proposals.setdefault(item_id, []).append(candidate)
        self.log("candidate.proposed", {"item": item_id, **describe_candidate(candidate)})
        return candidate

    def adopt(self, candidate: Candidate, item_id: str) -> None:
        """Enter a candidate of another run as a proposal, under its own id; nothing if that was done already."""
        if candidate.id not in self.pool:
            self.pool.register(candidate)
            self.log("candidate.proposed", {"item": item_id, **describe_candidate(candidate), "adopted": True})

    def _new_id(self, item_id: str) -> str:
        """Short and unique: the item's path without the trailing first branches, numbered when it is taken."""
        base = item_id.replace(".r", "")
        while base.endswith(".0"):
            base = base[:-2]
        name, number = f"c{base}", 2
        while name in self.pool:
            name, number = f"c{base}-{number}", number + 1
        return name

    def reject(self, candidate: Candidate, item_id: str, reason: str) -> None:
        if item_id in self.works and self.pool.status(candidate.id) == "rejected":
            return
        self.pool.reject(candidate.id)
        self.log("candidate.rejected", {"candidate": candidate.id, "item": item_id, "reason": reason})

    def commit(self, changes: Sequence[Change], item_id: str, stage: str) -> Update:
        """Commit as a stage's work on an item."""
        work = self.works.get(item_id)
        known = work.committed() if work is not None else None
        return self.apply(changes, item_id, stage) if known is None else known

    def apply(self, changes: Sequence[Change], item_id: str, stage: str | None = None) -> Update:
        """Commit; without a ``stage`` on the engine's own account."""
        update = self._enter(changes, item_id, self._events.elapsed())
        best = self._algorithm.best()
        improved = self._note_best(best.mean_score if best is not None else None)
        self.log(
            "pool.commit",
            {
                "version": update.version,
                "item": item_id,
                "stage": stage,
                "changes": [describe_change(change) for change in changes],
                "best": best.id if best is not None else None,
                "best_score": self.best_score,
            },
        )
        self.keep_state()
        self.on_commit(update, improved, item_id)
        return update

    def keep_state(self) -> None:
        """Write the algorithm's own state, if it has one and that has changed.

        Raises:
            EngineError: if it is no plain data.
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
            self.log("algorithm.state", {"state": json.loads(text)})  # a copy: the algorithm may go on changing its own

    def restore_state(self, state: Mapping[str, JSON]) -> None:
        """Give the algorithm the state that was last written."""
        self._state = json.dumps(state)
        if isinstance(self._algorithm, Stateful):
            self._algorithm.restore(state)

    def replay_commit(
        self, changes: Sequence[Change], item_id: str, time: float, best_score: float | None
    ) -> tuple[Update, bool]:
        """A commit that the log of an interrupted run tells of; returns whether it made the best score rise, too."""
        return self._enter(changes, item_id, time), self._note_best(best_score)

    def _enter(self, changes: Sequence[Change], item_id: str, time: float) -> Update:
        update = self.pool.commit(changes, cause=item_id, time=time)
        for archive in self._algorithm.archives:
            archive.apply(update)
        return update

    def _note_best(self, score: float | None) -> bool:
        """Whether the best score rises with this."""
        before, self.best_score = self.best_score, score
        improved = score is not None and (before is None or score > before)
        if improved:
            self.proposals_at_gain = self._ledger.spent.proposals
        return improved

    # Work that ends

    def restore_work(self, item_id: str, work: Work) -> None:
        self.works[item_id] = work
        self._proposals[item_id] = list(work.proposals)

    def end_work(self, stage: str, item_id: str) -> tuple[Cost, list[Candidate], list[Candidate]]:
        """What the work on an item cost, the candidates it proposed, and those it had once proposed but not again."""
        for model, paid in self.playback.forget(stage, item_id):
            self._pay_again(stage, item_id, model, paid)
        cost = self._costs.pop(item_id, Cost())
        proposals = self._proposals.pop(item_id, [])
        work = self.works.pop(item_id, None)
        return cost, proposals, [] if work is None else work.proposals
