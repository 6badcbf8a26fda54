"""What a stage may do: read the pool, call LLMs, make proposals, spend budget, log. Only the update stage commits.

Everything random is derived from (seed, stage, item), so what a stage decides does not depend on which worker runs it
or on what else is running.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import Protocol, TypeVar, overload

from flowevolve._util.errors import EngineError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import as_completed
from flowevolve.core.acts import Comment
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.calls import CallScope
from flowevolve.core.event_kinds import RolloutsSaved, StageEvent
from flowevolve.core.item_ids import ItemId, WorkPart
from flowevolve.core.model import ChatReply, EmbedReply, Message
from flowevolve.core.pool import Candidate, Change, Pool, Snapshot, Status, Update
from flowevolve.core.record import Record
from flowevolve.core.templates import Templates

T = TypeVar("T")
R = TypeVar("R", bound=Record)


class PoolReader(Protocol):
    """The part of the pool that anybody may use."""

    @property
    def version(self) -> int: ...
    def __getitem__(self, candidate_id: str) -> Candidate: ...
    def __contains__(self, candidate_id: str) -> bool: ...
    def keeps(self, candidate_id: str) -> bool: ...
    def status(self, candidate_id: str) -> Status: ...
    def vetoed(self, candidate_id: str) -> bool: ...
    def snapshot(self, version: int | None = None) -> Snapshot: ...
    def candidates(self) -> Iterator[tuple[str | None, Candidate]]: ...
    def updates_between(self, after: int, upto: int | None = None) -> Sequence[Update]: ...
    def descends_from_revoked(self, candidate_ids: Sequence[str]) -> bool: ...


class Services(Protocol):
    """What the engine provides to contexts."""

    seed: int
    stopping: bool
    asked_to_stop: bool
    templates: Templates

    @property
    def pool(self) -> Pool: ...

    async def chat(
        self,
        role: str,
        messages: Sequence[Message],
        scope: CallScope,
        *,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply: ...
    async def embed(self, role: str, texts: Sequence[str], scope: CallScope) -> EmbedReply: ...
    def retries(self, role: str) -> int: ...
    def charge(self, stage: str, item_id: ItemId, cost: Cost) -> None: ...
    def cost(self, item_id: ItemId) -> Cost: ...
    def reserved(self, item_id: ItemId, cost: Cost) -> AbstractContextManager[None]: ...
    def share(self, more: Cost) -> float: ...
    def known_comments(self, item_id: ItemId) -> Sequence[Comment]: ...
    def propose(
        self,
        item_id: ItemId,
        artifact: Artifact,
        *,
        parents: Sequence[Candidate],
        operator: str,
        attributes: Mapping[str, JSON],
        born: int,
    ) -> Candidate: ...
    def adopt(self, candidate: Candidate, item_id: ItemId) -> None: ...
    def reject(self, candidate: Candidate, item_id: ItemId, reason: str) -> None: ...
    def commit(self, changes: Sequence[Change], item_id: ItemId, stage: str) -> Update: ...
    def record(
        self, kind: str, stage: str, item_id: ItemId, make: Callable[[], Mapping[str, JSON]], key: str | None = None
    ) -> Mapping[str, JSON]: ...
    async def once(
        self,
        kind: str,
        stage: str,
        item_id: ItemId,
        make: Callable[[], Awaitable[Mapping[str, JSON]]],
        key: str | None = None,
    ) -> Mapping[str, JSON]: ...
    async def keep(
        self, kind: str, stage: str, item_id: ItemId, make: Callable[[], Awaitable[T]], key: str | None = None
    ) -> T: ...


def derived_random(*key: object) -> Random:
    """A random generator that depends on nothing but the key."""
    digest = sha256("\x1f".join(map(str, key)).encode()).digest()
    return Random(int.from_bytes(digest[:8], "big"))


class StageContext:
    """One stage at work on one item."""

    def __init__(self, services: Services, stage: str, item_id: ItemId, priority: int) -> None:
        self._services = services
        self._priority = priority
        self._calls = 0
        self.stage = stage
        self.item_id = item_id

    @cached_property
    def random(self) -> Random:
        """This item's random generator at this stage."""
        return derived_random(self._services.seed, self.stage, self.item_id)

    def derive_random(self, *key: object) -> Random:
        """A random generator shared by all stages and items that give the same key (for an epoch's shuffle, say)."""
        return derived_random(self._services.seed, "shared", *key)

    @property
    def pool(self) -> PoolReader:
        return self._services.pool

    @property
    def templates(self) -> Templates:
        """The templates that the run's prompts are written from."""
        return self._services.templates

    @property
    def comments(self) -> Sequence[Comment]:
        """People's comments on candidates and examples, as of when this work began, oldest first."""
        return self._services.known_comments(self.item_id)

    @property
    def stopping(self) -> bool:
        """Whether the run is stopping. Work under way goes on, but nothing new should be begun."""
        return self._services.stopping

    @property
    def asked_to_stop(self) -> bool:
        """Whether somebody asked the run to stop and waits for its end, so that optional work should be left out."""
        return self._services.asked_to_stop

    async def chat(
        self,
        role: str,
        messages: Sequence[Message],
        *,
        candidate: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> ChatReply:
        """Make an LLM call for this stage. For calls made side by side use `chat_model`, each with a key of its own.

        Raises:
            LLMError: if this request failed for good; an unreachable backend ends the run instead.
        """
        scope = self._next_scope(candidate)
        return await self._services.chat(role, messages, scope, max_tokens=max_tokens, temperature=temperature)

    def retries(self, role: str) -> int:
        """How often a role is asked again after a reply that can't be read."""
        return self._services.retries(role)

    async def embed(
        self, texts: Sequence[str], *, role: str = "embedding", candidate: str | None = None
    ) -> tuple[tuple[float, ...], ...]:
        """Compute one vector for every text, in the order of the texts and all of the same length.

        Raises:
            LLMError: as `chat`.
        """
        return (await self._services.embed(role, texts, self._next_scope(candidate))).vectors

    def _next_scope(self, candidate: str | None) -> CallScope:
        """The scope of the next call that is about this candidate."""
        scope = CallScope(self.stage, self.item_id, candidate, self._priority, self._calls)
        self._calls += 1
        return scope

    def chat_model(
        self, key: str, candidate: str | None, role: str = "task", *, less_urgent: bool = False
    ) -> ScopedModel:
        """An LLM for one of several pieces of work done side by side, such as one example of a minibatch.

        With ``less_urgent``, its calls come after the stage's other ones.
        """
        priority = self._priority + less_urgent
        return ScopedModel(
            self._services.chat, role, CallScope(self.stage, str(WorkPart(self.item_id, key)), candidate, priority, 0)
        )

    def side_by_side(self, jobs: Sequence[Callable[[], Awaitable[T]]]) -> AsyncGenerator[tuple[int, T]]:
        """Run jobs side by side; yields (index, result) as they end, so that a stage can emit before the last one.

        Use it under ``contextlib.aclosing``: leaving early cancels the open jobs, including requests on the wire.
        """
        return as_completed(jobs)

    def spend(self, cost: Cost) -> None:
        """Charge the budget for something that was done. LLM calls are charged automatically."""
        self._services.charge(self.stage, self.item_id, cost)

    def reserved(self, cost: Cost) -> AbstractContextManager[None]:
        """Set this much aside, for the duration of a ``with`` block, for what this work will `spend`.

        Raises:
            OverBudgetError: if the budget has no room for it. This ends the item, and no more flows are opened.
        """
        return self._services.reserved(self.item_id, cost)

    def begin(self, cost: Cost) -> None:
        """Charge the budget for something that is about to be done.

        Raises:
            OverBudgetError: as `reserved`.
        """
        with self.reserved(cost):
            self.spend(cost)

    @property
    def cost(self) -> Cost:
        """What this work has cost so far."""
        return self._services.cost(self.item_id)

    def share(self, more: Cost | None = None) -> float:
        """The spent share of the nearest limit, other than time limits, after spending this much more.

        This is for init and finish, whose work nothing else bounds. Use `decide` for whatever depends on it.
        """
        return self._services.share(more or Cost())

    def save(self, rollouts: int) -> None:
        """Count an evaluation that was stopped with this many rollouts unfinished."""
        self.log(RolloutsSaved(self.stage, self.item_id, rollouts))

    def propose(
        self,
        artifact: Artifact,
        *,
        parents: Sequence[Candidate],
        operator: str,
        attributes: Mapping[str, JSON] | None = None,
        born: int | None = None,
    ) -> Candidate:
        """Register a new candidate as ``proposed``. ``born`` is the version it was made from, now by default."""
        return self._services.propose(
            self.item_id,
            artifact,
            parents=parents,
            operator=operator,
            attributes=attributes or {},
            born=self.pool.version if born is None else born,
        )

    def reject(self, candidate: Candidate, reason: str) -> None:
        """Reject a proposal that will not reach the pool."""
        self._services.reject(candidate, self.item_id, reason)

    @overload
    def log(self, event: Record | StageEvent, /) -> None: ...
    @overload
    def log(self, event: str, /, **data: JSON) -> None: ...
    def log(self, event: str | Record | StageEvent, /, **data: JSON) -> None:
        """Write an event: a record or one of the shipped stages' events, or a kind with its data."""
        if isinstance(event, str):
            self._services.record(event, self.stage, self.item_id, lambda: data)
        else:
            self._services.record(event.kind, self.stage, self.item_id, event.to_json)

    @overload
    def decide(
        self, kind: str, make: Callable[[], Mapping[str, JSON]], *, key: str | None = None
    ) -> Mapping[str, JSON]: ...
    @overload
    def decide(self, kind: type[R], make: Callable[[], R], *, key: str | None = None) -> R: ...
    def decide(
        self, kind: str | type[R], make: Callable[[], Mapping[str, JSON] | R], *, key: str | None = None
    ) -> Mapping[str, JSON] | R:
        """Decide something once for this item: what ``make`` returns is written as an event, and returned. ``kind`` is
        the kind of the event, or a class of records that has one.

        After a crash, the work on an item is done again on a pool that may have changed. Then the event's data is
        returned and ``make`` is not called. Whatever a stage reads from the pool to write a prompt has to be decided
        like this: otherwise the replies that were paid for would answer other questions. The event also has ``stage``
        and ``item``. Jobs side by side that decide something of the same kind each give their own ``key``.
        """
        name = kind if isinstance(kind, str) else kind.kind
        data = self._services.record(name, self.stage, self.item_id, lambda: _json(name, make()), key)
        return data if isinstance(kind, str) else kind.from_json(data)

    @overload
    async def once(
        self, kind: str, make: Callable[[], Awaitable[Mapping[str, JSON]]], *, key: str | None = None
    ) -> Mapping[str, JSON]: ...
    @overload
    async def once(self, kind: type[R], make: Callable[[], Awaitable[R]], *, key: str | None = None) -> R: ...
    async def once(
        self, kind: str | type[R], make: Callable[[], Awaitable[Mapping[str, JSON] | R]], *, key: str | None = None
    ) -> Mapping[str, JSON] | R:
        """As `decide`, for results that take long, such as a program's scores. They are on disk when this returns.

        If ``make`` raises, nothing is written. Don't make LLM calls in it, because the journal keeps those anyway.
        """

        async def made() -> Mapping[str, JSON]:
            return _json(name, await make())

        name = kind if isinstance(kind, str) else kind.kind
        data = await self._services.once(name, self.stage, self.item_id, made, key)
        return data if isinstance(kind, str) else kind.from_json(data)

    async def keep(self, kind: str, make: Callable[[], Awaitable[T]], *, key: str | None = None) -> T:
        """As `once`, for a result that is not plain data. The event names its type, and the journal keeps the result
        until the flow ends. A result that the journal can't hold (`flowevolve.payload`) is made again after a crash.
        """
        return await self._services.keep(kind, self.stage, self.item_id, make, key)


class UpdateContext(StageContext):
    """The context of the committing stage."""

    def adopt(self, candidate: Candidate) -> None:
        """Enter a candidate of another run as a proposal, under its own id."""
        self._services.adopt(candidate, self.item_id)

    def commit(self, changes: Sequence[Change]) -> Update:
        """Apply all changes as one pool update, or none.

        Raises:
            EngineError: if a change is not allowed.
        """
        return self._services.commit(changes, self.item_id, self.stage)


def _json(kind: str, made: object) -> Mapping[str, JSON]:
    """Raises: EngineError if what was made for an event of this kind is neither a mapping nor a record."""
    if isinstance(made, Record):
        return made.to_json()
    if not isinstance(made, Mapping):
        raise EngineError(
            f"{kind}: make returned a {type(made).__name__}, but has to return a dictionary, such as {{'score': 0.5}}; "
            "for other results there is context.keep"
        )
    return made


class ChatFunction(Protocol):
    """Makes an LLM call for the work that ``scope`` names."""

    async def __call__(
        self,
        role: str,
        messages: Sequence[Message],
        scope: CallScope,
        *,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply: ...


class ScopedModel:
    """A `flowevolve.core.task.ChatModel` whose calls belong to one piece of work."""

    def __init__(self, chat: ChatFunction, role: str, scope: CallScope) -> None:
        self._chat = chat
        self._role = role
        self._scope = scope
        self._calls = 0

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        return (await self.reply(messages, max_tokens=max_tokens)).text

    async def reply(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
        """As calling the model, but returns the whole reply instead of its text."""
        scope = replace(self._scope, index=self._calls) if self._calls else self._scope
        self._calls += 1
        return await self._chat(self._role, messages, scope, max_tokens=max_tokens, temperature=None)
