"""The journal of a run in memory, written and lost like one on disk: in whole steps, some of which come too late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from flowevolve._util.errors import StorageError
from flowevolve.core.calls import CallRecord, RoleReplies
from flowevolve.core.events import Event
from flowevolve.core.model import (
    ChatReply,
    EmbedReply,
    EmbedRequest,
    LLMError,
)
from flowevolve.core.payload_kinds import NotKeptError
from flowevolve.engine.recovery.recorded_replies import AnsweredCall
from flowevolve.journal.history import lasting_error
from flowevolve.journal.payloads import dump, load
from flowevolve.llm.client.accounting import Spending, Totals
from flowevolve.telemetry.role_replies import RoleReplyCounter

Fact = Event | CallRecord


class Record:
    """What a process of a run writes: a `flowevolve.runner.run.RunRecord` that keeps facts in memory.

    ``watch`` is called with every fact. After `kill` nothing more is kept.
    """

    path = Path("in memory")

    def __init__(self, before: Sequence[Fact], watch: Callable[[Fact], None], disk_seconds: float) -> None:
        self.facts: list[Fact] = list(before)
        self.dead = False
        self.full = False
        """Whether the disk is full. Nothing is kept after the step in which it fills up."""
        self._takes_no_more = False
        self.result: Mapping[str, object] = {}
        """The result that was written at the end."""
        self._watch = watch
        self._disk_seconds = disk_seconds
        self._steps = [len(self.facts)]
        """The number of facts at the end of each step. The facts of a step are written together."""
        self._settled = len(self.facts)
        """How many facts are certainly on disk."""
        self._step_is_open = False

    def event(self, event: Event) -> None:
        self._put(as_kept(event))

    def call(self, record: CallRecord) -> None:
        self._put(record)

    def begin(self, origin: float) -> None:
        """Nothing depends on the origin."""

    async def settled(self) -> None:
        self._end_step()
        reached = len(self.facts)
        if self._disk_seconds:
            await anyio.sleep(self._disk_seconds)
        if self.full:
            raise StorageError("the disk is full")
        if not self.dead:
            self._settled = max(self._settled, reached)

    def write_result(self, result: Mapping[str, object]) -> None:
        self.result = result

    def close(self) -> None:
        """Raises: StorageError if something could not be written."""
        if self.full:
            raise StorageError("the disk is full")

    def kill(self, lost: float) -> None:
        """End like a process that is killed. The present step is lost, and of the steps that were not settled this
        share, the last ones.
        """
        self.dead = True
        left = [end for end in self._steps if end >= self._settled]
        kept = left[round((len(left) - 1) * (1 - lost))]
        del self.facts[kept:]

    def _put(self, fact: Fact) -> None:
        if self.dead:
            return
        if not self._step_is_open:
            self._step_is_open = True
            asyncio.get_running_loop().call_soon(self._end_step)
        if not self._takes_no_more:
            self.facts.append(fact)
        self._watch(fact)

    def _end_step(self) -> None:
        self._step_is_open = False
        self._takes_no_more = self.full
        if not self.dead and self._steps[-1] != len(self.facts):
            self._steps.append(len(self.facts))


@dataclass
class Memory:
    """A `flowevolve.engine.recovery.recovery.History` of facts in memory, whose events are `as_kept`."""

    told: Sequence[Fact]
    _payloads: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._payloads = {
            event.attached_to: event.attachment for event in self._kept() if isinstance(event.attachment, bytes)
        }

    @property
    def last(self) -> Event:
        return self._kept()[-1]

    @property
    def begun(self) -> bool:
        return any(event.kind == "phase.ended" for event in self._kept())

    def _kept(self) -> list[Event]:
        return [fact for fact in self.told if isinstance(fact, Event)]

    def events(self) -> Iterator[Event]:
        return (Event(fact.seq, fact.time, fact.kind, fact.data) for fact in self._kept())

    def payload(self, name: str) -> object:
        return load(self._payloads[name], {})

    def spent(self) -> Iterable[Spending]:
        for call in self.told:
            if isinstance(call, CallRecord):
                yield Spending(call.role, call.request.model, call.scope.stage, _totals(call))

    def replies_by_role(self) -> Mapping[str, RoleReplies]:
        replies = RoleReplyCounter()
        for call in self.told:
            if isinstance(call, CallRecord):
                replies.call(call)
        return replies.by_role

    def calls(self, interrupted_work: Collection[tuple[str, str]]) -> Iterator[AnsweredCall]:
        for fact in self.told:
            if isinstance(fact, CallRecord) and (fact.scope.stage, fact.scope.work.item) in interrupted_work:
                scope, request, reply = fact.scope, fact.request, answer(fact)
                if reply is not None:
                    said = request.texts if isinstance(request, EmbedRequest) else request.messages
                    yield AnsweredCall(scope.stage, scope.work, scope.index, said, reply)

    def close(self) -> None:
        """Nothing is open."""

    def facts(self) -> Sequence[Fact]:
        return self.told


def as_kept(event: Event) -> Event:
    """An event with its attachment in the journal's form; without it if it can't be kept."""
    if event.attachment is None:
        return event
    try:
        return replace(event, attachment=dump(event.attachment, frozenset()))
    except NotKeptError:
        return replace(event, attachment=None)


def answer(call: CallRecord) -> ChatReply | EmbedReply | LLMError | None:
    """The lasting outcome of a call; None if the call is to be made again."""
    if call.reply is not None:
        return replace(call.reply, model=call.request.model)
    return lasting_error(call.error or "", call.failed_usage, call.request.model)


def _totals(call: CallRecord) -> Totals:
    """What a journal says about the cost of a call."""
    if call.cached and call.reply is not None:
        return Totals(cached_calls=1, cached_calls_tokens=call.reply.usage.total_tokens)
    usage = call.failed_usage if call.reply is None else call.reply.usage
    return Totals(
        requests=1,
        failed=int(call.reply is None),
        retries=call.attempts - 1,
        usage=usage,
        latency_seconds=call.finished - call.started,
    )
